//! Whether an integer that begins and ends of a pair have in common behaves as an id.
//!
//! The hits of a thread are taken in the order of time, and each end is given the newest open begin of its thread with an equal value. An integer
//! behaves as an id if
//! * ends are equal to an open begin where they could have been different: another begin was open, or the end before had another value
//!   ([`IdEvidence::equal`]). A constant is equal to all, and says nothing;
//! * hardly any end is equal to none of the open begins while one of these never gets an equal end ([`IdEvidence::unequal`]): begin and end
//!   differ then, as the size that is read does from the size that was asked for. An end whose begin was lost, or was before the recording, leaves
//!   no begin without an end. At most one in 100 may be so (in 20, if hits were lost). Where spans overlap, so that the values are all that can
//!   order them and few are the same, it may be one in five;
//! * most begins are unlike all that are open: those of a flag are not ([`IdEvidence::shared`]).
//!
//! When a thread has had as many ends as begins, no span of it is open: what is open by its value is forgotten. Values that are equal by chance are
//! found out by this, as begins that get no end.
//!
//! Spans cross if one begins in another one and ends after it ([`IdEvidence::crossed`]): then they are matched in any order, else they nest. Of
//! calls whose values recur, one in ten must: an end without a begin takes that of a call which an exception left.

use foldhash::HashSet;

/// Open begins of a thread that are kept.
const MAX_OPEN: usize = 1024;
/// The newest open begins among which it is looked for another value.
const NEAR: usize = 64;
/// Values of begins that are kept to know whether each is another one.
const MAX_VALUES: usize = 1 << 16;
/// Equal ends without which nothing is said.
pub(crate) const MIN_EQUAL: u64 = 3;
/// The same where begins have all different values, however many ends are unequal.
const MIN_EQUAL_OF_DISTINCT: u64 = 4;
/// Equal ends without which overlapping spans are no reason to allow more that are unequal.
const MANY_EQUAL: u64 = 32;

/// Evidence for and against an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdEvidence {
    /// Begins with a value.
    begun: u64,
    /// Ends that are equal to an open begin, and could have been different.
    equal: u64,
    /// Ends that are equal to no open begin, each with an open begin that gets no equal end.
    unequal: u64,
    /// Begins that were open when another one with the same value came.
    shared: u64,
    /// Spans that began in another one and ended after it.
    crossed: u64,
    /// Whether two begins had the same value.
    repeats: bool,
}

impl IdEvidence {
    /// Adds that of another recording.
    pub(crate) fn add(&mut self, other: Self) {
        self.begun += other.begun;
        self.equal += other.equal;
        self.unequal += other.unequal;
        self.shared += other.shared;
        self.crossed += other.crossed;
        self.repeats |= other.repeats;
    }

    /// Whether it behaves as an id. `is_lossy` says that hits were lost.
    pub(crate) const fn is_id(self, is_lossy: bool) -> bool {
        if self.equal < MIN_EQUAL || self.shared * 5 > self.begun * 2 {
            return false;
        }
        if !self.repeats && self.equal >= MIN_EQUAL_OF_DISTINCT && self.unequal <= self.equal {
            return true;
        }
        // Few values that are unrelated are mostly equal to one of those that are open.
        let are_apart = self.shared * 4 <= self.begun;
        let allowed = if is_lossy && are_apart { 20 } else { 100 };
        let overlap = are_apart && self.equal >= MANY_EQUAL && self.crossed >= 2 * self.unequal;
        self.unequal * allowed <= self.equal || overlap && self.unequal * 5 <= self.equal
    }

    /// Whether spans that are matched by it cross, of a pair whose spans should nest by the names of probes and arguments, or of another one.
    pub(crate) const fn crosses(self, should_nest: bool) -> bool {
        let is_sure = !should_nest || self.shared * 20 <= self.begun;
        self.crossed > 0 && (is_sure || self.crossed * 10 > self.begun)
    }

    /// How good an id it is, the best first: fewest begins share a value, fewest ends are unequal.
    pub(crate) const fn rank(self) -> (u64, u64) {
        (self.shared, self.unequal)
    }
}

/// A begin that is open by its value.
#[derive(Clone, Copy, Debug)]
struct OpenValue {
    value: u64,
    /// Its number among the hits of the thread.
    number: u64,
    /// The number of the end that is equal to no open begin, and may be its own.
    claimed_by: Option<u64>,
    /// Whether one that began before it ended after it began.
    is_passed: bool,
    is_shared: bool,
}

/// The open begins of a thread, by the values of one argument.
#[derive(Debug, Default)]
pub(crate) struct IdLane {
    open: Vec<OpenValue>,
    hits: u64,
    /// Begins without an end yet, whatever their values.
    balance: u64,
    /// The value of the last end.
    last: Option<u64>,
}

/// Values that begins had.
#[derive(Debug, Default)]
pub(crate) struct BegunValues(HashSet<u64>);

impl BegunValues {
    fn add(&mut self, value: u64, evidence: &mut IdEvidence) {
        if !evidence.repeats {
            evidence.repeats = self.0.len() >= MAX_VALUES || !self.0.insert(value);
        }
        if evidence.repeats {
            self.0 = HashSet::default();
        }
    }
}

impl IdLane {
    /// A span begins; its value may be missing.
    pub(crate) fn begin(
        &mut self,
        value: Option<u64>,
        values: &mut BegunValues,
        evidence: &mut IdEvidence,
    ) {
        self.hits += 1;
        self.balance += 1;
        let Some(value) = value else {
            return;
        };
        evidence.begun += 1;
        values.add(value, evidence);
        let mut same = self.open.iter_mut().rev().take(NEAR);
        if let Some(same) = same.find(|open| open.value == value) {
            evidence.shared += u64::from(!std::mem::replace(&mut same.is_shared, true));
        }
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.remove(0);
            evidence.unequal += u64::from(oldest.claimed_by.is_some());
        }
        self.open.push(OpenValue {
            value,
            number: self.hits,
            claimed_by: None,
            is_passed: false,
            is_shared: false,
        });
    }

    /// A span ends; its value may be missing.
    pub(crate) fn end(&mut self, value: Option<u64>, evidence: &mut IdEvidence) {
        self.hits += 1;
        self.balance = self.balance.saturating_sub(1);
        if let Some(value) = value {
            match self.open.iter().rposition(|open| open.value == value) {
                Some(at) => self.take(at, evidence),
                None => self.claim(self.hits, u64::MAX),
            }
            self.last = Some(value);
        }
        if self.balance == 0 {
            self.settle(evidence);
        }
    }

    /// An end is equal to an open begin.
    fn take(&mut self, at: usize, evidence: &mut IdEvidence) {
        let begun = self.open.remove(at);
        let near = || self.open.iter().rev().take(NEAR);
        let differs = |open: &OpenValue| open.claimed_by.is_none() && open.value != begun.value;
        let is_last_closed = self
            .last
            .is_some_and(|last| last != begun.value && !near().any(|open| open.value == last));
        let says_something = begun.claimed_by.is_none() && (near().any(differs) || is_last_closed);
        evidence.equal += u64::from(says_something);
        evidence.crossed += u64::from(begun.is_passed);
        let later = self.open.iter_mut().skip(at);
        later.for_each(|open| open.is_passed = true);
        if let Some(end) = begun.claimed_by {
            self.claim(end, end);
        }
    }

    /// An end is equal to no open begin: the newest one before `before` may be its own.
    fn claim(&mut self, end: u64, before: u64) {
        let mut open = self.open.iter_mut().rev();
        let free = open.find(|open| open.claimed_by.is_none() && open.number < before);
        if let Some(free) = free {
            free.claimed_by = Some(end);
        }
    }

    /// No span is open any more.
    pub(crate) fn settle(&mut self, evidence: &mut IdEvidence) {
        let claimed = self.open.iter().filter(|open| open.claimed_by.is_some());
        evidence.unequal += claimed.count() as u64;
        self.open.clear();
        self.balance = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random schedule of one thread.
    #[derive(Clone, Copy)]
    struct Schedule {
        hits: u64,
        /// Maximum number of spans that are open at once.
        depth: u64,
        /// Whether the newest ends first.
        nests: bool,
        /// Of a hundred ends, and of a hundred begins, how many are not recorded.
        lost_ends: u64,
        lost_begins: u64,
        /// Hits before the recording.
        before: u64,
    }

    const SCHEDULE: Schedule = Schedule {
        hits: 2000,
        depth: 8,
        nests: false,
        lost_ends: 0,
        lost_begins: 0,
        before: 0,
    };

    /// A random number below one.
    type Random<'r> = &'r mut dyn FnMut(u64) -> u64;

    /// Values: that of a begin, given the number of the span and the depth; that of its end, given that of its begin.
    struct Values<'v> {
        begin: &'v dyn Fn(Random<'_>, u64, u64) -> u64,
        end: &'v dyn Fn(Random<'_>, u64) -> u64,
    }

    const SERIAL: Values<'_> = Values {
        begin: &|_, number, _| number,
        end: &|_, begin| begin,
    };

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        }
    }

    fn evidence(schedule: Schedule, values: &Values<'_>, seed: u64) -> IdEvidence {
        let mut random = random(seed + 1);
        let (mut lane, mut begun, mut evidence) = (
            IdLane::default(),
            BegunValues::default(),
            IdEvidence::default(),
        );
        let (mut open, mut number) = (Vec::new(), 0);
        for hit in 0..schedule.before + schedule.hits {
            let is_recorded = hit >= schedule.before;
            let depth = open.len() as u64;
            if depth > 0 && (depth >= schedule.depth || random(2) == 0) {
                let at = match schedule.nests {
                    true => open.len() - 1,
                    false => random(depth) as usize,
                };
                let value = (values.end)(&mut random, open.remove(at));
                if is_recorded && random(100) >= schedule.lost_ends {
                    lane.end(Some(value), &mut evidence);
                }
            } else {
                number += 1;
                let value = (values.begin)(&mut random, number, depth);
                open.push(value);
                if is_recorded && random(100) >= schedule.lost_begins {
                    lane.begin(Some(value), &mut begun, &mut evidence);
                }
            }
        }
        lane.settle(&mut evidence);
        evidence
    }

    /// In how many of twenty schedules an integer behaves as an id.
    fn ids(schedule: Schedule, values: &Values<'_>) -> usize {
        let all = (0..20).map(|seed| evidence(schedule, values, seed));
        all.filter(|evidence| evidence.is_id(false)).count()
    }

    #[test]
    fn ids_of_spans_that_nest_and_overlap_are_found() {
        for (depth, nests) in [
            (1, true),
            (2, true),
            (8, true),
            (2, false),
            (8, false),
            (100, false),
        ] {
            for (lost_ends, hits) in [(0, 60), (0, 2000), (20, 200), (20, 2000)] {
                let schedule = Schedule {
                    depth,
                    nests,
                    lost_ends,
                    hits,
                    ..SCHEDULE
                };
                assert_eq!(
                    ids(schedule, &SERIAL),
                    20,
                    "{depth} {nests} {lost_ends} {hits}"
                );
                let crosses = evidence(schedule, &SERIAL, 7).crosses(false);
                assert_eq!(crosses, !nests, "{depth} {nests} {lost_ends} {hits}");
            }
        }
        let few = Values {
            begin: &|random, _, _| random(12),
            ..SERIAL
        };
        assert_eq!(ids(SCHEDULE, &few), 20);
        // A recording that begins in the middle, with hits that are lost.
        let middle = Schedule {
            before: 300,
            lost_begins: 5,
            lost_ends: 5,
            ..SCHEDULE
        };
        assert_eq!(ids(middle, &SERIAL), 20);
    }

    #[test]
    fn what_differs_or_is_always_the_same_is_no_id() {
        for depth in [1, 2, 8, 1000] {
            for nests in [true, false] {
                for hits in [200, 2000, 20_000] {
                    let schedule = Schedule {
                        depth,
                        nests,
                        hits,
                        ..SCHEDULE
                    };
                    let constant = Values {
                        begin: &|_, _, _| 7,
                        end: &|_, _| 7,
                    };
                    assert_eq!(ids(schedule, &constant), 0);
                    for below in [2, 3, 10, 1000] {
                        let unrelated = Values {
                            begin: &|random, _, _| random(below),
                            end: &|random, _| random(below),
                        };
                        let found = ids(schedule, &unrelated);
                        assert!(
                            found <= usize::from(hits == 200),
                            "{below} {depth} {nests} {hits}"
                        );
                    }
                    // Mostly 0, as flags and return codes are.
                    let flags = Values {
                        begin: &|random, _, _| random(100) / 95,
                        end: &|random, _| random(100) / 95,
                    };
                    let found = ids(schedule, &flags);
                    assert!(found <= usize::from(hits == 200), "{depth} {nests} {hits}");
                }
            }
        }
    }

    /// The size that is asked for, and the size that was read, which is another one in one of ten.
    #[test]
    fn an_amount_that_is_mostly_the_same_is_no_id() {
        let sizes = [64, 512, 4096, 8192, 100, 7, 3000];
        let amount = Values {
            begin: &|random, _, _| sizes[random(7) as usize],
            end: &|random, begin| match random(10) {
                0 => sizes[random(7) as usize],
                _ => begin,
            },
        };
        for depth in [1, 2] {
            let nests = Schedule {
                depth,
                nests: true,
                ..SCHEDULE
            };
            assert_eq!(ids(nests, &amount), 0, "{depth}");
        }
    }
}
