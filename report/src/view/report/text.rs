//! A report for people, at most 80 columns wide where names allow.

use usdtrec_format::escape::escape;

use crate::analysis::span_report::facts::SpanFacts;
use crate::analysis::summary::facts::Facts;
use crate::view::head::folded_line;
use crate::view::numbers::duration;
use crate::view::report::spans::span_table;
use crate::view::theme::Look;

/// The report.
pub(crate) fn render(facts: &Facts, look: Look) -> String {
    let mut out = String::new();
    head(facts, look, &mut out);
    if facts.events == 0 {
        out.push_str("\nNo events.\n");
        crate::view::report::probes::reasons(facts, &mut out);
    } else {
        crate::view::report::probes::put(facts, look, &mut out);
        spans(facts, look, &mut out);
        crate::view::report::arguments::put(facts, look, &mut out);
        crate::view::report::busiest::put(facts, look, &mut out);
        crate::view::report::unusual::put(facts, look, &mut out);
    }
    crate::view::report::losses::put(facts, look, &mut out);
    if facts.events > 0 {
        crate::view::report::next::put(facts, look, &mut out);
    }
    out
}

/// The lines with `#` in front that every report begins with.
fn head(facts: &Facts, look: Look, out: &mut String) {
    let line = format!(
        "{}: {} event{} in {}{}, {}",
        escape(&facts.head.file),
        facts.events,
        if facts.events == 1 { "" } else { "s" },
        duration(facts.duration()),
        if facts.recorded.is_some() {
            ""
        } else {
            " from first to last"
        },
        facts.losses.words()
    );
    let line = folded_line(&line);
    if facts.losses.total() > 0 {
        look.put_alarm(&line, out);
    } else {
        look.put_remark(&line, out);
    }
    for line in facts.head.lines() {
        look.put_remark(&folded_line(&line), out);
    }
}

/// A probe's name as a report shows it: without perf's `sdt_`.
pub(crate) fn short(event: &str) -> &str {
    event.strip_prefix("sdt_").unwrap_or(event)
}

/// Names of probes without their providers, where that leaves no two the same.
pub(crate) struct ShortNames {
    bare: bool,
}

impl ShortNames {
    pub(crate) fn new(facts: &Facts) -> Self {
        let bare = facts.probes.iter().map(|probe| bare(&probe.event));
        let mut bare: Vec<&str> = bare.collect();
        let all = bare.len();
        bare.sort_unstable();
        bare.dedup();
        Self {
            bare: bare.len() == all,
        }
    }

    pub(crate) fn of<'e>(&self, event: &'e str) -> &'e str {
        if self.bare { bare(event) } else { short(event) }
    }
}

pub(crate) fn bare(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}

fn spans(facts: &Facts, look: Look, out: &mut String) {
    if facts.spans.iter().any(SpanFacts::is_seen) {
        out.push('\n');
        span_table(&facts.spans, look, out);
    }
}
