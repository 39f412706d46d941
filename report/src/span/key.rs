//! What the beginning and the end of a span have in common.

use usdtrec_format::perf::Sample;

use crate::report::groups::{Dictionary, Key, Words};
use crate::report::summary::Rows;
use crate::session::{Resolver, Target};

/// What the beginning and the end of a span have in common.
#[derive(Clone, Debug, Default)]
pub(crate) enum SpanKey {
    /// The thread.
    #[default]
    Thread,
    /// A value, whoever has it.
    Value(Key),
    /// A value that means something within its process.
    InProcess(Key),
}

impl SpanKey {
    /// Its name for `--key`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Thread => "tid",
            Self::Value(key) | Self::InProcess(key) => key.name(),
        }
    }

    /// Whether few samples have another key than their neighbours.
    pub(super) const fn is_coarse(&self) -> bool {
        matches!(self, Self::Thread | Self::Value(Key::Pid | Key::Tid))
    }

    /// The words that tell a hit's span from others; `None` if it has none.
    #[inline]
    pub(crate) fn words(
        &self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        (target, sample): (Target, &Sample<'_>),
        dictionary: &Dictionary,
    ) -> Option<Words> {
        let (key, process) = match self {
            Self::Thread => return Some((0, u64::from(sample.tid.cast_unsigned()))),
            Self::Value(key) => (key, 0),
            Self::InProcess(key) => (key, sample.pid.cast_unsigned()),
        };
        let words = key.words(rows, resolver, target, sample, dictionary);
        // Without a value, or a text that is not told apart, it could be anybody's.
        Key::is_told(words).then_some((words.0 | u64::from(process) << 32, words.1))
    }
}
