//! Unusual values, bursts and pauses, in words.

use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
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
    for sentence in sentences(facts) {
        folded_from("  ", &sentence, "      ", out);
    }
}

/// A sentence for each thing that is unusual.
pub fn sentences(facts: &SummaryFacts) -> Vec<String> {
    let names = ShortNames::new(facts);
    let unusual = facts.unusual.iter();
    unusual.map(|unusual| sentence(unusual, &names)).collect()
}

fn sentence(unusual: &Unusual, names: &ShortNames) -> String {
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
            "{event}.{} is not whole {} ({}): the text was longer than what was captured",
            escape(argument),
            times(*count),
            percent(*count, *of)
        ),
        UnusualKind::Bursts(bursts) => {
            let times = bursts.first().map_or(0.0, |burst| burst.times);
            let at = named(bursts, |burst| duration(burst.from as f64));
            format!("{event} hit at {times:.1} times its median rate {at}")
        }
        UnusualKind::Pauses(pauses) => {
            let shown = |pause: &Episode| {
                format!(
                    "{} for at least {}",
                    duration(pause.from as f64),
                    duration((pause.to - pause.from) as f64)
                )
            };
            format!("{event} did not hit {}", named(pauses, shown))
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

/// `at 4.20 s, 6.90 s and 2 other times`.
fn named(episodes: &[Episode], shown: impl Fn(&Episode) -> String) -> String {
    let names: Vec<String> = episodes.iter().take(NAMED).map(shown).collect();
    let others = match episodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        1 => " and another time".to_owned(),
        others => format!(" and {others} other times"),
    };
    format!("at {}{others}", names.join(", "))
}
