//! A page for browsers: one file that needs nothing else, with the answers of `report`.
//!
//! Whoever opens it did not make the trace: what comes from traced programs is text, never markup, and the page's policy allows no script but its own.
//! Each table has room for so many bytes, so that the page is never larger than two megabytes.
//!
//! The page shows an `Overview` with the words of `report/view/src/report`. `Markup` takes markup as constants alone: what is data
//! goes through the one function that escapes. The policy names the script and the style by their hashes, and a test
//! compares these with the files.

pub(crate) mod flame;
pub(crate) mod heat;
pub(crate) mod histogram;
pub(crate) mod markup;
pub(crate) mod notes;
pub(crate) mod page;
pub(crate) mod redacted;
pub(crate) mod slowest;
pub(crate) mod spans;
pub(crate) mod summary;
pub(crate) mod table;

use std::io::Write;

use usdtrec_analysis::overview::{OverviewQuestion, overview};
use usdtrec_analysis::question::StackKind;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::export_options::ExportOptions;
use crate::html::redacted::redact;
use crate::redaction::RedactedArguments;

/// Writes the page.
pub(crate) fn write(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let redacted = RedactedArguments::new(session, &options.redaction)?;
    let question = OverviewQuestion {
        spans: &options.spans,
        key: &options.key,
        min: options.min,
        // Functions of scripts are named by arguments.
        stacks: match redacted.names_functions() {
            true => StackKind::Native,
            false => StackKind::Auto,
        },
        redaction: &redacted,
    };
    let mut overview = overview(session, selection, question)?;
    redact(&redacted, &mut overview);
    // The spans of the summary are those of all durations.
    let are_chosen = !options.spans.is_empty() || options.min > 0;
    let page = page::page(&overview, are_chosen);
    out.write_all(page.into_string().as_bytes())?;
    out.flush()?;
    Ok(overview.notices)
}
