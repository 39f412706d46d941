//! The busiest processes.

use std::fmt::Write as _;

use usdtrec_analysis::summary::facts::SummaryFacts;

use crate::columns::put_table;
use crate::report::probes::rate_and_share;
use crate::table::{Table, TableCell};
use crate::theme::Theme;

/// Maximum number of processes shown.
const MAX_PROCESSES: usize = 5;

/// Appends the table of the busiest processes, if there is more than one process.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    if facts.busiest.all < 2 {
        return;
    }
    out.push('\n');
    put_table(&table(facts, MAX_PROCESSES), theme, out);
    let beyond = facts.probes.iter().any(|probe| probe.other_processes > 0);
    let rest = facts.busiest.all.saturating_sub(MAX_PROCESSES);
    if rest > 0 {
        let more = if beyond { "more than " } else { "" };
        let s = if rest == 1 { "" } else { "es" };
        let _ = writeln!(out, "and {more}{rest} other process{s}");
    }
}

/// The busiest processes, at most so many.
pub fn table(facts: &SummaryFacts, most: usize) -> Table {
    let mut table = Table::new(["Process", "PID", "Events", "/s", "Share", "Probes"]);
    for process in facts.busiest.first.iter().take(most) {
        let [per_second, share] = rate_and_share(process.count, facts);
        table.rows.push(vec![
            TableCell::Code(process.comm.clone()),
            TableCell::count(process.pid),
            TableCell::count(process.count),
            per_second,
            share,
            TableCell::count(process.probes),
        ]);
    }
    table
}
