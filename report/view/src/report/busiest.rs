//! The busiest processes.

use std::fmt::Write as _;

use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_format::escape::escape;

use crate::columns::{ColumnSide, put_columns};
use crate::numbers::{percent, rate};
use crate::theme::Theme;

/// Maximum number of processes shown.
const SHOWN: usize = 5;

/// Appends the table of the busiest processes, if there is more than one process.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    if facts.busiest.all < 2 {
        return;
    }
    let heading = ["Process", "PID", "Events", "/s", "Share", "Probes"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for process in facts.busiest.first.iter().take(SHOWN) {
        rows.push(vec![
            escape(&process.comm).into_owned(),
            process.pid.to_string(),
            process.count.to_string(),
            rate(process.count, facts.duration_for(process.count)),
            percent(process.count, facts.events),
            process.probes.to_string(),
        ]);
    }
    let mut sides = [ColumnSide::Right; 6];
    sides[0] = ColumnSide::Left;
    out.push('\n');
    put_columns(&rows, &sides, theme, out);
    let beyond = facts.probes.iter().any(|probe| probe.other_processes > 0);
    let rest = facts.busiest.all.saturating_sub(SHOWN);
    if rest > 0 {
        let more = if beyond { "more than " } else { "" };
        let s = if rest == 1 { "" } else { "es" };
        let _ = writeln!(out, "and {more}{rest} other process{s}");
    }
}
