//! Spans that have begun and not ended, matched as readers of traces do: an end belongs to the newest begin with which its arguments agree.
//!
//! Hits of several CPUs are read in any order within a pass over the rings, and a begin may be read one pass after its end. So the hits of a pass are
//! sorted, and an end without a begin waits for the next pass.

use std::collections::HashMap;
use std::mem::take;

use super::span_marks::Mark;

/// Maximum number of keys with open spans: of more, those that began first are forgotten.
const MAX_KEYS: usize = 1 << 16;
/// Maximum number of open spans of a key: of more, those that began first are forgotten.
const MAX_DEPTH: usize = 64;

/// What hits of one span have in common: a thread, or a process and a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpanKey {
    /// The thread or the process.
    pub(super) task: i32,
    pub(super) value: Option<Mark>,
}

/// A hit that begins or ends a span.
#[derive(Clone, Debug)]
pub(super) struct SpanHit {
    pub(super) time: u64,
    pub(super) key: SpanKey,
    pub(super) agreed: Vec<Mark>,
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The event, by its place in the list of its matcher.
    pub(super) event: usize,
    pub(super) begins: bool,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub(super) struct EndedSpan {
    /// The hit that ended it.
    pub(super) end: SpanHit,
    /// ns.
    pub(super) duration: u64,
}

#[derive(Debug)]
struct OpenSpan {
    began: u64,
    agreed: Vec<Mark>,
}

/// The open spans of one pair of events.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    open: HashMap<SpanKey, Vec<OpenSpan>>,
    /// Hits of this pass.
    hits: Vec<SpanHit>,
    /// Ends of the pass before that had no begin.
    waiting: Vec<SpanHit>,
    /// Whether spans need not nest.
    crosses: bool,
}

impl OpenSpans {
    pub(super) fn new(crosses: bool) -> Self {
        Self {
            crosses,
            ..Self::default()
        }
    }

    /// Adds a hit of this pass.
    pub(super) fn add(&mut self, hit: SpanHit) {
        self.hits.push(hit);
    }

    /// Forgets all begins, and the ends that wait for one.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.waiting.clear();
    }

    /// Ends a pass: calls `ended` for each span of which the end was read.
    pub(super) fn end_pass(&mut self, mut ended: impl FnMut(EndedSpan)) {
        let waited = take(&mut self.waiting);
        let mut hits = take(&mut self.hits);
        let last_chance = waited.len();
        let waited = waited.into_iter().map(|hit| (hit, true));
        let mut all: Vec<(SpanHit, bool)> = Vec::with_capacity(last_chance + hits.len());
        all.extend(waited);
        all.extend(hits.drain(..).map(|hit| (hit, false)));
        self.hits = hits;
        all.sort_by_key(|(hit, _)| hit.time);
        for (hit, has_waited) in all {
            if hit.begins {
                self.begin(hit);
            } else if let Some(began) = self.end(&hit) {
                ended(EndedSpan {
                    duration: hit.time - began,
                    end: hit,
                });
            } else if !has_waited {
                self.waiting.push(hit);
            }
        }
    }

    fn begin(&mut self, hit: SpanHit) {
        if self.open.len() >= MAX_KEYS && !self.open.contains_key(&hit.key) {
            self.forget_half();
        }
        let open = self.open.entry(hit.key).or_default();
        if open.len() >= MAX_DEPTH {
            open.remove(0);
        }
        // One that was read late belongs before those that began after it.
        let at = open.partition_point(|open| open.began <= hit.time);
        open.insert(
            at,
            OpenSpan {
                began: hit.time,
                agreed: hit.agreed,
            },
        );
    }

    /// When the span began that a hit ends.
    fn end(&mut self, hit: &SpanHit) -> Option<u64> {
        let open = self.open.get_mut(&hit.key)?;
        let fits = |open: &OpenSpan| {
            let mut marks = open.agreed.iter().zip(&hit.agreed);
            open.began <= hit.time && marks.all(|(begin, end)| begin.agrees(end))
        };
        let at = open.iter().rposition(fits)?;
        let began = open.get(at)?.began;
        if self.crosses {
            open.remove(at);
        } else {
            // What began later, and before this end, has not ended.
            let later = open.partition_point(|open| open.began <= hit.time);
            open.drain(at..later);
        }
        if open.is_empty() {
            self.open.remove(&hit.key);
        }
        Some(began)
    }

    /// Forgets the half of the keys whose newest span began first.
    fn forget_half(&mut self) {
        let newest = |open: &[OpenSpan]| open.last().map_or(0, |open| open.began);
        let mut times: Vec<u64> = self.open.values().map(|open| newest(open)).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.open.retain(|_, open| newest(open) > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(begins: bool, tid: i32, time: u64, agreed: &[u64]) -> SpanHit {
        SpanHit {
            time,
            key: SpanKey {
                task: tid,
                value: None,
            },
            agreed: agreed.iter().map(|number| Mark::Number(*number)).collect(),
            pid: tid,
            tid,
            event: usize::from(!begins),
            begins,
        }
    }

    /// Durations of the spans that ended in each pass.
    fn durations(open: &mut OpenSpans, passes: &[&[SpanHit]]) -> Vec<Vec<u64>> {
        let pass = |hits: &&[SpanHit]| {
            hits.iter().for_each(|hit| open.add(hit.clone()));
            let mut ended = Vec::new();
            open.end_pass(|span| ended.push(span.duration));
            ended
        };
        passes.iter().map(pass).collect()
    }

    #[test]
    fn ends_belong_to_the_newest_begin_that_agrees() {
        let mut open = OpenSpans::new(false);
        let passes: [&[SpanHit]; 3] = [
            &[
                hit(true, 1, 10, &[7]),
                hit(true, 1, 20, &[8]),
                hit(true, 2, 15, &[7]),
            ],
            &[hit(false, 1, 30, &[7])],
            &[hit(false, 1, 40, &[8]), hit(false, 2, 50, &[7])],
        ];
        assert_eq!(durations(&mut open, &passes), [vec![], vec![20], vec![35]]);
        let mut open = OpenSpans::new(true);
        assert_eq!(
            durations(&mut open, &passes),
            [vec![], vec![20], vec![20, 35]]
        );
        assert!(open.open.is_empty());
    }

    #[test]
    fn a_begin_may_be_read_a_pass_after_its_end() {
        let mut open = OpenSpans::new(false);
        let passes: [&[SpanHit]; 4] = [
            &[hit(false, 1, 30, &[]), hit(true, 1, 40, &[])],
            &[hit(true, 1, 10, &[]), hit(false, 1, 45, &[])],
            &[hit(false, 1, 60, &[])],
            &[hit(true, 1, 70, &[])],
        ];
        let expected: [Vec<u64>; 4] = [vec![], vec![20, 5], vec![], vec![]];
        assert_eq!(durations(&mut open, &passes), expected);
        assert!(open.waiting.is_empty());
    }

    /// Between the begin and the end that follow each other, probes were detached.
    #[test]
    fn spans_across_a_pause_are_forgotten() {
        let mut open = OpenSpans::new(false);
        let begun: &[SpanHit] = &[hit(true, 1, 10, &[])];
        assert_eq!(durations(&mut open, &[begun]), [Vec::<u64>::new()]);
        open.forget();
        let ends: &[SpanHit] = &[hit(false, 1, 900, &[])];
        assert_eq!(durations(&mut open, &[ends]), [Vec::<u64>::new()]);
        let whole: &[SpanHit] = &[hit(true, 1, 910, &[]), hit(false, 1, 915, &[])];
        assert_eq!(durations(&mut open, &[whole]), [vec![5]]);
    }

    #[test]
    fn memory_for_open_spans_is_bounded() {
        let mut open = OpenSpans::new(false);
        for tid in 0..MAX_KEYS as i32 + 10 {
            open.add(hit(true, tid, tid as u64, &[]));
        }
        for time in 0..1000 {
            open.add(hit(true, 1 << 20, (1 << 21) + time, &[]));
        }
        open.end_pass(|_| {});
        assert!(open.open.len() <= MAX_KEYS);
        assert!(open.open.values().all(|open| open.len() <= MAX_DEPTH));
    }
}
