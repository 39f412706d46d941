//! A comparison of two traces as text, JSON and CSV.

pub(crate) mod data;
pub(crate) mod head;
pub(crate) mod headline;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod spent;
pub(crate) mod table;
pub(crate) mod text;

use std::io::Write;

use usdtrec_analysis::diff::compare;
use usdtrec_analysis::diff::compare_question::CompareQuestion;
use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::sides::Sides;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::format::Format;

pub use crate::diff::options::DiffOptions;

/// Compares the selected samples of recordings `a` and `b`, and prints what differs.
///
/// # Errors
/// [`ReportError::Question`] if neither has an event, argument or span that is requested, if times are requested (not parts of each
/// recording), or if one has no key to group by, [`ReportError::Write`] if `out` fails.
pub fn print(
    a: &TraceSession,
    b: &TraceSession,
    selection: &EventSelection,
    options: &DiffOptions,
    out: &mut dyn Write,
) -> Result<Comparison, ReportError> {
    let question = CompareQuestion {
        spans: &options.spans,
        by: &options.by,
    };
    let comparison = compare(Sides { a, b }, selection, question)?;
    let text = match options.format {
        Format::Text => text::render(&comparison, options),
        Format::Json => data::json(&comparison, options),
        format => data::csv(format.csv(), &comparison, options),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(comparison)
}
