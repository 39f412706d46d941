//! Rows of one window after the other, with the spans that are open between windows.

use std::io;

use usdtrec_format::trace::TimeRange;
use usdtrec_trace::session::TraceSession;

use crate::rows::hit_row::{HitTable, OwnedHit, RowHit};
use crate::rows::row_sink::{RowSide, RowSink, SpanClose, SpanFate, SpanRow};
use crate::rows::row_window::overlaps;
use crate::rows::window_rows::{BegunHit, RowItem, WindowRows};
use crate::spans::matcher::{OpenSpans, PendingEnd, Segment};
use crate::spans::nesting::Nesting;
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::stack::{Ended, Frame, Totals};

/// Maximum number of begins before pauses that are kept up to the end of the trace.
const MAX_PAUSED: usize = 1 << 20;

/// What an open span has of its begin; `None` if it is not selected.
type KeptBegin = Option<Box<OwnedHit>>;

/// Hands the rows of windows to a sink, the same one for all.
#[derive(Debug)]
pub(crate) struct RowsAcross {
    open: OpenSpans<KeptBegin>,
    /// The times that are selected: those of a part of each span.
    time: TimeRange,
    /// Of each pair, whether its spans are within each other.
    nesting: Vec<Nesting>,
    paused: PausedBegins,
    /// Hits of the windows before.
    hits: u64,
    /// Samples that belong to no event of the trace.
    pub(crate) unknown: u64,
}

/// What is known of a hit whose spans are matched across windows.
#[derive(Clone, Copy, Default)]
struct PendingSides {
    hit: Option<usize>,
    matched: bool,
    unmatched: bool,
}

/// An end that is matched across windows.
#[derive(Clone, Copy, Default)]
struct PendingHit<'h> {
    /// Its hit; `None` if spans that it ends are not selected.
    hit: Option<RowHit<'h>>,
    end: Option<&'h PendingEnd>,
}

/// Spans that were open when a pause of their probes began. They go to the sink at the end of the trace: where they are found depends on the windows.
#[derive(Debug, Default)]
struct PausedBegins {
    begins: Vec<PausedBegin>,
    /// Number of those beyond the maximum.
    forgotten: u64,
}

/// A span that was open when a pause of its probes began.
#[derive(Debug)]
struct PausedBegin {
    pair: usize,
    begin: Box<OwnedHit>,
    /// When the next span of its key began before the pause, ns.
    next: Option<u64>,
    /// Until when it is known to be open: the pause began, ns.
    until: u64,
}

impl PausedBegins {
    fn push(&mut self, begin: PausedBegin) {
        match self.begins.len() < MAX_PAUSED {
            true => self.begins.push(begin),
            false => self.forgotten += 1,
        }
    }
}

/// A span without an end at the end of the trace.
struct Unended<'a> {
    pair: usize,
    begin: &'a OwnedHit,
    /// When the next span of its key began, if that ended it, ns.
    next: Option<u64>,
    /// Until when it is known to be open, if there is a pause after its begin, ns.
    paused: Option<u64>,
}

impl Unended<'_> {
    const fn fate(&self) -> SpanFate {
        match (self.next, self.paused) {
            (Some(_), _) => SpanFate::Unfinished,
            (None, Some(_)) => SpanFate::Paused,
            (None, None) => SpanFate::Open,
        }
    }

    fn until(&self) -> Option<u64> {
        self.next.or(self.paused)
    }
}

/// Hands the spans to a sink that an end closes.
struct Closing<'c> {
    sink: &'c mut dyn RowSink,
    nesting: Option<&'c mut Nesting>,
    paused: &'c mut PausedBegins,
    pair: usize,
    /// `None` if spans that this hit ends are not selected.
    end: Option<RowHit<'c>>,
    /// The times that are selected.
    time: TimeRange,
    written: io::Result<()>,
}

impl Closing<'_> {
    fn put(&mut self, span: SpanRow<'_>) {
        if self.written.is_ok() {
            self.written = self.sink.span(span);
        }
    }
}

impl Totals<KeptBegin> for Closing<'_> {
    fn unfinished(&mut self, frame: &Frame<KeptBegin>, until: u64) {
        let begun = frame.what.as_ref();
        if let Some(begun) = begun.filter(|_| overlaps(self.time, frame.time, until)) {
            self.put(SpanRow {
                pair: self.pair,
                fate: SpanFate::Unfinished,
                begin: begun.hit(),
                end: None,
                until: Some(until),
            });
        }
    }

    fn paused(&mut self, frame: Frame<KeptBegin>, until: u64) {
        if let Some(begin) = frame.what {
            self.paused.push(PausedBegin {
                pair: self.pair,
                begin,
                next: frame.next,
                until,
            });
        }
    }

    fn finished(&mut self, frame: &mut Frame<KeptBegin>, Ended { duration, own }: Ended) {
        if let Some(nesting) = &mut self.nesting {
            nesting.add(frame);
        }
        let end = frame.time.saturating_add(duration);
        if let (Some(begun), Some(hit)) = (&frame.what, self.end)
            && overlaps(self.time, frame.time, end)
        {
            self.put(SpanRow {
                pair: self.pair,
                fate: SpanFate::Ended,
                begin: begun.hit(),
                end: Some(SpanClose { hit, duration, own }),
                until: None,
            });
        }
    }
}

impl RowsAcross {
    /// Spans of so many pairs go to the sink if a part of them is in a time.
    pub(crate) fn new(time: TimeRange, pairs: usize, pauses: PairPauses) -> Self {
        Self::with(OpenSpans::new(false, pauses), time, pairs)
    }

    /// The same of a stream, which may never end: of more open spans than so many the older half is dropped.
    pub(crate) fn of_stream(time: TimeRange, most_open: usize) -> Self {
        Self::with(OpenSpans::bounded(most_open), time, 0)
    }

    fn with(open: OpenSpans<KeptBegin>, time: TimeRange, pairs: usize) -> Self {
        Self {
            open,
            time,
            nesting: vec![Nesting::default(); pairs],
            paused: PausedBegins::default(),
            hits: 0,
            unknown: 0,
        }
    }

    /// Takes when probes were detached, as far as a stream says it.
    pub(crate) fn set_pauses(&mut self, pauses: PairPauses) {
        self.open.pauses = pauses;
    }

    /// Takes the times that are selected.
    pub(crate) const fn set_time(&mut self, time: TimeRange) {
        self.time = time;
    }

    /// Drops the older half of the open spans if those of a window are too many besides them.
    pub(crate) fn make_room(&mut self, window: &WindowRows) {
        let begun = window.segments.iter().map(|segment| segment.begun.len());
        if self.open.is_full(begun.sum()) {
            self.open.forget_older();
        }
    }

    /// Takes the rows of the next window.
    pub(crate) fn take(
        &mut self,
        window: &mut WindowRows,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        if self.nesting.len() < window.nesting.len() {
            self.nesting
                .resize(window.nesting.len(), Nesting::default());
        }
        for (all, of_window) in self.nesting.iter_mut().zip(&window.nesting) {
            all.merge(*of_window);
        }
        let hits = &window.hits;
        let mut segments = std::mem::take(&mut window.segments).into_iter();
        let mut sides = PendingSides::default();
        for item in &window.items {
            match *item {
                RowItem::Pending { end } => {
                    for segment in segments.by_ref() {
                        // What a pause ended in the window.
                        if segment.end.is_none() {
                            self.carry(segment, hits, sink)?;
                            continue;
                        }
                        if sides.hit != Some(end) {
                            sides = PendingSides {
                                hit: Some(end),
                                ..PendingSides::default()
                            };
                        }
                        let unmatched = self.close(segment, hits, end, sink)?;
                        sides.unmatched |= unmatched;
                        sides.matched |= !unmatched;
                        break;
                    }
                }
                RowItem::Event { hit, of_span } => {
                    let pending = Some(sides).filter(|sides| sides.hit == Some(hit));
                    let pending = pending.unwrap_or_default();
                    let side = match of_span || pending.matched {
                        _ if pending.unmatched => RowSide::NoBegin,
                        true => RowSide::OfSpan,
                        false => RowSide::Apart,
                    };
                    if let Some(hit) = hits.hit(hit) {
                        sink.event(hit, side)?;
                    }
                }
                item => in_window(item, hits, sink)?,
            }
        }
        for segment in segments {
            self.carry(segment, hits, sink)?;
        }
        self.hits += hits.len() as u64;
        self.unknown += window.unknown;
        Ok(())
    }

    /// Takes what a window left of a key up to an end. Returns whether the end has no begin.
    fn close(
        &mut self,
        mut segment: Segment<BegunHit>,
        hits: &HitTable,
        end: usize,
        sink: &mut dyn RowSink,
    ) -> io::Result<bool> {
        let pending = segment.end.take();
        let asked = pending.as_ref().is_some_and(|pending| pending.asked);
        let hit = hits.hit(end).filter(|_| asked);
        let end = PendingHit {
            hit,
            end: pending.as_ref(),
        };
        self.add(segment, hits, end, sink)
    }

    /// Takes what a window left of a key at its end.
    fn carry(
        &mut self,
        segment: Segment<BegunHit>,
        hits: &HitTable,
        sink: &mut dyn RowSink,
    ) -> io::Result<bool> {
        self.add(segment, hits, PendingHit::default(), sink)
    }

    fn add(
        &mut self,
        segment: Segment<BegunHit>,
        hits: &HitTable,
        PendingHit { hit, end }: PendingHit<'_>,
        sink: &mut dyn RowSink,
    ) -> io::Result<bool> {
        let mut closing = Closing {
            sink,
            nesting: self.nesting.get_mut(segment.key.pair as usize),
            paused: &mut self.paused,
            pair: segment.key.pair as usize,
            end: hit,
            time: self.time,
            written: Ok(()),
        };
        let first = self.hits;
        let own = |begun: BegunHit| {
            let begun = begun?;
            let hit = hits.hit(begun)?;
            Some(hit.owned(first + begun as u64))
        };
        let outcome = self.open.take(segment.map(own), end, &mut closing);
        closing.written.map(|()| outcome.unmatched)
    }

    /// Hands over what has no end at the end of the trace. Returns how many begins were not matched because too many were open.
    pub(crate) fn finish(
        self,
        pairs: &[Pair],
        session: &TraceSession,
        sink: &mut dyn RowSink,
    ) -> io::Result<u64> {
        let flat = pairs.iter().zip(&self.nesting);
        let flat = flat.map(|(pair, nesting)| nesting.is_flat(pair, session));
        let flat: Vec<bool> = flat.collect();
        let followed =
            |pair: usize, next: Option<u64>| next.filter(|_| flat.get(pair) == Some(&true));
        let open = self.open.frames().filter_map(|(key, frame)| {
            let pair = key.pair as usize;
            let pauses = &self.open.pauses;
            Some(Unended {
                pair,
                begin: frame.what.as_ref()?,
                next: followed(pair, frame.next),
                paused: pauses.known_until(key.pair, frame.time, u64::MAX),
            })
        });
        let paused = self.paused.begins.iter().map(|paused| Unended {
            pair: paused.pair,
            begin: &paused.begin,
            next: followed(paused.pair, paused.next),
            paused: Some(paused.until),
        });
        let begun = open.chain(paused).filter(|begun| {
            let until = begun.until().unwrap_or(u64::MAX);
            overlaps(self.time, begun.begin.hit().row.time, until)
        });
        let mut begun: Vec<_> = begun.collect();
        begun.sort_unstable_by_key(|begun| (begun.begin.number, begun.pair));
        for begun in begun {
            sink.span(SpanRow {
                pair: begun.pair,
                fate: begun.fate(),
                begin: begun.begin.hit(),
                end: None,
                until: begun.until(),
            })?;
        }
        Ok(self.open.forgotten + self.paused.forgotten)
    }
}

/// Hands over a span that began and ended, or is known to have no end, in the window.
fn in_window(item: RowItem, hits: &HitTable, sink: &mut dyn RowSink) -> io::Result<()> {
    let (pair, begin, end, until) = match item {
        RowItem::Ended {
            pair,
            begin,
            end,
            own,
        } => (pair, begin, Some((end, own)), None),
        RowItem::Unfinished { pair, begin, until } => (pair, begin, None, Some(until)),
        RowItem::Pending { .. } | RowItem::Event { .. } => return Ok(()),
    };
    let Some(begin) = hits.hit(begin) else {
        return Ok(());
    };
    let end = end.and_then(|(end, own)| {
        let hit = hits.hit(end)?;
        Some(SpanClose {
            hit,
            duration: hit.row.time.saturating_sub(begin.row.time),
            own,
        })
    });
    sink.span(SpanRow {
        pair: pair as usize,
        fate: match end {
            Some(_) => SpanFate::Ended,
            None => SpanFate::Unfinished,
        },
        begin,
        end,
        until,
    })
}
