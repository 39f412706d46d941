//! The summary of a trace as text.

use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_format::escape::escape;

use crate::answer_style::AnswerStyle;
use crate::head::{self, folded_line};
use crate::theme::Theme;

/// The summary as text. `trace` are the words that name the trace in suggested questions, if any.
pub(crate) fn render(facts: &SummaryFacts, style: AnswerStyle, trace: Option<&str>) -> String {
    let AnswerStyle { theme, .. } = style;
    let mut out = String::new();
    put_head(facts, theme, &mut out);
    if facts.events == 0 {
        out.push_str("\nNo events.\n");
        crate::report::probes::reasons(facts, style, &mut out);
    } else {
        crate::report::probes::put(facts, style, &mut out);
        let spans: Vec<_> = facts.spans.iter().collect();
        if spans.iter().any(|span| span.counts.is_seen()) {
            out.push('\n');
            crate::report::spans::put(&spans, style, &mut out);
        }
        crate::report::arguments::put(facts, theme, &mut out);
        crate::report::busiest::put(facts, theme, &mut out);
        crate::report::unusual::put(facts, theme, &mut out);
    }
    crate::report::losses::put(facts, theme, &mut out);
    if let Some(trace) = trace.filter(|_| facts.events > 0) {
        crate::report::suggestions::put(facts, style, trace, &mut out);
    }
    out
}

/// The lines with `#` in front that every report begins with.
fn put_head(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    let totals = head::totals(
        facts.events,
        facts.duration(),
        facts.recorded.is_some(),
        &facts.losses.ledger,
    );
    let line = folded_line(&format!("{}: {totals}", escape(&facts.origin.file)), theme);
    theme.put_totals(&line, facts.losses.ledger.total(), out);
    for line in head::lines(&facts.origin) {
        theme.put_remark(&folded_line(&line, theme), out);
    }
}
