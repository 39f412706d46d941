//! A hit that begins or ends a span, as the matcher takes it: a window of one hit.

use usdtrec_format::spans::Marks;
use usdtrec_trace::added::hit_step::SpanStep;

use crate::spans::matcher::{MatchKey, PendingEnd, Segment};
use crate::spans::stack::{Base, Frame};
use crate::stats::keys::key::KeyWords;

/// What the span of a step is matched by.
pub(crate) const fn match_key(step: &SpanStep) -> MatchKey {
    let [kind, word] = step.key;
    MatchKey {
        pair: step.pair,
        words: KeyWords::new(kind, word),
    }
}

const fn pending_marks(step: &SpanStep) -> Marks {
    Marks::from_words(step.marks)
}

/// The end of a span, as a step says it.
pub(crate) fn pending_end(step: &SpanStep, time: u64) -> PendingEnd {
    PendingEnd {
        time,
        marks: pending_marks(step),
        ..PendingEnd::default()
    }
}

/// The begin of a span, as a step says it.
pub(crate) fn begun_frame<T>(step: &SpanStep, time: u64, what: T) -> Frame<T> {
    Frame::new(time, pending_marks(step), what)
}

/// A hit as the segment of a window with one hit, which begins a span or not.
pub(crate) fn segment<T>(key: MatchKey, begun: Option<Frame<T>>) -> Segment<T> {
    Segment {
        key,
        rise: usize::from(begun.is_some()),
        base: Base {
            next: begun.as_ref().map(|frame| frame.time),
            ..Base::default()
        },
        begun: begun.into_iter().collect(),
        end: None,
    }
}
