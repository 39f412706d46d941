//! Spans without an end: those that were open when a pause of their probes began, and what is known of each at the end of a trace.

use std::io;

use usdtrec_format::trace::TimeRange;

use crate::rows::hit_row::OwnedHit;
use crate::rows::row_sink::{RowSink, SpanFate, SpanRow};
use crate::spans::counting::overlaps;
use crate::spans::nesting::Nesting;

/// A span that was open when a pause of its probes began.
#[derive(Debug)]
pub(crate) struct PausedBegin {
    pub(crate) pair: usize,
    pub(crate) begin: Box<OwnedHit>,
    /// When the next span of its key began before the pause, ns.
    pub(crate) next: Option<u64>,
    /// Until when it is known to be open: the pause began, ns.
    pub(crate) until: u64,
}

/// Spans that were open when a pause of their probes began, and that the sink does not have yet.
#[derive(Debug)]
pub(crate) struct PausedBegins {
    pub(crate) begins: Vec<PausedBegin>,
    /// Maximum number of those that are kept.
    most: usize,
    /// Whether the sink gets each when the next hit of its key comes. Else it gets them at the end of the trace, in the order of their begins.
    pub(crate) at_once: bool,
}

/// Whether spans of a pair are within each other, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairNesting {
    pub(crate) nesting: Nesting,
    /// Whether they are calls of functions.
    pub(crate) are_calls: bool,
}

/// A span without an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unended<'a> {
    pub(crate) pair: usize,
    pub(crate) begin: &'a OwnedHit,
    /// When the next span of its key began, if that ended it, ns.
    pub(crate) next: Option<u64>,
    /// Until when it is known to be open, if there is a pause after its begin, ns.
    pub(crate) paused: Option<u64>,
}

impl PairNesting {
    /// When the next span of a key began, if that ended the one before: spans of the pair follow each other, as far as it is known.
    pub(crate) fn followed(self, next: Option<u64>) -> Option<u64> {
        next.filter(|_| self.nesting.is_flat_unless(self.are_calls))
    }
}

impl Unended<'_> {
    const fn fate(&self) -> SpanFate {
        match (self.next, self.paused) {
            (Some(_), _) => SpanFate::Unfinished,
            (None, Some(_)) => SpanFate::Paused,
            (None, None) => SpanFate::Open,
        }
    }

    /// Hands it to a sink if a part of it is in a time.
    pub(crate) fn put(&self, time: TimeRange, sink: &mut dyn RowSink) -> io::Result<()> {
        let begin = self.begin.hit();
        let until = self.next.or(self.paused);
        if !overlaps(time, begin.row.time, until.unwrap_or(u64::MAX)) {
            return Ok(());
        }
        sink.span(SpanRow {
            pair: self.pair,
            fate: self.fate(),
            begin,
            end: None,
            until,
        })
    }

    /// Place in the order of begins.
    pub(crate) const fn place(&self) -> (u64, usize) {
        (self.begin.number, self.pair)
    }
}

impl PausedBegin {
    /// What is known of it by how spans of pairs are within each other.
    pub(crate) fn unended(&self, nesting: &[PairNesting]) -> Unended<'_> {
        let nesting = nesting.get(self.pair).copied().unwrap_or_default();
        Unended {
            pair: self.pair,
            begin: &self.begin,
            next: nesting.followed(self.next),
            paused: Some(self.until),
        }
    }

    /// Place in the order of begins.
    pub(crate) const fn place(&self) -> (u64, usize) {
        (self.begin.number, self.pair)
    }

    /// Whether it is known what became of it. If another span began before the pause, it may be that spans of the pair follow each other, which is known at
    /// the end: what is known until then depends on the windows.
    fn is_known(&self, nesting: &[PairNesting]) -> bool {
        self.next.is_none() || nesting.get(self.pair).is_some_and(|pair| pair.are_calls)
    }
}

impl PausedBegins {
    /// None, of which at most so many are kept.
    pub(crate) const fn new(most: usize, at_once: bool) -> Self {
        Self {
            begins: Vec::new(),
            most,
            at_once,
        }
    }

    /// Takes a span, or hands it to a sink if there is nothing to wait for. Of more than are kept, the older half goes to the sink, with what is known now.
    pub(crate) fn add(
        &mut self,
        begin: PausedBegin,
        nesting: &[PairNesting],
        time: TimeRange,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        if self.at_once && begin.is_known(nesting) {
            return begin.unended(nesting).put(time, sink);
        }
        self.begins.push(begin);
        if self.begins.len() <= self.most {
            return Ok(());
        }
        self.begins.sort_unstable_by_key(PausedBegin::place);
        let older = self.begins.len() / 2;
        for paused in self.begins.drain(..older) {
            paused.unended(nesting).put(time, sink)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::spans::Marks;
    use usdtrec_trace::process::process_field::ProcessFacts;

    use super::*;
    use crate::rows::hit_row::{HitRow, RowHit};
    use crate::rows::row_sink::RowSide;
    use crate::spans::stack::Frame;

    /// Times of begins, with what became of the spans.
    #[derive(Default)]
    struct Fates(Vec<(u64, SpanFate)>);

    impl RowSink for Fates {
        fn event(&mut self, _: RowHit<'_>, _: RowSide) -> io::Result<()> {
            Ok(())
        }

        fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
            self.0.push((span.begin.row.time, span.fate));
            Ok(())
        }
    }

    /// A span of the first pair, up to a pause at 1000.
    fn begin(time: u64, next: Option<u64>) -> PausedBegin {
        let row = HitRow {
            event: 0,
            time,
            pid: 1,
            tid: 1,
            cpu: None,
            ip: 0,
            site: None,
            comm: None,
            process: ProcessFacts::default(),
        };
        let hit = RowHit {
            row: &row,
            values: &[],
            stack: &[],
        };
        PausedBegin {
            pair: 0,
            begin: hit.owned(time),
            next,
            until: 1000,
        }
    }

    /// What is known after spans that ended, in which others began or not.
    fn nesting(others: &[Option<u64>]) -> [PairNesting; 1] {
        let mut nesting = Nesting::default();
        for &next in others {
            nesting.add(&Frame {
                next,
                ..Frame::new(1, Marks::default(), ())
            });
        }
        [PairNesting {
            nesting,
            are_calls: false,
        }]
    }

    /// Adds spans one after the other; gives what the sink has then.
    fn added(
        paused: &mut PausedBegins,
        begins: Vec<PausedBegin>,
        nesting: &[PairNesting],
    ) -> Fates {
        let mut fates = Fates::default();
        for begin in begins {
            let added = paused.add(begin, nesting, TimeRange::ALL, &mut fates);
            added.unwrap();
        }
        fates
    }

    #[test]
    fn what_cannot_change_does_not_wait() {
        let begins = || vec![begin(3, None), begin(1, Some(2))];
        let paused = [(3, SpanFate::Paused), (1, SpanFate::Paused)];
        for (are_calls, expected) in [(false, &paused[..1]), (true, &paused)] {
            let mut nesting = nesting(&[Some(7)]);
            nesting[0].are_calls = are_calls;
            let mut stream = PausedBegins::new(10, true);
            let known = added(&mut stream, begins(), &nesting);
            assert_eq!(known.0, expected);
            assert_eq!(stream.begins.len(), 2 - expected.len());
            let mut file = PausedBegins::new(10, false);
            let known = added(&mut file, begins(), &nesting);
            assert_eq!((known.0.len(), file.begins.len()), (0, 2));
        }
    }

    /// Nothing is left out: if there are more than are kept, the older half is passed on with what is known.
    #[test]
    fn of_more_than_are_kept_the_older_ones_go_on() {
        let next = |time: u64| (time != 3).then_some(time + 1);
        let begins = |times: &[u64]| {
            let begins = times.iter().map(|&time| begin(time, next(time)));
            begins.collect()
        };
        let flat = nesting(&[None]);
        let mut paused = PausedBegins::new(4, false);
        assert!(
            added(&mut paused, begins(&[5, 3, 9, 1]), &flat)
                .0
                .is_empty()
        );
        let fates = added(&mut paused, begins(&[7, 11]), &flat);
        assert_eq!(fates.0, [(1, SpanFate::Unfinished), (3, SpanFate::Paused)]);
        let kept = paused.begins.iter().map(|paused| paused.begin.number);
        assert_eq!(kept.collect::<Vec<_>>(), [5, 7, 9, 11]);
    }

    /// A span is in the selected time up to the pause, or up to the next one that ended it.
    #[test]
    fn what_is_not_in_the_selected_time_is_left_out() {
        let time = TimeRange::new(500, 600);
        for (next, others, expected) in [
            (None, None, vec![(1, SpanFate::Paused)]),
            (Some(2), Some(7), vec![(1, SpanFate::Paused)]),
            (Some(2), None, vec![]),
        ] {
            let mut fates = Fates::default();
            let begin = begin(1, next);
            let unended = begin.unended(&nesting(&[others]));
            unended.put(time, &mut fates).unwrap();
            assert_eq!(fates.0, expected);
        }
    }
}
