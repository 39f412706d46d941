//! A question about the spans of a trace, and where it is asked.

use crate::question::{GroupOrder, SpanQuestion};
use crate::samples::SelectedSamples;
use crate::spans::options::BoundedFigure;
use crate::stats::sketch::Combine;

/// In which order groups are, and how many are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranking {
    pub(crate) order: GroupOrder,
    pub(crate) top: usize,
}

/// A question about the spans of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanRequest<'a> {
    pub(crate) samples: SelectedSamples<'a>,
    pub(crate) question: &'a SpanQuestion,
}

impl SpanRequest<'_> {
    /// In which order groups are, and how many are wanted.
    pub(crate) fn ranking(&self) -> Ranking {
        Ranking {
            order: self.question.order,
            top: self.question.top.unwrap_or(usize::MAX),
        }
    }
}

/// What bounds a figure of a group: figures of its spans, put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) figure: BoundedFigure,
    pub(crate) combine: Combine,
}

impl GroupOrder {
    /// What bounds the figure: spans of a group that are left out cannot make it greater.
    pub(crate) const fn bounded_by(self) -> Bound {
        let (figure, combine) = match self {
            Self::Count => (BoundedFigure::Count, Combine::Sum),
            Self::Total | Self::Sum => (BoundedFigure::Sum, Combine::Sum),
            Self::Own => (BoundedFigure::Own, Combine::Sum),
            Self::Part(part) => (BoundedFigure::Part(part), Combine::Sum),
            _ => (BoundedFigure::Max, Combine::Max),
        };
        Bound { figure, combine }
    }
}
