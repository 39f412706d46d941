//! How two recordings are compared.

use usdtrec_analysis::rows::row_walk::SpanRowQuestion;

use crate::format::Format;
use crate::hints::HintWords;

/// Options of a comparison of two recordings.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The spans that are compared; those that are found by the names of probes if none is named. Those that are shorter do not count.
    pub spans: SpanRowQuestion,
    /// Keys by which spans are also grouped, as of [`SpanQuestion::by`](usdtrec_analysis::question::SpanQuestion::by).
    pub by: Vec<String>,
    /// Smaller changes are not shown, in percent of A's figure.
    pub min: f64,
    /// Whether text also shows what is within noise.
    pub all: bool,
    /// The format.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
    /// The words for hints; text only.
    pub hints: HintWords,
    /// Width of lines of text, columns; `None` for 80.
    pub columns: Option<usize>,
}

impl DiffOptions {
    /// The least change that is shown if nothing is said, in percent.
    pub const MIN: f64 = 5.0;
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            spans: SpanRowQuestion::default(),
            by: Vec::new(),
            min: Self::MIN,
            all: false,
            format: Format::Text,
            colours: false,
            hints: HintWords::default(),
            columns: None,
        }
    }
}
