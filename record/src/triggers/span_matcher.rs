//! Spans that fire triggers, matched as readers of streams do: by the rule of [`OpenBegins`](usdtrec_format::spans::OpenBegins).
//!
//! Hits of several CPUs are read in any order within a pass over the rings, and a begin may be read one pass after its end. So the hits of a pass are
//! sorted, and an end without a begin waits for the next pass.

use std::hash::RandomState;
use std::mem::take;
use std::sync::Arc;

use usdtrec_attach::filter::SiteDecoder;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_format::Value;
use usdtrec_format::schema::Argument;
use usdtrec_format::spans::{
    LiveAgreement, Marks, NamedPair, OpenByKey, PlainBegin, SpanSides, live_agreement, mark,
    place_of_key,
};
use usdtrec_format::trace::{FiredTrigger, TriggerKind};

/// Matches the hits of one pair of events for one trigger.
#[derive(Debug)]
pub(super) struct SpanMatcher {
    /// The trigger, by its place.
    pub(super) trigger: usize,
    pub(super) pair: NamedPair,
    least: u64,
    /// Names of the events of the pair: its begins, then its ends.
    events: Vec<String>,
    /// Where each of them has what is compared.
    places: Vec<MarkPlaces>,
    /// Whether each of them both ends a span and begins the next.
    both: Vec<bool>,
    /// Whether spans need not nest: then their marks are part of the key.
    crosses: bool,
    open: OpenSpans,
}

/// Where the hits of an event have what is compared.
#[derive(Clone, Debug, Default)]
struct MarkPlaces {
    /// The argument that is the key, with the process; `None` for the thread.
    key: Option<usize>,
    /// The arguments that are compared, and whether their numbers are.
    agreed: Vec<(usize, bool)>,
}

impl SpanMatcher {
    pub(super) fn new(
        trigger: usize,
        least: u64,
        pair: NamedPair,
        probes: &[Arc<PlannedProbe>],
    ) -> Self {
        let events = pair.starts.iter().chain(&pair.dones);
        let of_pair: Vec<&PlannedProbe> = events
            .filter_map(|at| probes.get(*at))
            .map(|probe| &**probe)
            .collect();
        let events: Vec<String> = of_pair.iter().map(|probe| probe.event()).collect();
        let names: Vec<&str> = events.iter().map(String::as_str).collect();
        let (starts, dones) = names.split_at(pair.starts.len().min(names.len()));
        let crosses = SpanSides { starts, dones }.cross();
        let shown: Vec<Vec<Argument>> = of_pair.iter().map(|of| of.shown_arguments()).collect();
        let lists: Vec<&[Argument]> = shown.iter().map(Vec::as_slice).collect();
        let key = pair.key.filter(|key| {
            let mut lists = lists.iter();
            lists.all(|list| place_of_key(list, key).is_some())
        });
        let LiveAgreement {
            arguments,
            must_agree,
        } = match key {
            Some(_) => LiveAgreement::default(),
            None => live_agreement(&lists, |_| !crosses),
        };
        let places = of_pair.iter().map(|probe| MarkPlaces {
            key: key.and_then(|key| probe.own_place(key)),
            agreed: arguments
                .iter()
                .filter_map(|(name, numbers)| Some((probe.own_place(name)?, *numbers)))
                .collect(),
        });
        let both = pair.starts.iter().chain(&pair.dones);
        let both = both.map(|at| pair.starts.contains(at) && pair.dones.contains(at));
        Self {
            trigger,
            least,
            places: places.collect(),
            both: both.collect(),
            crosses,
            open: OpenSpans {
                must_agree,
                ..OpenSpans::default()
            },
            events,
            pair,
        }
    }

    /// Continues one that knew fewer probes.
    pub(super) fn continue_from(&mut self, earlier: &mut Self) {
        let must_agree = self.open.must_agree;
        self.open = OpenSpans {
            must_agree,
            ..take(&mut earlier.open)
        };
    }

    /// The places of its events: their numbers among the probes, in the order of its begins and then its ends.
    pub(super) fn probes(&self) -> impl Iterator<Item = usize> + '_ {
        self.pair.starts.iter().chain(&self.pair.dones).copied()
    }

    /// Number of ends that took the newest begin, and are equal to an older one.
    pub(super) const fn older(&self) -> u64 {
        self.open.older
    }

    /// Takes a sample of one of its events, which has a place in their order. It counts for nothing if it is too short, or has no value that is its key.
    pub(super) fn take(&mut self, event: usize, decoder: &mut SiteDecoder, body: &[u8]) {
        let (Some(places), Some(sample)) = (self.places.get(event), decoder.parse(body)) else {
            return;
        };
        let values = match places.key.is_none() && places.agreed.is_empty() {
            true => &[][..],
            false => decoder.values(&sample),
        };
        let state = &self.open.state;
        let mark_at = |at: usize, numbers| {
            let value: Option<&Value> = values.get(at);
            value.map_or(0, |value| mark(value, numbers, state))
        };
        let mut marks = match places.agreed.len() {
            0 => Marks::default(),
            arguments => Marks::unknown(arguments),
        };
        for (at, (place, numbers)) in places.agreed.iter().enumerate() {
            marks.set(at, mark_at(*place, *numbers));
        }
        let mut key = SpanKey {
            task: sample.tid,
            value: 0,
        };
        if let Some(place) = places.key {
            let value = mark_at(place, true);
            if value == 0 {
                return;
            }
            key = SpanKey {
                task: sample.pid,
                value,
            };
        } else if self.crosses {
            key.value = marks.word();
            marks = Marks::default();
        }
        self.open.hits.push(SpanHit {
            time: sample.time,
            key,
            marks,
            pid: sample.pid,
            tid: sample.tid,
            event,
            begins: event < self.pair.starts.len(),
            is_both: self.both.get(event) == Some(&true),
        });
    }

    /// Forgets the open spans, and the ends that wait for one.
    pub(super) fn forget(&mut self) {
        self.open.begins.clear();
        self.open.waiting.clear();
    }

    /// Ends a pass over all rings: calls `fired` for each span that was long.
    pub(super) fn end_pass(&mut self, condition: &str, mut fired: impl FnMut(FiredTrigger)) {
        let Self {
            pair,
            least,
            events,
            open,
            ..
        } = self;
        open.end_pass(|end, duration| {
            if duration < *least {
                return;
            }
            fired(FiredTrigger {
                kind: TriggerKind::Span,
                condition: condition.to_owned(),
                time_ns: end.time,
                event: events.get(end.event).cloned().unwrap_or_default(),
                pid: end.pid,
                tid: end.tid,
                span: pair.name.clone(),
                duration_ns: Some(duration),
                ..FiredTrigger::default()
            });
        });
    }
}

/// What hits of one span have in common: a thread, or a process and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SpanKey {
    /// The thread or the process.
    task: i32,
    value: u64,
}

/// A hit that begins or ends a span.
#[derive(Clone, Debug)]
struct SpanHit {
    time: u64,
    key: SpanKey,
    marks: Marks,
    pid: i32,
    tid: i32,
    /// The event, by its place in the list of its matcher.
    event: usize,
    begins: bool,
    /// Whether the same hit is the other one, too.
    is_both: bool,
}

/// The open spans of one pair of events.
#[derive(Debug, Default)]
struct OpenSpans {
    begins: OpenByKey<SpanKey, PlainBegin, RandomState>,
    /// Hits of this pass.
    hits: Vec<SpanHit>,
    /// Ends of the pass before that had no begin.
    waiting: Vec<SpanHit>,
    /// Whether marks must agree; else an end takes the newest begin.
    must_agree: bool,
    /// Number of ends that took the newest begin, and are equal to an older one.
    older: u64,
    /// Of the marks.
    state: RandomState,
}

impl OpenSpans {
    /// Ends a pass: calls `ended` for each span of which the end was read, with its duration, ns.
    fn end_pass(&mut self, mut ended: impl FnMut(&SpanHit, u64)) {
        let waited = take(&mut self.waiting).into_iter();
        let mut all: Vec<(SpanHit, bool)> = waited.map(|hit| (hit, true)).collect();
        all.extend(self.hits.drain(..).map(|hit| (hit, false)));
        all.sort_by_key(|(hit, _)| hit.time);
        for (hit, has_waited) in all {
            if hit.begins {
                self.begin(&hit);
            } else if let Some(began) = self.end(&hit) {
                ended(&hit, hit.time.saturating_sub(began));
            } else if !has_waited {
                self.waiting.push(hit);
            }
        }
    }

    fn begin(&mut self, hit: &SpanHit) {
        if self.begins.is_full(1) {
            self.begins.forget_older();
        }
        let begin = PlainBegin {
            time: hit.time,
            marks: hit.marks,
        };
        self.begins.with(hit.key, |open| open.push(begin));
    }

    /// When the span began that a hit ends.
    fn end(&mut self, hit: &SpanHit) -> Option<u64> {
        let SpanHit { marks, is_both, .. } = *hit;
        // No hit ends the span that it begins itself.
        let time = hit.time.saturating_sub(u64::from(is_both));
        if !self.begins.has(&hit.key) {
            return None;
        }
        self.begins.with(hit.key, |open| {
            if self.must_agree {
                let found = open.find(marks, time)?;
                return open.close(found, time);
            }
            let newest = open.find_newest(time)?;
            self.older += u64::from(open.is_of_older(marks, time, newest));
            open.close(newest, time)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(begins: bool, tid: i32, time: u64, id: u64) -> SpanHit {
        SpanHit {
            time,
            key: SpanKey {
                task: tid,
                value: 0,
            },
            marks: Marks::from_words([id, 1, 1, 1]),
            pid: tid,
            tid,
            event: usize::from(!begins),
            begins,
            is_both: false,
        }
    }

    fn open(must_agree: bool) -> OpenSpans {
        OpenSpans {
            must_agree,
            ..OpenSpans::default()
        }
    }

    /// Durations of the spans that ended in each pass.
    fn durations(open: &mut OpenSpans, passes: &[&[SpanHit]]) -> Vec<Vec<u64>> {
        let pass = |hits: &&[SpanHit]| {
            open.hits.extend(hits.iter().cloned());
            let mut ended = Vec::new();
            open.end_pass(|_, duration| ended.push(duration));
            ended
        };
        passes.iter().map(pass).collect()
    }

    #[test]
    fn ends_belong_to_the_newest_begin_that_agrees() {
        let passes: [&[SpanHit]; 3] = [
            &[
                hit(true, 1, 10, 7),
                hit(true, 1, 20, 8),
                hit(true, 2, 15, 7),
            ],
            &[hit(false, 1, 30, 7)],
            &[hit(false, 1, 40, 8), hit(false, 2, 50, 7)],
        ];
        let mut open = open(true);
        assert_eq!(durations(&mut open, &passes), [vec![], vec![20], vec![35]]);
        assert_eq!(open.begins.iter().count(), 0);
    }

    /// Where nothing says that the number is an id, ends take the newest begin, and it is counted which of them are equal to an older one.
    #[test]
    fn ends_that_are_equal_to_an_older_begin_are_counted() {
        let overlapping: &[SpanHit] = &[
            hit(true, 1, 10, 7),
            hit(true, 1, 20, 8),
            hit(false, 1, 30, 7),
            hit(false, 1, 40, 8),
        ];
        let mut spans = open(false);
        assert_eq!(durations(&mut spans, &[overlapping]), [[10, 30]]);
        assert_eq!(spans.older, 1);
        let nested: &[SpanHit] = &[
            hit(true, 1, 10, 7),
            hit(true, 1, 20, 7),
            hit(true, 1, 21, 0),
            hit(false, 1, 25, 0),
            hit(false, 1, 30, 7),
            hit(false, 1, 40, 9),
        ];
        let mut spans = open(false);
        assert_eq!(durations(&mut spans, &[nested]), [[4, 10, 30]]);
        assert_eq!(spans.older, 0);
    }

    #[test]
    fn a_begin_may_be_read_a_pass_after_its_end() {
        for must_agree in [false, true] {
            let mut open = open(must_agree);
            let passes: [&[SpanHit]; 4] = [
                &[hit(false, 1, 30, 7), hit(true, 1, 40, 7)],
                &[hit(true, 1, 10, 7), hit(false, 1, 45, 7)],
                &[hit(false, 1, 60, 7)],
                &[hit(true, 1, 70, 7)],
            ];
            let expected: [Vec<u64>; 4] = [vec![], vec![20, 5], vec![], vec![]];
            assert_eq!(durations(&mut open, &passes), expected);
            assert!(open.waiting.is_empty());
        }
    }

    /// As `frame..frame`, whatever passes its hits are read in: each ends the span of the one before, and begins the next.
    #[test]
    fn a_probe_that_ends_a_span_begins_the_next() {
        let frame = |time: u64| {
            [true, false].map(|begins| SpanHit {
                is_both: true,
                ..hit(begins, 1, time, 7)
            })
        };
        let [first, second, third, fourth] = [1000, 1200, 1400, 1600].map(frame);
        for must_agree in [false, true] {
            let mut one_by_one = open(must_agree);
            let passes: [&[SpanHit]; 4] = [&first, &second, &third, &fourth];
            let expected: [Vec<u64>; 4] = [vec![], vec![200], vec![200], vec![200]];
            assert_eq!(durations(&mut one_by_one, &passes), expected);
            let mut at_once = open(must_agree);
            let all = [&first[..], &second, &third, &fourth].concat();
            assert_eq!(durations(&mut at_once, &[&all]), [[200; 3]]);
        }
    }

    /// Between the begin and the end that follow each other, probes were detached.
    #[test]
    fn spans_across_a_pause_are_forgotten() {
        let mut open = open(false);
        let begun: &[SpanHit] = &[hit(true, 1, 10, 7)];
        assert_eq!(durations(&mut open, &[begun]), [[0; 0]]);
        open.begins.clear();
        let ends: &[SpanHit] = &[hit(false, 1, 900, 7)];
        assert_eq!(durations(&mut open, &[ends]), [[0; 0]]);
        let whole: &[SpanHit] = &[hit(true, 1, 910, 7), hit(false, 1, 915, 7)];
        assert_eq!(durations(&mut open, &[whole]), [[5]]);
    }
}
