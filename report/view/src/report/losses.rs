//! Sentences about losses.

use serde_json::{Value as Json, json};
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::ProbeFacts;
use usdtrec_format::counted;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::event_name::short_name as short;
use usdtrec_trace::session::recorded_part::RecordedPart;

use crate::columns::folded;
use crate::losses::doubt;
use crate::numbers::{about, percent};
use crate::theme::Theme;

/// Appends the section of losses, if events were lost or the count is not exact.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    let lines = lines(facts);
    if !lines.is_empty() {
        out.push('\n');
        theme.put_alarm("Lost", out);
        lines.iter().for_each(|line| folded(line, "  ", theme, out));
    }
}

/// What was lost of which probe, and why the count is not exact.
pub fn lines(facts: &SummaryFacts) -> Vec<String> {
    let losses = &facts.losses;
    let mut lines = Vec::new();
    for probe in facts.probes.iter().filter(|probe| probe.lost > 0) {
        let all = probe.lost.saturating_add(probe.count);
        lines.push(format!(
            "{}: {} of {all} ({})",
            escape(short(&probe.event)),
            probe.lost,
            percent(probe.lost, all)
        ));
    }
    lines.extend(facts.probes.iter().filter_map(paused));
    if losses.others > 0 {
        lines.push(format!("of events not shown here: {}", losses.others));
    }
    if let Some(why) = doubt(&losses.ledger) {
        lines.push(format!("not exact: {}", escape(why)));
    }
    lines
}

/// How much of the time a probe was recorded in, and about how many hits it had.
fn paused(probe: &ProbeFacts) -> Option<String> {
    let part = probe.part.filter(|part| part.pauses > 0)?;
    let hits = match probe.estimated_hits() {
        Some(hits) => format!("about {} hits at the same rate", about(hits)),
        None => "how many hits there were is not known".to_owned(),
    };
    let event = escape(short(&probe.event));
    Some(format!("{event}: {}: {hits}", recorded(&part)))
}

/// How much of the time probes were recorded in: `recorded 2.2% of the time (43 pauses, to keep to the budget)`.
pub(crate) fn recorded(part: &RecordedPart) -> String {
    format!(
        "recorded {} of the time ({}, to keep to the budget)",
        percent(part.recorded, part.time),
        counted(part.pauses, "pause")
    )
}

/// The same in JSON. The time divided by that in which it was recorded is what one that was recorded stands for.
pub(crate) fn json_recorded(part: &RecordedPart) -> Json {
    json!({"pauses": part.pauses, "time_ns": part.time, "recorded_ns": part.recorded})
}
