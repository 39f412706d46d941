//! The table of probes.

use std::fmt::Write as _;

use usdtrec_analysis::stats::ratio::per_second;
use usdtrec_analysis::summary::counts::NamedProcesses;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::event_name::short_name as short;

use crate::answer_style::AnswerStyle;
use crate::columns::{folded, folded_from, put_table};
use crate::numbers::{percent, rate};
use crate::sentences::Sentences;
use crate::table::{Table, TableCell};

/// Appends the table of probes, the names of probes without events, and the known reasons.
pub(crate) fn put(facts: &SummaryFacts, style: AnswerStyle, out: &mut String) {
    out.push('\n');
    put_table(&table(facts), style.theme, out);
    if let Some(text) = silent(facts) {
        folded(&text, "  ", style.theme, out);
    }
    reasons(facts, style, out);
}

/// The probes with events, those kept or those lost.
pub fn table(facts: &SummaryFacts) -> Table {
    let mut table = Table::new(["Probe", "Events", "/s", "Share", "Processes", "Lost"]);
    let probes = facts.probes.iter();
    for probe in probes.filter(|probe| probe.count > 0 || probe.lost > 0) {
        let per_second = rate_over(probe.count, facts.duration_of(probe));
        let lost = facts.losses.ledger.known(probe.lost);
        table.rows.push(vec![
            TableCell::Code(short(&probe.event).to_owned()),
            TableCell::count(probe.count),
            per_second,
            share(probe.count, facts),
            TableCell::Text(processes(&probe.processes, probe.other_processes > 0)),
            lost.map_or_else(|| TableCell::unsorted("?"), TableCell::count),
        ]);
    }
    table
}

/// The rate and the share of so many events.
pub(crate) fn rate_and_share(count: u64, facts: &SummaryFacts) -> [TableCell; 2] {
    [
        rate_over(count, facts.duration_for(count)),
        share(count, facts),
    ]
}

/// The share of so many events in all.
fn share(count: u64, facts: &SummaryFacts) -> TableCell {
    TableCell::number(percent(count, facts.events), count)
}

/// The rate of so many events in a time, ns.
fn rate_over(count: u64, duration: u64) -> TableCell {
    let shown = rate(count, duration);
    match per_second(count, duration) {
        Some(number) => TableCell::number(shown, number),
        None => TableCell::unsorted(shown),
    }
}

/// Names the probes without events; `None` if all have some.
pub fn silent(facts: &SummaryFacts) -> Option<String> {
    const NAMED: usize = 24;
    let silent = facts.probes.iter();
    let silent = silent.filter(|probe| probe.count == 0 && probe.lost == 0);
    let silent: Vec<&str> = silent.map(|probe| short(&probe.event)).collect();
    let named = silent.iter().take(NAMED).copied();
    let names = named.collect::<Vec<_>>().join(", ");
    let more = match silent.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!silent.is_empty()).then(|| format!("0 events: {}{more}", escape(&names)))
}

/// Appends the known reasons why probes have no events.
pub(crate) fn reasons(facts: &SummaryFacts, style: AnswerStyle, out: &mut String) {
    for reason in facts.reasons.sentences(style.hints) {
        folded_from("  ", &reason, "      ", style.theme, out);
    }
}

/// `postgres (8) and 2 more`: the name with the most samples, the number of its processes, and the number of other names. `beyond` says
/// whether there are more processes than `names` has.
pub fn processes(names: &[NamedProcesses], beyond: bool) -> String {
    let Some(NamedProcesses {
        name,
        processes: count,
        ..
    }) = names.first()
    else {
        return "-".to_owned();
    };
    let others = names.len() - 1;
    let mut text = format!("{name} ({count}{})", if beyond { "+" } else { "" });
    if others > 0 {
        let _ = write!(text, " and {others} more");
    }
    text
}
