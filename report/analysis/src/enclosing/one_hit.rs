//! A hit that begins or ends a span, as the matcher takes it: a window of one hit.

use usdtrec_trace::added::hit_step::SpanStep;

use crate::spans::marks::Marks;
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

/// A step as the segment of a window with one hit.
pub(crate) fn segment<T>(key: MatchKey, step: &SpanStep, time: u64, what: T) -> Segment<T> {
    let begins = step.begin.is_some();
    let begun = begins.then(|| Frame::new(time, pending_marks(step), what));
    Segment {
        key,
        rise: usize::from(begins),
        base: Base {
            next: begins.then_some(time),
            ..Base::default()
        },
        begun: begun.into_iter().collect(),
        end: (!begins).then(|| pending_end(step, time)),
    }
}
