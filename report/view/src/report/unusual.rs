//! Sentences about unusual values, bursts and pauses.

use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_format::clock_seconds;
use usdtrec_format::escape::escape;

use crate::columns::folded_from;
use crate::numbers::{duration, percent};
use crate::report::short_names::ShortNames;
use crate::theme::Theme;

/// Maximum number of bursts or pauses of a probe, and of probes that have the same, that are named one by one.
const NAMED: usize = 3;

/// Appends the section of what is unusual, if anything is.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    if facts.unusual.is_empty() {
        return;
    }
    out.push('\n');
    theme.put_heading("Unusual", out);
    for sentence in sentences(facts, UnusualClock::SinceStart) {
        folded_from("  ", &sentence, "      ", theme, out);
    }
}

/// The clock of the times of bursts and pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusualClock {
    /// Time since the trace's first event, the most unusual time first.
    SinceStart,
    /// The trace's clock, in the order of time.
    Trace,
}

/// A sentence for each thing that is unusual.
pub fn sentences(facts: &SummaryFacts, clock: UnusualClock) -> Vec<String> {
    let names = ShortNames::new(facts);
    let times = match clock {
        UnusualClock::SinceStart => EpisodeTimes::SinceStart,
        UnusualClock::Trace => EpisodeTimes::Trace { start: facts.start },
    };
    let mut all: Vec<Said> = Vec::new();
    for unusual in &facts.unusual {
        let said = said(unusual, &names, times);
        if !all.iter_mut().any(|known| known.takes(&said)) {
            all.push(said);
        }
    }
    all.iter().map(Said::sentence).collect()
}

/// What is unusual of a probe, or of several.
enum Said {
    Sentence(String),
    Episodes(SharedEpisodes),
}

/// Bursts or pauses of probes at the same times, as one cause has them.
struct SharedEpisodes {
    events: Vec<String>,
    /// Of bursts, how many times the median rate the highest is, and whether others are lower.
    burst: Option<Burst>,
    /// `at 4.20 s`.
    at: String,
}

#[derive(Clone, Copy)]
struct Burst {
    times: f64,
    is_highest_of_several: bool,
}

impl Said {
    /// Takes the probe of another one if the same is said of it.
    fn takes(&mut self, other: &Self) -> bool {
        let (Self::Episodes(own), Self::Episodes(other)) = (self, other) else {
            return false;
        };
        if own.at != other.at || own.burst.is_some() != other.burst.is_some() {
            return false;
        }
        own.events.extend(other.events.iter().cloned());
        if let (Some(own), Some(other)) = (&mut own.burst, other.burst) {
            own.times = own.times.max(other.times);
            own.is_highest_of_several = true;
        }
        true
    }

    fn sentence(&self) -> String {
        let SharedEpisodes { events, burst, at } = match self {
            Self::Sentence(sentence) => return sentence.clone(),
            Self::Episodes(episodes) => episodes,
        };
        let named = list(events);
        let whose = if events.len() == 1 { "its" } else { "their" };
        match burst {
            None => format!("{named} did not hit {at}"),
            Some(Burst {
                times,
                is_highest_of_several,
            }) => {
                let most = if *is_highest_of_several { "up to " } else { "" };
                format!("{named} hit at {most}{times:.1} times {whose} median rate {at}")
            }
        }
    }
}

/// `a, b and c`, `a, b, c and 4 other probes`.
fn list(events: &[String]) -> String {
    let (named, others) = events.split_at(events.len().min(NAMED));
    match (named.split_last(), others.len()) {
        (Some((last, [])), 0) => last.clone(),
        (Some((last, first)), 0) => format!("{} and {last}", first.join(", ")),
        (_, 1) => format!("{} and another probe", named.join(", ")),
        (_, others) => format!("{} and {others} other probes", named.join(", ")),
    }
}

/// How the times of episodes are shown.
#[derive(Clone, Copy)]
enum EpisodeTimes {
    SinceStart,
    /// Of a trace whose first event has this time, ns.
    Trace {
        start: u64,
    },
}

impl EpisodeTimes {
    fn begin(self, episode: &Episode) -> String {
        match self {
            Self::SinceStart => duration(episode.from as f64),
            Self::Trace { start } => {
                let time = start.saturating_add(episode.from);
                format!("{} s", clock_seconds(time))
            }
        }
    }

    /// `at 4.20 s, 6.90 s and 2 other times`: the most unusual ones are named.
    fn named(self, episodes: &[Episode], shown: impl Fn(&Episode) -> String) -> String {
        let mut named: Vec<&Episode> = episodes.iter().take(NAMED).collect();
        if let Self::Trace { .. } = self {
            named.sort_by_key(|episode| episode.from);
        }
        let names: Vec<String> = named.into_iter().map(shown).collect();
        let others = match episodes.len().saturating_sub(NAMED) {
            0 => String::new(),
            1 => " and another time".to_owned(),
            others => format!(" and {others} other times"),
        };
        format!("at {}{others}", names.join(", "))
    }
}

fn said(unusual: &Unusual, names: &ShortNames, clock: EpisodeTimes) -> Said {
    let event = escape(names.name(&unusual.event));
    let episodes = |burst, at| {
        Said::Episodes(SharedEpisodes {
            events: vec![event.to_string()],
            burst,
            at,
        })
    };
    Said::Sentence(match &unusual.what {
        UnusualKind::Missing {
            argument,
            reason,
            count,
            of,
        } => format!(
            "{event}.{} is not known {} ({}): {}",
            escape(argument),
            times(*count),
            percent(*count, *of),
            escape(reason)
        ),
        UnusualKind::Cut {
            argument,
            count,
            of,
        } => format!(
            "{event}.{} is not whole {} ({}): the string was longer than what was captured",
            escape(argument),
            times(*count),
            percent(*count, *of)
        ),
        UnusualKind::OneInstruction { with } => {
            let with = with
                .iter()
                .map(|other| escape(names.name(other)).into_owned());
            let with: Vec<String> = with.collect();
            format!(
                "{event} is at the same instruction as {}: each hit is an event of each",
                with.join(" and ")
            )
        }
        UnusualKind::Bursts(bursts) => {
            let burst = Burst {
                times: bursts.first().map_or(0.0, |burst| burst.times),
                is_highest_of_several: match clock {
                    EpisodeTimes::SinceStart => false,
                    EpisodeTimes::Trace { .. } => bursts.len() > 1,
                },
            };
            let at = clock.named(bursts, |burst| clock.begin(burst));
            return episodes(Some(burst), at);
        }
        UnusualKind::Pauses(pauses) => {
            let shown = |pause: &Episode| {
                format!(
                    "{} for at least {}",
                    clock.begin(pause),
                    duration((pause.to - pause.from) as f64)
                )
            };
            return episodes(None, clock.named(pauses, shown));
        }
    })
}

/// `once`, `7 times`.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
