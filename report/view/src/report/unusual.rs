//! Unusual values, bursts and pauses, in words.

use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_format::clock_seconds;
use usdtrec_format::escape::escape;

use crate::columns::folded_from;
use crate::numbers::{duration, percent};
use crate::report::short_names::ShortNames;
use crate::theme::Theme;

/// Maximum number of bursts or pauses of a probe that are named one by one.
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
    let unusual = facts.unusual.iter();
    unusual
        .map(|unusual| sentence(unusual, &names, times))
        .collect()
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

fn sentence(unusual: &Unusual, names: &ShortNames, clock: EpisodeTimes) -> String {
    let event = escape(names.name(&unusual.event));
    match &unusual.what {
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
            let times = bursts.first().map_or(0.0, |burst| burst.times);
            let at = clock.named(bursts, |burst| clock.begin(burst));
            let most = match (clock, bursts.len()) {
                (EpisodeTimes::SinceStart, _) | (_, 0..=1) => "",
                _ => "up to ",
            };
            format!("{event} hit at {most}{times:.1} times its median rate {at}")
        }
        UnusualKind::Pauses(pauses) => {
            let shown = |pause: &Episode| {
                format!(
                    "{} for at least {}",
                    clock.begin(pause),
                    duration((pause.to - pause.from) as f64)
                )
            };
            format!("{event} did not hit {}", clock.named(pauses, shown))
        }
    }
}

/// `once`, `7 times`.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
