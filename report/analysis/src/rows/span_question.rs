//! Which spans are rows.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::session::TraceSession;

use crate::spans::pair::Pair;

/// Which spans are rows, without events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanRowQuestion {
    /// `START..DONE`, or names of those that are found by the names of probes, with globs.
    pub spans: Vec<String>,
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Duration of the shortest ones, ns; with 0, those without an end are rows, too.
    pub least: u64,
}

impl SpanRowQuestion {
    /// The spans of the events that `of` says.
    ///
    /// # Errors
    /// [`ReportError::Question`] if there are none of a name.
    pub(crate) fn pairs(
        &self,
        session: &TraceSession,
        of: impl Fn(usize) -> bool,
    ) -> Result<Vec<Pair>, ReportError> {
        asked_pairs(&self.spans, session, of)
    }
}

/// The spans that are asked for, of the events that `of` says.
///
/// # Errors
/// [`ReportError::Question`] if there are none of a name.
pub(crate) fn asked_pairs(
    spans: &[String],
    session: &TraceSession,
    of: impl Fn(usize) -> bool,
) -> Result<Vec<Pair>, ReportError> {
    let mut pairs: Vec<Pair> = Vec::new();
    for text in spans {
        for pair in Pair::asked_of(text, session, &of)? {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}
