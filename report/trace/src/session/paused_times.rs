//! The times in which a probe was detached.

use usdtrec_format::trace::TimeRange;

/// The times in which a probe was detached. There are no samples strictly within one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausedTimes {
    /// In their order; no two have a time in common.
    times: Vec<TimeRange>,
    /// Of a stream, the pauses before these.
    forgotten: Option<ForgottenPauses>,
}

/// Pauses that are not kept one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ForgottenPauses {
    /// From the begin of the first one to the end of the last one.
    time: TimeRange,
    sum: PausedPart,
}

/// How much of a time a probe was detached in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PausedPart {
    /// Number of pauses.
    pub pauses: u64,
    /// Time in them, ns.
    pub time: u64,
}

impl PausedPart {
    /// Adds a pause. A stream may claim any times.
    const fn add(&mut self, first: u64, last: u64) {
        self.pauses += 1;
        self.time = self.time.saturating_add(last.saturating_sub(first));
    }
}

impl ForgottenPauses {
    /// The pauses of `former` and a later one.
    fn and(former: Option<Self>, pause: TimeRange) -> Self {
        let mut all = former.unwrap_or(Self {
            time: pause,
            sum: PausedPart::default(),
        });
        all.time.last = all.time.last.max(pause.last);
        all.sum.add(pause.first, pause.last);
        all
    }

    /// Those of one of two probes or of both. What they have in common is not known, so the sum is the larger one of the two.
    fn of_either(self, other: Self) -> Self {
        let sum = match other.sum.time > self.sum.time {
            true => other.sum,
            false => self.sum,
        };
        Self {
            time: joined(self.time, &other.time),
            sum,
        }
    }
}

/// From the earlier begin to the later end.
fn joined(time: TimeRange, other: &TimeRange) -> TimeRange {
    TimeRange::new(time.first.min(other.first), time.last.max(other.last))
}

impl PausedTimes {
    /// Adds a time of a stream; the same one without its end may be there. Of more than `most`, the older half is added up: the latest one is always
    /// there, and so it is known whether any is between two hits. A stream may claim times in any order: those before what is added up are left out.
    pub(crate) fn learn(&mut self, time: TimeRange, most: usize) {
        let known = self.forgotten.map_or(0, |forgotten| forgotten.time.last);
        let time = TimeRange::new(time.first.max(known), time.last);
        if time.first >= time.last {
            return;
        }
        let from = self.times.partition_point(|known| known.last <= time.first);
        let to = self.times.partition_point(|known| known.first < time.last);
        let common = self.times.get(from..to).unwrap_or_default().iter();
        let others = common.filter(|known| known.first != time.first);
        let all = others.fold(time, joined);
        // Usually this appends it, or replaces the last one.
        self.times.splice(from..to, [all]);
        if self.times.len() > most {
            self.forget_older();
        }
    }

    /// Number of times that are kept.
    pub(crate) const fn len(&self) -> usize {
        self.times.len()
    }

    /// Adds up the older half of those that are kept, without the latest one.
    pub(crate) fn forget_older(&mut self) {
        let older = self.times.len() / 2;
        for pause in self.times.drain(..older) {
            self.forgotten = Some(ForgottenPauses::and(self.forgotten, pause));
        }
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
        joined.shrink_to_fit();
        Self {
            times: joined,
            forgotten: None,
        }
    }

    /// The times in which at least one of several probes was detached.
    pub fn of_any<'p>(probes: impl Iterator<Item = &'p Self>) -> Self {
        let mut probes = probes.filter(|times| !times.is_empty());
        let Some(first) = probes.next() else {
            return Self::default();
        };
        let others: Vec<&Self> = probes.filter(|times| *times != first).collect();
        if others.is_empty() {
            return first.clone();
        }
        let all = || others.iter().copied().chain([first]);
        let forgotten = all().filter_map(|probe| probe.forgotten);
        let until = forgotten.map(|forgotten| forgotten.time.last).max();
        let mut times = Vec::new();
        let mut forgotten: Option<ForgottenPauses> = None;
        for probe in all() {
            let Parted { before, after } = probe.part(until.unwrap_or(0));
            times.extend(after);
            forgotten = match (forgotten, before) {
                (Some(former), Some(before)) => Some(former.of_either(before)),
                (former, before) => former.or(before),
            };
        }
        Self {
            forgotten,
            ..Self::new(times)
        }
    }

    /// The same with the pauses added up that ended up to a time.
    fn part(&self, until: u64) -> Parted<'_> {
        let at = self.times.partition_point(|pause| pause.last <= until);
        let (before, after) = self.times.split_at(at);
        let and = |former, pause: &TimeRange| Some(ForgottenPauses::and(former, *pause));
        Parted {
            before: before.iter().fold(self.forgotten, and),
            after,
        }
    }

    /// Whether it was never detached.
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty() && self.forgotten.is_none()
    }

    /// The first pause of which a part is between two times. Those of a stream that are added up are as one: it is not known when the probe was attached
    /// among them.
    pub fn between(&self, from: u64, to: u64) -> Option<TimeRange> {
        let at = self.times.partition_point(|pause| pause.last <= from);
        let kept = self.times.get(at).copied();
        let forgotten = self.forgotten.map(|forgotten| forgotten.time);
        let forgotten = forgotten.filter(|pauses| pauses.last > from);
        let first = kept
            .into_iter()
            .chain(forgotten)
            .min_by_key(|pause| pause.first);
        first.filter(|pause| pause.first < to)
    }

    /// Whether a pause began before a time.
    pub fn begin_before(&self, time: u64) -> bool {
        let kept = self.times.first();
        let forgotten = self.forgotten.as_ref().map(|forgotten| &forgotten.time);
        let mut first = kept.into_iter().chain(forgotten);
        first.any(|pause| pause.first < time)
    }

    /// How much of a time it was detached in.
    pub fn within(&self, time: TimeRange) -> PausedPart {
        let first = self.times.partition_point(|pause| pause.last <= time.first);
        let pauses = self.times.iter().skip(first);
        let pauses = pauses.take_while(|pause| pause.first.max(time.first) < time.last);
        // Of a stream, the time is that from its begin.
        let forgotten = self.forgotten.map(|forgotten| forgotten.sum);
        let mut part = forgotten.unwrap_or_default();
        for pause in pauses {
            part.add(pause.first.max(time.first), pause.last.min(time.last));
        }
        part
    }
}

/// The pauses of a probe before and after a time.
struct Parted<'p> {
    before: Option<ForgottenPauses>,
    after: &'p [TimeRange],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of the times that are kept, and how much of a time it was detached in.
    fn part(paused: &PausedTimes, first: u64, last: u64) -> (usize, u64, u64) {
        let PausedPart { pauses, time } = paused.within(TimeRange::new(first, last));
        (paused.times.len(), pauses, time)
    }

    /// Pauses of 10 ns that begin at these times, of which so many are kept, as a stream has them.
    fn learned(begins: impl IntoIterator<Item = u64>, most: usize) -> PausedTimes {
        let mut paused = PausedTimes::default();
        for first in begins {
            paused.learn(TimeRange::new(first, u64::MAX), most);
            paused.learn(TimeRange::new(first, first + 10), most);
        }
        paused
    }

    #[test]
    fn an_end_replaces_an_open_pause_and_old_ones_are_added_up() {
        let mut paused = learned([10, 30, 50, 70], 4);
        assert_eq!(part(&paused, 0, 95), (4, 4, 40));
        paused.learn(TimeRange::new(90, u64::MAX), 4);
        assert_eq!(part(&paused, 0, 95), (3, 5, 45));
        assert!(paused.between(45, 51).is_some() && paused.between(80, 90).is_none());
    }

    /// A span that began before pauses which are added up was open when the first of them began.
    #[test]
    fn it_is_known_when_those_that_are_added_up_began() {
        let paused = learned((1..=20).map(|at| at * 100), 4);
        assert_eq!(part(&paused, 0, 3000), (4, 20, 200));
        let first = |from, to| paused.between(from, to).map(|pause| pause.first);
        assert_eq!(first(50, 3000), Some(100));
        assert_eq!(first(50, 100), None);
        // Somewhere among them, where the next one begins is not known.
        assert_eq!(first(450, 3000), Some(100));
        assert_eq!(first(1610, 3000), Some(1700));
        assert_eq!(first(1610, 1700), None);
        assert!(paused.begin_before(101) && !paused.begin_before(100));
    }

    /// What is learned in any order is what is known of all at once.
    #[test]
    fn times_of_a_stream_may_come_in_any_order() {
        let times = [(50, 60), (10, 20), (70, 90), (15, 17), (55, 75), (20, 30)];
        let times = times.map(|(first, last)| TimeRange::new(first, last));
        for turned in 0..times.len() {
            let mut order = times;
            order.rotate_left(turned);
            let mut paused = PausedTimes::default();
            for time in order {
                paused.learn(time, 100);
            }
            assert_eq!(paused, PausedTimes::new(times.to_vec()), "{turned}");
        }
    }

    /// A stream may claim anything: nothing is counted twice, and no sum overflows.
    #[test]
    fn times_that_no_recorder_writes_are_added_up_once() {
        let mut paused = learned((1..=20).map(|at| at * 100), 4);
        for time in [(100, 110), (150, 1605), (0, 1), (7, 7), (9, 3)] {
            paused.learn(TimeRange::new(time.0, time.1), 4);
            assert_eq!(part(&paused, 0, 3000), (4, 20, 200), "{time:?}");
        }
        let (long, mut paused) = (u64::MAX - 100, PausedTimes::default());
        for at in 0..10 {
            paused.learn(TimeRange::new(at, long), 2);
            for short in (0..4).map(|short| long + short * 10) {
                paused.learn(TimeRange::new(short, short + 5), 2);
            }
        }
        assert!(paused.times.len() <= 2, "{paused:?}");
        let all = paused.within(TimeRange::ALL);
        assert_eq!((all.pauses, all.time), (5, long + 4 * 5));
    }

    /// Probes that were detached at the same times, of which one has had one pause more and has added up more.
    #[test]
    fn what_one_of_two_probes_has_added_up_is_not_counted_twice() {
        let one = learned((1..=4).map(|at| at * 100), 4);
        let other = learned((1..=5).map(|at| at * 100), 4);
        assert!(one.forgotten.is_none() && other.forgotten.is_some());
        for probes in [[&one, &other], [&other, &one]] {
            let any = PausedTimes::of_any(probes.into_iter());
            assert_eq!(part(&any, 0, 1000), (3, 5, 50));
            assert_eq!(any.between(0, 1000), Some(TimeRange::new(100, 210)));
        }
        // The third one was detached before them, and once for long.
        let third = PausedTimes::new(vec![TimeRange::new(40, 60), TimeRange::new(90, 350)]);
        let any = PausedTimes::of_any([&other, &third].into_iter());
        let first = |from| any.between(from, 1000).map(|pause| pause.first);
        assert_eq!(
            [first(0), first(80), first(350)],
            [Some(40), Some(40), Some(400)]
        );
        assert!(any.begin_before(41));
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
