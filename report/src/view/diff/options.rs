//! How two recordings are compared.

use crate::view::format::Format;
use crate::view::hints::HintWords;

/// How two recordings are compared.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// What spans are grouped by, besides all together: keys as of [`SpanQuestion::by`](crate::question::SpanQuestion::by).
    pub by: Vec<String>,
    /// The least change that is shown as one, in percent of A's figure, however small the noise is.
    pub min: f64,
    /// Whether text shows what is within noise, too.
    pub all: bool,
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub human: bool,
    /// How it looks.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
    /// The words for how to ask for more; text only.
    pub hints: HintWords,
}

impl DiffOptions {
    /// The least change that is shown if nothing is said, in percent.
    pub const MIN: f64 = 5.0;
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            by: Vec::new(),
            min: Self::MIN,
            all: false,
            human: false,
            format: Format::Text,
            colours: false,
            hints: HintWords::default(),
        }
    }
}
