//! When the probes of spans were detached.
//!
//! A span is matched only if none of the probes that begin and end spans of its pair was detached for a part of its time. So none is
//! matched with the end of another one, whose begin was not recorded. A begin that was open when a pause began, and an end without a begin after any
//! pause, touch a pause: the first may have ended in it, and the other may have begun in it or before it, however long ago that is.

use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::paused_times::PausedTimes;

use crate::spans::pair::Pair;

/// When the probes of each pair were detached.
#[derive(Clone, Debug, Default)]
pub struct PairPauses {
    /// `None` if no probes of a pair ever were.
    of_pairs: Option<Arc<HashMap<u32, PausedTimes>>>,
    /// Of a stream, the events of each pair: their pauses become known later.
    of_stream: Arc<[PairEvents]>,
}

/// The events of a pair, with its number.
#[derive(Clone, Debug)]
pub(crate) struct PairEvents {
    pub(crate) number: u32,
    pub(crate) events: Vec<usize>,
}

impl PairPauses {
    /// The pauses of pairs by their places.
    pub(crate) fn new(session: &TraceSession, pairs: &[Pair]) -> Self {
        Self::of_numbered(session, (0..).zip(pairs))
    }

    /// The pauses of pairs with these numbers.
    pub(crate) fn of_numbered<'p>(
        session: &TraceSession,
        pairs: impl Iterator<Item = (u32, &'p Pair)>,
    ) -> Self {
        let events = pairs.map(|(number, pair)| PairEvents {
            number,
            events: pair.starts.iter().chain(&pair.dones).copied().collect(),
        });
        Self::of_events(session, events.collect())
    }

    /// The pauses of the events of pairs.
    pub(crate) fn of_events(session: &TraceSession, events: Arc<[PairEvents]>) -> Self {
        let pauses = session.pauses();
        let of_pairs = events.iter().filter(|_| !pauses.is_empty());
        let of_pairs = of_pairs.map(|pair| (pair.number, pauses.of_any(&pair.events)));
        let of_pairs = of_pairs.filter(|(_, paused)| !paused.is_empty());
        let of_pairs: HashMap<u32, PausedTimes> = of_pairs.collect();
        let is_stream = session.blocks().is_empty();
        Self {
            of_pairs: (!of_pairs.is_empty()).then(|| Arc::new(of_pairs)),
            of_stream: if is_stream { events } else { Arc::default() },
        }
    }

    /// Takes those of a stream that have become known.
    pub(crate) fn renew(&mut self, session: &TraceSession) {
        if !self.of_stream.is_empty() {
            *self = Self::of_events(session, Arc::clone(&self.of_stream));
        }
    }

    /// Whether no probe of any pair was ever detached.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.of_pairs.is_none()
    }

    fn of_pair(&self, pair: u32) -> Option<&PausedTimes> {
        self.of_pairs.as_ref()?.get(&pair)
    }

    /// The first pause of a pair of which a part is between two times.
    pub(crate) fn between(&self, pair: u32, from: u64, to: u64) -> Option<TimeRange> {
        self.of_pair(pair)?.between(from, to)
    }

    /// Until when a span of a pair is known to be open that began at a time and has not ended at another one, ns; `None` if no pause is between the two.
    pub(crate) fn known_until(&self, pair: u32, begin: u64, to: u64) -> Option<u64> {
        let pause = self.between(pair, begin, to)?;
        // Of a pair of which one probe was detached, the span may begin in the pause.
        Some(pause.first.max(begin))
    }

    /// Whether a pause of a pair began before a time.
    pub(crate) fn begin_before(&self, pair: u32, time: u64) -> bool {
        let pauses = self.of_pair(pair);
        pauses.is_some_and(|pauses| pauses.begin_before(time))
    }
}
