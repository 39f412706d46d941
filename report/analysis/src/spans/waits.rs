//! What threads waited for in spans: the sums of recorded waits, by the word that each wait has.
//!
//! A wait is in the newest open span of its thread when the thread is back on a CPU; a thread hits nothing while it waits, so no wait is in a span in
//! part. Waits for a CPU alone are left out, and of the others the time in which the thread could have run: that is another part of the span's time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use usdtrec_format::Value;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

/// The event whose hits are waits.
const EVENT: &str = "offcpu:offcpu-time";
/// The state of waits for a CPU alone.
const RUNNABLE: &[u8] = b"runnable";
/// Words with sums of their own.
const MAX_WORDS: usize = 64;
/// Maximum length of such a word, bytes.
const MAX_WORD_BYTES: usize = 128;

/// The events of a trace whose hits are waits.
#[derive(Debug, Default)]
pub(crate) struct WaitEvents {
    /// Of each event, where its arguments are; empty if none is of waits.
    of_event: Vec<Option<WaitPlaces>>,
}

/// Where an event has the arguments of a wait.
#[derive(Clone, Copy, Debug)]
struct WaitPlaces {
    ns: usize,
    runnable: usize,
    state: usize,
    wait: usize,
}

/// A wait.
pub(crate) struct Wait<'r> {
    pub(crate) word: Cow<'r, str>,
    /// Without the time in which the thread could have run, ns.
    pub(crate) ns: u64,
}

/// Waits together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// How long they were, ns.
    pub ns: u64,
    /// How many they were.
    pub count: u64,
}

/// Waits by their words.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitSums {
    words: BTreeMap<String, WaitSum>,
    /// Of the words for which there is no room.
    others: WaitSum,
}

/// Waits of one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitFacts {
    /// The word; `None` for all without one of their own.
    pub wait: Option<String>,
    /// The waits.
    pub sum: WaitSum,
}

impl WaitEvents {
    /// Those of a trace.
    pub(crate) fn find(session: &TraceSession) -> Self {
        let events = session.events().events.iter();
        let of_event: Vec<Option<WaitPlaces>> = events
            .map(|event| {
                let place = |name| event.argument(name).filter(|_| event.name == EVENT);
                Some(WaitPlaces {
                    ns: place("ns")?,
                    runnable: place("runnable")?,
                    state: place("state")?,
                    wait: place("wait")?,
                })
            })
            .collect();
        match of_event.iter().any(Option::is_some) {
            true => Self { of_event },
            false => Self::default(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.of_event.is_empty()
    }

    /// Whether the hits of an event are waits.
    #[inline]
    pub(crate) fn has(&self, event: usize) -> bool {
        self.of_event.get(event).is_some_and(Option::is_some)
    }

    /// The wait of a hit; `None` if it is one for a CPU, or not as waits are.
    pub(crate) fn read<'r>(
        &self,
        resolver: &'r mut Resolver<'_>,
        Hit { target, sample }: Hit<'_>,
    ) -> Option<Wait<'r>> {
        let places = self.of_event.get(target.event as usize)?.as_ref()?;
        let site = resolver.session().site_of(target, sample)?;
        let number = |value: Option<&Value>| match value {
            Some(Value::Unsigned(number)) => Some(*number),
            _ => None,
        };
        let ns = number(resolver.value(site, places.ns, sample))?;
        let runnable = number(resolver.value(site, places.runnable, sample))?;
        if let Some(Value::String(state)) = resolver.value(site, places.state, sample)
            && state.bytes == RUNNABLE
        {
            return None;
        }
        let word = match resolver.value(site, places.wait, sample) {
            Some(Value::String(word)) => String::from_utf8_lossy(&word.bytes),
            _ => Cow::default(),
        };
        Some(Wait {
            word,
            ns: ns.saturating_sub(runnable),
        })
    }
}

impl WaitSum {
    fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.count = self.count.saturating_add(other.count);
    }
}

impl WaitSums {
    /// Adds a wait.
    pub(crate) fn add(&mut self, wait: &Wait<'_>) {
        let sum = WaitSum {
            ns: wait.ns,
            count: 1,
        };
        self.add_sum(&wait.word, sum);
    }

    /// The words that are kept are the first ones by their bytes. So they are the same in whatever order waits come, and none of their waits is among
    /// the others.
    fn add_sum(&mut self, word: &str, sum: WaitSum) {
        if word.is_empty() || word.len() > MAX_WORD_BYTES {
            return self.others.add(sum);
        }
        match self.words.get_mut(word) {
            Some(known) => known.add(sum),
            None => {
                self.words.insert(word.to_owned(), sum);
            }
        }
        if self.words.len() > MAX_WORDS
            && let Some((_, last)) = self.words.pop_last()
        {
            self.others.add(last);
        }
    }

    /// Adds waits where there are any.
    pub(crate) fn join(all: &mut Option<Box<Self>>, more: Option<Box<Self>>) {
        match (all, more) {
            (Some(all), Some(more)) => all.merge(&more),
            (all @ None, more) => *all = more,
            (Some(_), None) => {}
        }
    }

    /// Adds other waits.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.others.add(other.others);
        for (word, sum) in &other.words {
            self.add_sum(word, *sum);
        }
    }

    /// The longest waits first, those without a word of their own last.
    pub(crate) fn facts(&self) -> Vec<WaitFacts> {
        let words = self.words.iter();
        let mut all: Vec<WaitFacts> = words
            .map(|(word, sum)| WaitFacts {
                wait: Some(word.clone()),
                sum: *sum,
            })
            .collect();
        all.sort_by_key(|known| std::cmp::Reverse((known.sum.ns, known.sum.count)));
        all.extend((self.others.count > 0).then_some(WaitFacts {
            wait: None,
            sum: self.others,
        }));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(words: impl Iterator<Item = u64>) -> WaitSums {
        let mut sums = WaitSums::default();
        for word in words {
            let word = format!("word{word:03}").into();
            sums.add(&Wait { word, ns: 10 });
        }
        sums
    }

    #[test]
    fn of_too_many_words_the_same_are_kept_however_waits_come() {
        let of = |order: fn(u64) -> u64| sums((0..400).map(order)).facts();
        let expected = of(|at| at % 100);
        assert_eq!(expected.len(), MAX_WORDS + 1);
        let kept = expected.iter().take(MAX_WORDS);
        assert!(
            kept.clone()
                .all(|word| word.sum == WaitSum { ns: 40, count: 4 })
        );
        assert_eq!(expected[0].wait.as_deref(), Some("word000"));
        let others = &expected[MAX_WORDS];
        assert_eq!((&others.wait, others.sum.count), (&None, 4 * 36));
        assert_eq!(of(|at| 99 - at / 4), expected);
        let mut joined = WaitSums::default();
        for part in [50..400, 0..50] {
            joined.merge(&sums(part.map(|at| at * 7 % 100)));
        }
        assert_eq!(joined.facts(), expected);
    }

    #[test]
    fn words_that_are_no_words_are_among_the_others() {
        let mut sums = WaitSums::default();
        for word in [String::new(), "x".repeat(MAX_WORD_BYTES + 1)] {
            let word = word.into();
            sums.add(&Wait { word, ns: u64::MAX });
        }
        let [others] = &sums.facts()[..] else {
            panic!("{sums:?}");
        };
        let all = WaitSum {
            ns: u64::MAX,
            count: 2,
        };
        assert_eq!((&others.wait, others.sum), (&None, all));
    }
}
