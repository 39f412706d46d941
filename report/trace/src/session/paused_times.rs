//! The times in which a probe was detached.

use usdtrec_format::trace::TimeRange;

/// The times in which a probe was detached. There are no samples strictly within one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausedTimes {
    /// In their order; no two have a time in common.
    times: Box<[TimeRange]>,
    /// Of a stream, the sum of pauses before these, which are not kept.
    forgotten: PausedPart,
}

/// How much of a time a probe was detached in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PausedPart {
    /// Number of pauses.
    pub pauses: u64,
    /// Time in them, ns.
    pub time: u64,
}

impl PausedTimes {
    /// Adds a time of a stream; the same one without its end may be there. Of more than `most`, the older half is added up: the latest one is always
    /// there, and so it is known whether any is between two hits.
    pub(crate) fn learn(&mut self, time: TimeRange, most: usize) {
        let mut times = std::mem::take(&mut self.times).into_vec();
        times.retain(|known| known.first != time.first);
        if times.len() >= most {
            for old in times.drain(..most / 2) {
                self.forgotten.pauses += 1;
                self.forgotten.time += old.last.saturating_sub(old.first);
            }
        }
        times.push(time);
        self.times = Self::new(times).times;
    }

    /// Times in any order, which may overlap.
    pub(crate) fn new(mut times: Vec<TimeRange>) -> Self {
        times.sort_unstable_by_key(|time| (time.first, time.last));
        let mut joined: Vec<TimeRange> = Vec::new();
        for time in times {
            match joined.last_mut() {
                // What one ends and the next begins with may be the time of a sample.
                Some(last) if time.first < last.last => last.last = last.last.max(time.last),
                _ => joined.push(time),
            }
        }
        Self {
            times: joined.into(),
            forgotten: PausedPart::default(),
        }
    }

    /// The times in which at least one of several probes was detached.
    pub fn of_any<'p>(probes: impl Iterator<Item = &'p Self>) -> Self {
        let mut probes = probes.filter(|times| !times.is_empty());
        let Some(first) = probes.next() else {
            return Self::default();
        };
        let mut others = probes.filter(|times| *times != first).peekable();
        if others.peek().is_none() {
            return first.clone();
        }
        let mut all = first.times.to_vec();
        let mut forgotten = first.forgotten;
        for other in others {
            all.extend(&other.times);
            if other.forgotten.time > forgotten.time {
                forgotten = other.forgotten;
            }
        }
        Self {
            forgotten,
            ..Self::new(all)
        }
    }

    /// Whether it was never detached.
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The first pause of which a part is between two times.
    pub fn between(&self, from: u64, to: u64) -> Option<TimeRange> {
        let at = self.times.partition_point(|pause| pause.last <= from);
        self.times.get(at).filter(|pause| pause.first < to).copied()
    }

    /// Whether a pause began before a time.
    pub fn begin_before(&self, time: u64) -> bool {
        self.times.first().is_some_and(|pause| pause.first < time)
    }

    /// How much of a time it was detached in.
    pub fn within(&self, time: TimeRange) -> PausedPart {
        let first = self.times.partition_point(|pause| pause.last <= time.first);
        let pauses = self.times.iter().skip(first);
        let pauses = pauses.take_while(|pause| pause.first.max(time.first) < time.last);
        // Of a stream, the time is that from its begin.
        pauses.fold(self.forgotten, |part, pause| {
            let last = pause.last.min(time.last);
            PausedPart {
                pauses: part.pauses + 1,
                time: part.time + last.saturating_sub(pause.first.max(time.first)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_replaces_an_open_pause_and_old_ones_are_added_up() {
        let mut paused = PausedTimes::default();
        for first in [10, 30, 50, 70] {
            paused.learn(TimeRange::new(first, u64::MAX), 4);
            paused.learn(TimeRange::new(first, first + 10), 4);
        }
        let part = |paused: &PausedTimes| {
            let PausedPart { pauses, time } = paused.within(TimeRange::new(0, 95));
            (paused.times.len(), pauses, time)
        };
        assert_eq!(part(&paused), (4, 4, 40));
        paused.learn(TimeRange::new(90, u64::MAX), 4);
        assert_eq!(part(&paused), (3, 5, 45));
        assert!(paused.between(45, 51).is_some() && paused.between(80, 90).is_none());
    }

    #[test]
    fn times_are_those_of_all_pauses_together() {
        let range = |&(first, last): &(u64, u64)| TimeRange::new(first, last);
        let times = [(30, 40), (10, 20), (15, 17), (40, 50), (35, 38)];
        let paused = PausedTimes::new(times.iter().map(range).collect());
        assert_eq!(paused.times.len(), 3, "{paused:?}");
        let before_second = paused.between(20, 31);
        assert_eq!(before_second, Some(TimeRange::new(30, 40)));
        for (from, to) in [(0, 10), (20, 30), (50, u64::MAX), (40, 40)] {
            assert_eq!(paused.between(from, to), None, "{from} to {to}");
        }
        for (from, to) in [(0, 11), (10, 20), (19, 30), (12, 13), (39, 39)] {
            assert!(paused.between(from, to).is_some(), "{from} to {to}");
        }
        assert!(paused.begin_before(11) && !paused.begin_before(10));
        let within = |first, last| {
            let part = paused.within(TimeRange::new(first, last));
            (part.pauses, part.time)
        };
        assert_eq!(within(0, u64::MAX), (3, 30));
        assert_eq!(within(15, 35), (2, 10));
        assert_eq!(within(20, 30), (0, 0));
        assert_eq!(within(12, 13), (1, 1));
        assert_eq!(within(13, 12), (0, 0));
        let other = PausedTimes::new(vec![TimeRange::new(18, 32)]);
        let none = PausedTimes::default();
        let any = PausedTimes::of_any([&none, &paused, &other].into_iter());
        assert_eq!(*any.times, [TimeRange::new(10, 40), TimeRange::new(40, 50)]);
        assert!(PausedTimes::of_any([&none].into_iter()).is_empty());
    }
}
