//! Making rows of a window of samples.

use usdtrec_format::Value;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::events::order::Window;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::resolver::Resolver;

use crate::rows::hit_row::{HitRow, HitTable};
use crate::rows::window_rows::{BegunHit, RowItem, WindowRows};
use crate::spans::counting::overlaps;
use crate::spans::key::{HitKey, SpanKey};
use crate::spans::matcher::{MatchKey, PendingEnd, SpanMatcher};
use crate::spans::nesting::Nesting;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::spans::stack::{Ended, Frame, Totals};
use crate::stats::keys::dictionary::Dictionary;

/// What rows are made of.
#[derive(Debug)]
pub(crate) struct RowSource {
    pub(crate) filter: SampleFilter,
    /// Of each event, what it is to which pair of probes.
    pub(crate) roles: Vec<Vec<Role>>,
    /// Of each pair, what begins and ends have in common.
    pub(crate) keys: Vec<SpanKey>,
    pub(crate) rows: Rows,
    pub(crate) dictionary: Dictionary,
    /// Whether events are rows; else spans alone.
    pub(crate) events: bool,
    /// Whether rows have stacks.
    pub(crate) stacks: bool,
    /// Value of an argument of a site that is not known.
    pub(crate) unknown: Value,
}

/// State of a thread.
pub struct RowWorker<'s> {
    pub(crate) resolver: Resolver<'s>,
    matcher: SpanMatcher<BegunHit>,
    unknown: Vec<Value>,
}

/// Puts the spans that a hit of the window ends among its items.
struct EndedInWindow<'w> {
    items: &'w mut Vec<RowItem>,
    nesting: Option<&'w mut Nesting>,
    pair: u32,
    /// `None` if spans that this hit ends are not selected.
    end: Option<usize>,
    /// The times that are selected: those of a part of each span.
    time: TimeRange,
}

impl Totals<BegunHit> for EndedInWindow<'_> {
    fn unfinished(&mut self, frame: &Frame<BegunHit>, until: u64) {
        let pair = self.pair;
        let begun = frame
            .what
            .filter(|_| overlaps(self.time, frame.time, until));
        let item = begun.map(|begin| RowItem::Unfinished { pair, begin, until });
        self.items.extend(item);
    }

    fn finished(&mut self, frame: &mut Frame<BegunHit>, ended: Ended) {
        let Ended {
            duration,
            own,
            spent,
        } = ended;
        if let Some(nesting) = &mut self.nesting {
            nesting.add(frame);
        }
        let pair = self.pair;
        let both = frame.what.zip(self.end);
        let end = frame.time.saturating_add(duration);
        let both = both.filter(|_| overlaps(self.time, frame.time, end));
        self.items.extend(both.map(|(begin, end)| RowItem::Ended {
            pair,
            begin,
            end,
            own,
            spent,
        }));
    }
}

/// A hit of the window that becomes a row when something needs it.
struct LazyRow<'h> {
    // Borrowed: a copy would wait until the hit's fields are stored.
    hit: &'h Hit<'h>,
    row: Option<usize>,
}

impl<'s> RowWorker<'s> {
    /// A worker without open spans.
    pub(crate) fn new(session: &'s TraceSession, pauses: PairPauses) -> Self {
        Self {
            resolver: Resolver::new(session),
            matcher: SpanMatcher::new(false, pauses),
            unknown: Vec::new(),
        }
    }

    /// Ends a window of samples.
    pub(crate) fn end_window(&mut self, rows: &mut WindowRows) {
        rows.segments = self.matcher.take();
    }
}

impl RowSource {
    /// Makes rows of a window.
    pub(crate) fn window(
        &self,
        worker: &mut RowWorker<'_>,
        window: Window<'_>,
        rows: &mut WindowRows,
    ) {
        let session = worker.resolver.session();
        self.begin_window(rows);
        for (number, body) in window.bodies().enumerate() {
            worker.resolver.set_context(window.context(number));
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                rows.unknown += 1;
                continue;
            };
            let hit = Hit {
                target,
                sample: &sample,
            };
            self.sample(worker, hit, rows);
        }
        worker.end_window(rows);
    }

    /// Begins a window, whose rows are empty.
    pub(crate) fn begin_window(&self, rows: &mut WindowRows) {
        rows.nesting.resize(self.keys.len(), Nesting::default());
    }

    /// Makes rows of the next sample of a window.
    #[inline]
    pub(crate) fn sample(&self, worker: &mut RowWorker<'_>, hit: Hit<'_>, rows: &mut WindowRows) {
        let Hit { target, sample } = hit;
        let event = target.event as usize;
        // Begins count although their event is not among those requested, as with report --span.
        let passes =
            self.filter.is_simple() || self.filter.late(target, sample, &mut worker.resolver);
        let is_in_time = self.filter.time().contains(sample.time);
        let asked = self.events && passes && is_in_time && self.filter.event(event);
        let mut row = LazyRow {
            hit: &hit,
            row: None,
        };
        let waits = worker.resolver.session().hit_waits(target, sample);
        let mut of_span = false;
        for role in self.roles.get(event).into_iter().flatten() {
            let Some(key) = self.keys.get(role.pair as usize) else {
                continue;
            };
            let of_hit = key.hit_key(&self.rows, &mut worker.resolver, hit, &self.dictionary);
            let Some(HitKey { words, marks }) = of_hit else {
                continue;
            };
            let key = MatchKey {
                pair: role.pair,
                words,
            };
            if role.begins {
                of_span |= passes;
                let begun = passes.then(|| row.index(self, worker, &mut rows.hits));
                let mut frame = Frame::new(sample.time, marks, begun);
                frame.waits = waits;
                worker.matcher.begin(key, frame);
                continue;
            }
            let ends = self.filter.ends(target, sample, &mut worker.resolver);
            let index = row.index(self, worker, &mut rows.hits);
            let mut ended = EndedInWindow {
                items: &mut rows.items,
                nesting: rows.nesting.get_mut(role.pair as usize),
                pair: role.pair,
                end: ends.then_some(index),
                time: self.filter.time(),
            };
            if (worker.matcher).end(key, sample.time, marks, waits, &mut ended) {
                of_span |= ends;
                continue;
            }
            let end = PendingEnd {
                time: sample.time,
                marks,
                waits,
                asked: ends,
                ..PendingEnd::default()
            };
            worker.matcher.leave(key, end);
            rows.items.push(RowItem::Pending { end: index });
        }
        if asked {
            let hit = row.index(self, worker, &mut rows.hits);
            rows.items.push(RowItem::Event { hit, of_span });
        }
    }

    /// Decodes a hit.
    fn push(&self, worker: &mut RowWorker<'_>, hit: &Hit<'_>, hits: &mut HitTable) -> usize {
        let Hit { target, sample } = *hit;
        let resolver = &mut worker.resolver;
        let session = resolver.session();
        let event = session.events().events.get(target.event as usize);
        let site = session.site_of(target, sample);
        let row = HitRow {
            event: target.event as usize,
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            cpu: event
                .is_some_and(|event| event.has_cpu())
                .then_some(sample.cpu),
            ip: sample.ip,
            site: site.and_then(|site| u32::try_from(site).ok()),
            comm: resolver.name(sample.tid, sample.time),
            process: resolver.process(sample),
        };
        let arguments = event.map_or(0, |event| event.arguments.len());
        if let Some(site) = site {
            resolver.values(site, sample);
        } else {
            worker.unknown.resize(arguments, self.unknown.clone());
        }
        let has_stack = self.stacks && event.is_some_and(|event| event.has_chain());
        let stack = match has_stack {
            // The resolver's values and stack cannot be borrowed at once.
            true => resolver.stack(target, sample).to_vec(),
            false => Vec::new(),
        };
        let values = match site {
            Some(site) => resolver.decoded(site),
            None => worker.unknown.get(..arguments).unwrap_or_default(),
        };
        hits.push(row, values, &stack)
    }
}

impl LazyRow<'_> {
    /// Its index.
    fn index(
        &mut self,
        source: &RowSource,
        worker: &mut RowWorker<'_>,
        hits: &mut HitTable,
    ) -> usize {
        let hit = self.hit;
        *self
            .row
            .get_or_insert_with(|| source.push(worker, hit, hits))
    }
}
