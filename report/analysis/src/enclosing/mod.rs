//! Spans whose arguments other hits get: those of the span that encloses a hit on its thread.
//!
//! Spans are matched as they are everywhere: a hit is in the newest span of its thread that has begun and not ended. The hit that
//! ends a span is in it. Where spans overlap on one thread, by an id, a hit between is in one of those that are open, and nothing says in which: it is
//! not known unless one is open. A span that is given up and followed by another one, as a statement that fails is, has ended where that
//! begins (`spans/nesting.rs`). Whether the spans of a pair are such is known at the end of the trace; so a file is walked over
//! once before. That walk finds the ends without a begin, too: what is before one of them may be in its span, whose begin is not known.
//! Of a stream, that is known of the hits so far alone.

pub(crate) mod arguments;
pub(crate) mod one_hit;
pub(crate) mod parts;
pub(crate) mod roles;
pub(crate) mod state;
pub(crate) mod survey;
pub(crate) mod threads;
