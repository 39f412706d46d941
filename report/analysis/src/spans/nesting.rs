//! Whether the spans of a pair of probes nest.
//!
//! A begin without an end may be a call that continues, with others in it, or something that was given up and followed by others, as a statement that
//! fails. Both look alike until it is known whether spans of the pair are ever within each other.
//!
//! A begin that waits when the next one under its key comes has ended, unless spans of that pair are calls: in one that
//! ended another began, or the probe's name says so. A statement that fails has no end: it ends where the next begins,
//! at the latest.

use usdtrec_format::spans::begins_call;
use usdtrec_trace::session::TraceSession;

use crate::spans::pair::Pair;
use crate::spans::stack::Frame;

/// Spans that ended, and those of them in which others began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    ended: u64,
    around: u64,
}

impl Nesting {
    /// Counts a span that ended.
    pub(crate) fn add<T>(&mut self, frame: &Frame<T>) {
        self.ended += 1;
        self.around += u64::from(frame.next.is_some());
    }

    /// Number of spans that ended, whether or not they are selected.
    pub(crate) const fn ended(self) -> u64 {
        self.ended
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ended += other.ended;
        self.around += other.around;
    }

    /// Whether spans follow each other, so that a begin ends what is open: in none that ended did another begin, and they are no calls.
    pub(crate) fn is_flat(self, pair: &Pair, session: &TraceSession) -> bool {
        self.is_flat_unless(is_of_calls(pair, session))
    }

    /// The same, where it is known whether they are calls.
    pub(crate) const fn is_flat_unless(self, are_calls: bool) -> bool {
        self.ended > 0 && self.around == 0 && !are_calls
    }
}

/// Whether a pair is of calls of functions.
pub(crate) fn is_of_calls(pair: &Pair, session: &TraceSession) -> bool {
    let mut starts = pair.starts.iter();
    starts.any(|&start| {
        let event = session.events().events.get(start);
        event.is_some_and(|event| begins_call(&event.name))
    })
}
