//! Rows of one window after the other, with the spans that are open between windows.

use std::io;

use usdtrec_format::trace::TimeRange;
use usdtrec_trace::process::hit_names::HitNames;
use usdtrec_trace::session::TraceSession;

use crate::rows::hit_row::{HitTable, OwnedHit, RowHit};
use crate::rows::paused_begins::{PairNesting, PausedBegin, PausedBegins, Unended};
use crate::rows::row_sink::{RowSide, RowSink, SpanClose, SpanFate, SpanRow};
use crate::rows::unmatched_segments::{PauseLook, UnmatchedSegments};
use crate::rows::window_rows::{BegunHit, RowItem, WindowRows};
use crate::spans::counting::overlaps;
use crate::spans::matcher::{OpenSpans, PausedFrame, PendingEnd, Segment};
use crate::spans::nesting::is_of_calls;
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::stack::{Ended, Frame, Totals};

/// Maximum number of spans of a file that were open when a pause began and are kept up to its end.
const MAX_PAUSED: usize = 1 << 20;

/// What an open span has of its begin; `None` if it is not selected.
type KeptBegin = Option<Box<OwnedHit>>;

/// Hands the rows of windows to a sink, the same one for all.
#[derive(Debug)]
pub(crate) struct RowsAcross {
    open: OpenSpans<KeptBegin>,
    /// The times that are selected: those of a part of each span.
    time: TimeRange,
    /// Of each pair.
    nesting: Vec<PairNesting>,
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

/// Hands the spans to a sink that an end closes.
struct Closing<'c> {
    sink: &'c mut dyn RowSink,
    nesting: &'c mut [PairNesting],
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
        let Some(begin) = frame.what.filter(|_| self.written.is_ok()) else {
            return;
        };
        let paused = PausedBegin {
            pair: self.pair,
            begin,
            next: frame.next,
            until,
        };
        self.written = self.paused.add(paused, self.nesting, self.time, self.sink);
    }

    fn finished(&mut self, frame: &mut Frame<KeptBegin>, ended: Ended) {
        let Ended {
            duration,
            own,
            spent,
        } = ended;
        if let Some(pair) = self.nesting.get_mut(self.pair) {
            pair.nesting.add(frame);
        }
        let end = frame.time.saturating_add(duration);
        if let (Some(begun), Some(hit)) = (&frame.what, self.end)
            && overlaps(self.time, frame.time, end)
        {
            self.put(SpanRow {
                pair: self.pair,
                fate: SpanFate::Ended,
                begin: begun.hit(),
                end: Some(SpanClose {
                    hit,
                    duration,
                    own,
                    spent,
                }),
                until: None,
            });
        }
    }
}

impl RowsAcross {
    /// Spans of these pairs go to the sink if a part of them is in a time.
    pub(crate) fn new(
        time: TimeRange,
        pairs: &[Pair],
        session: &TraceSession,
        pauses: PairPauses,
    ) -> Self {
        let open = OpenSpans::new(false, pauses);
        let mut across = Self::with(open, time, PausedBegins::new(MAX_PAUSED, false));
        across.set_pairs(pairs, session);
        across
    }

    /// The same of a stream, which may never end: of more open spans than so many the older half is dropped.
    pub(crate) fn of_stream(time: TimeRange, most_open: usize) -> Self {
        let paused = PausedBegins::new(most_open, true);
        Self::with(OpenSpans::bounded(most_open), time, paused)
    }

    fn with(open: OpenSpans<KeptBegin>, time: TimeRange, paused: PausedBegins) -> Self {
        Self {
            open,
            time,
            nesting: Vec::new(),
            paused,
            hits: 0,
            unknown: 0,
        }
    }

    /// Takes the pairs of probes. Those that it has keep their numbers.
    pub(crate) fn set_pairs(&mut self, pairs: &[Pair], session: &TraceSession) {
        self.nesting.resize(pairs.len(), PairNesting::default());
        for (of_pair, pair) in self.nesting.iter_mut().zip(pairs) {
            of_pair.are_calls = is_of_calls(pair, session);
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

    /// The names of the begins that are kept.
    pub(crate) fn kept_names(&mut self) -> Vec<HitNames<'_>> {
        let open = self.open.all_mut().flatten();
        let paused = self.paused.begins.iter_mut();
        let paused = paused.map(|paused| &mut paused.begin);
        let begins = open.chain(paused);
        begins.map(|begin| begin.names_mut()).collect()
    }

    /// Makes room if the open spans of a window are too many besides those that are open: what was open when a pause began, up to the time of the
    /// latest hit so far, goes to a sink. If that is not enough, the older half is dropped when they are taken.
    pub(crate) fn make_room(
        &mut self,
        window: &WindowRows,
        latest: u64,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        let begun = window.segments.iter().map(|segment| segment.begun.len());
        let begun = begun.sum();
        if !self.open.is_full(begun) {
            return Ok(());
        }
        let paused = self.open.take_paused(latest).into_iter();
        let paused = paused.filter_map(|PausedFrame { pair, frame, until }| {
            Some(PausedBegin {
                pair: pair as usize,
                begin: frame.what?,
                next: frame.next,
                until,
            })
        });
        let mut paused: Vec<PausedBegin> = paused.collect();
        paused.sort_unstable_by_key(PausedBegin::place);
        for begin in paused {
            self.paused.add(begin, &self.nesting, self.time, sink)?;
        }
        Ok(())
    }

    /// Takes the rows of the next window.
    pub(crate) fn take(
        &mut self,
        window: &mut WindowRows,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        for (pair, of_window) in self.nesting.iter_mut().zip(&window.nesting) {
            pair.nesting.merge(*of_window);
        }
        let hits = &window.hits;
        let segments = std::mem::take(&mut window.segments);
        let looks = self.paused.at_once && !self.open.pauses.is_empty();
        let mut segments = UnmatchedSegments::new(segments, looks);
        let mut sides = PendingSides::default();
        for item in &window.items {
            if segments.has_looks() {
                self.look(&mut segments, item.time(hits), hits, sink)?;
            }
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
        self.look(&mut segments, None, hits, sink)?;
        for segment in segments {
            self.carry(segment, hits, sink)?;
        }
        self.hits += hits.len() as u64;
        self.unknown += window.unknown;
        Ok(())
    }

    /// Passes on the spans that pauses ended, as far as hits of a window before a time show it; all hits if the time is `None`.
    fn look(
        &mut self,
        segments: &mut UnmatchedSegments,
        before: Option<u64>,
        hits: &HitTable,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        while let Some(PauseLook { time, key }) = segments.next_look(before) {
            while let Some(segment) = segments.next_cut(time) {
                self.carry(segment, hits, sink)?;
            }
            let mut closing = Closing {
                sink,
                nesting: &mut self.nesting,
                paused: &mut self.paused,
                pair: key.pair as usize,
                end: None,
                time: self.time,
                written: Ok(()),
            };
            self.open.pause(key, time, &mut closing);
            closing.written?;
        }
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
            nesting: &mut self.nesting,
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

    /// Passes on the spans that have no end at the end of the trace. Returns how many begins were not matched because too many were open.
    pub(crate) fn finish(self, sink: &mut dyn RowSink) -> io::Result<u64> {
        let open = self.open.frames().filter_map(|(key, frame)| {
            let pair = key.pair as usize;
            let nesting = self.nesting.get(pair).copied().unwrap_or_default();
            let pauses = &self.open.pauses;
            Some(Unended {
                pair,
                begin: frame.what.as_ref()?,
                next: nesting.followed(frame.next),
                paused: pauses.known_until(key.pair, frame.time, u64::MAX),
            })
        });
        let paused = self.paused.begins.iter();
        let paused = paused.map(|paused| paused.unended(&self.nesting));
        let mut begun: Vec<_> = open.chain(paused).collect();
        begun.sort_unstable_by_key(Unended::place);
        for begun in begun {
            begun.put(self.time, sink)?;
        }
        Ok(self.open.forgotten())
    }
}

/// Passes on a span that began and ended, or is known to have no end, in the window.
fn in_window(item: RowItem, hits: &HitTable, sink: &mut dyn RowSink) -> io::Result<()> {
    let (pair, begin, end, until) = match item {
        RowItem::Ended {
            pair,
            begin,
            end,
            own,
            spent,
        } => (pair, begin, Some((end, own, spent)), None),
        RowItem::Unfinished { pair, begin, until } => (pair, begin, None, Some(until)),
        RowItem::Pending { .. } | RowItem::Event { .. } => return Ok(()),
    };
    let Some(begin) = hits.hit(begin) else {
        return Ok(());
    };
    let end = end.and_then(|(end, own, spent)| {
        let hit = hits.hit(end)?;
        Some(SpanClose {
            hit,
            duration: hit.row.time.saturating_sub(begin.row.time),
            own,
            spent,
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
