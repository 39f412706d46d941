//! A report for people, at most 80 columns wide where names allow.

use usdtrec_format::escape::escape;

use crate::analysis::span_report::facts::SpanFacts;
use crate::analysis::summary::facts::Facts;
use crate::view::head::{self, folded_line};
use crate::view::losses::words;
use crate::view::numbers::duration;
use crate::view::report::spans::span_table;
use crate::view::theme::Look;

/// The report.
pub(crate) fn render(facts: &Facts, human: bool, look: Look) -> String {
    let mut out = String::new();
    put_head(facts, look, &mut out);
    if facts.events == 0 {
        out.push_str("\nNo events.\n");
        crate::view::report::probes::reasons(facts, &mut out);
    } else {
        crate::view::report::probes::put(facts, look, &mut out);
        spans(facts, look, &mut out);
        crate::view::report::arguments::put(facts, human, look, &mut out);
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
fn put_head(facts: &Facts, look: Look, out: &mut String) {
    let line = format!(
        "{}: {} event{} in {}{}, {}",
        escape(&facts.origin.file),
        facts.events,
        if facts.events == 1 { "" } else { "s" },
        duration(facts.duration()),
        if facts.recorded.is_some() {
            ""
        } else {
            " from first to last"
        },
        words(&facts.losses)
    );
    let line = folded_line(&line);
    if facts.losses.total() > 0 {
        look.put_alarm(&line, out);
    } else {
        look.put_remark(&line, out);
    }
    for line in head::lines(&facts.origin) {
        look.put_remark(&folded_line(&line), out);
    }
}

fn spans(facts: &Facts, look: Look, out: &mut String) {
    if facts.spans.iter().any(SpanFacts::is_seen) {
        out.push('\n');
        span_table(&facts.spans, look, out);
    }
}
