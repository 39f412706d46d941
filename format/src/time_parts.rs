//! What the time of a span was spent on: on a CPU, runnable, in I/O wait, or blocked.
//!
//! Three of these are the differences of the sums that the hits have which begin and end the span ([`ThreadWaits`]); the rest of its duration was on a CPU. So
//! the four are the duration, exactly. Both hits must be of one thread: another one has sums of its own.
//!
//! Where the three are longer than the duration, the parts are not known, also if that is by a nanosecond. A span in which its thread waited has two switches on
//! a CPU, a microsecond or more; what the kernel's clock differs by between CPUs is some nanoseconds. So sums that exceed the duration are not this thread's, or
//! by another clock, and cutting them at 0 would hide that.

use crate::thread_waits::ThreadWaits;

/// A part of the time of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimePart {
    /// On a CPU: system calls, interrupts and time that a hypervisor took are in it.
    OnCpu,
    /// Ready to run, without a CPU.
    Runnable,
    /// Waiting for a disk, or for what the kernel counts as such.
    Iowait,
    /// Waiting for something else.
    Blocked,
}

/// What a part is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePartSpec {
    /// In options and filters.
    pub name: &'static str,
    /// After a time: `2.1ms on cpu`.
    pub words: &'static str,
    /// Heading of its column in tables.
    pub heading: &'static str,
    /// Member and column, ns.
    pub column: &'static str,
    /// The same without spans within the span.
    pub own_column: &'static str,
    /// What it is, in documents.
    pub meaning: &'static str,
    /// What it is without spans within the span.
    pub own_meaning: &'static str,
}

const SPECS: &[TimePartSpec; 4] = &[
    TimePartSpec {
        name: "oncpu",
        words: "on cpu",
        heading: "On CPU",
        column: "oncpu_ns",
        own_column: "self_oncpu_ns",
        meaning: "time in it in which its thread was on a CPU: the duration without the three others",
        own_meaning: "the part of `self_ns` in which its thread was on a CPU",
    },
    TimePartSpec {
        name: "runnable",
        words: "runnable",
        heading: "Runnable",
        column: "runnable_ns",
        own_column: "self_runnable_ns",
        meaning: "time in it in which its thread could have run, and waited for a CPU",
        own_meaning: "the part of `self_ns` in which its thread waited for a CPU",
    },
    TimePartSpec {
        name: "iowait",
        words: "in I/O",
        heading: "I/O",
        column: "iowait_ns",
        own_column: "self_iowait_ns",
        meaning: "time in it in which its thread waited for a disk, or for what the kernel counts as such",
        own_meaning: "the part of `self_ns` in which its thread waited for a disk",
    },
    TimePartSpec {
        name: "blocked",
        words: "blocked",
        heading: "Blocked",
        column: "blocked_ns",
        own_column: "self_blocked_ns",
        meaning: "time in it in which its thread waited for something else, as a lock, a timer or a socket",
        own_meaning: "the part of `self_ns` in which its thread waited for something else",
    },
];

impl TimePart {
    /// All parts, in the order of columns.
    pub const ALL: [Self; 4] = [Self::OnCpu, Self::Runnable, Self::Iowait, Self::Blocked];

    /// What it is called.
    #[must_use]
    pub const fn spec(self) -> &'static TimePartSpec {
        &SPECS[self as usize]
    }

    /// The part of a name in options and filters.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.spec().name == name)
    }
}

/// Why a hit does not say how long its thread has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoWaits {
    /// It was not recorded.
    NotRecorded,
    /// The recorder had no room for the thread.
    NoRoom,
}

/// The thread of a hit, and how long it has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitWaits {
    /// The thread.
    pub tid: i32,
    /// Its sums.
    pub waits: Result<ThreadWaits, NoWaits>,
}

impl Default for HitWaits {
    fn default() -> Self {
        Self {
            tid: 0,
            waits: Err(NoWaits::NotRecorded),
        }
    }
}

crate::listed! {
    /// Why the parts of a span are not known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoTimeParts {
        /// Neither its begin nor its end has sums: waits were not recorded.
        NotRecorded,
        /// One of them has none, or there is no end.
        OneSide,
        /// Another thread ended it.
        OtherThread,
        /// The recorder had no room for the sums of its thread.
        NoRoom,
        /// The sums fall, or are longer than the span.
        Contradictory,
        /// The kernel did not report a switch of its thread, so that a wait is not in the sums.
        Missed,
    }
}

impl NoTimeParts {
    /// Its member in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotRecorded => "not_recorded",
            Self::OneSide => "one_side",
            Self::OtherThread => "other_thread",
            Self::NoRoom => "no_room",
            Self::Contradictory => "contradictory",
            Self::Missed => "missed_switch",
        }
    }

    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotRecorded => "waits not recorded",
            Self::OneSide => "waits recorded at one side only",
            Self::OtherThread => "ended by another thread",
            Self::NoRoom => "the recorder had no room for the thread",
            Self::Contradictory => "longer waits than the span",
            Self::Missed => "the kernel did not report a switch of the thread",
        }
    }
}

/// The parts of a time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeParts([u64; 4]);

impl TimeParts {
    /// Those of a span of a duration, ns.
    ///
    /// # Errors
    /// [`NoTimeParts`] if they are not known.
    #[inline]
    pub fn between(begin: HitWaits, end: HitWaits, duration: u64) -> Result<Self, NoTimeParts> {
        let (earlier, later) = match (begin.waits, end.waits) {
            (Err(NoWaits::NotRecorded), Err(NoWaits::NotRecorded)) => {
                return Err(NoTimeParts::NotRecorded);
            }
            (Err(NoWaits::NotRecorded), _) | (_, Err(NoWaits::NotRecorded)) => {
                return Err(NoTimeParts::OneSide);
            }
            _ if begin.tid != end.tid => return Err(NoTimeParts::OtherThread),
            (Ok(earlier), Ok(later)) if earlier.missed != later.missed => {
                return Err(NoTimeParts::Missed);
            }
            (Ok(earlier), Ok(later)) => (earlier, later),
            _ => return Err(NoTimeParts::NoRoom),
        };
        let within = later.since(earlier).and_then(|waits| {
            let on_cpu = duration.checked_sub(waits.total()?)?;
            Some(Self([on_cpu, waits.runnable, waits.iowait, waits.blocked]))
        });
        within.ok_or(NoTimeParts::Contradictory)
    }

    /// One of them.
    #[must_use]
    pub const fn get(self, part: TimePart) -> u64 {
        self.0[part as usize]
    }

    /// The four in the order of [`TimePart::ALL`].
    #[must_use]
    pub const fn all(self) -> [u64; 4] {
        self.0
    }

    /// All together: the duration.
    #[must_use]
    #[inline]
    pub fn total(self) -> u64 {
        self.0.into_iter().fold(0, u64::saturating_add)
    }

    /// These and those of another time.
    #[must_use]
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        let mut both = self.0;
        for (sum, more) in both.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
        Self(both)
    }

    /// These without those of a time within; `None` if that has more of a part.
    #[must_use]
    #[inline]
    pub fn without(self, within: Self) -> Option<Self> {
        let mut rest = self.0;
        for (part, less) in rest.iter_mut().zip(within.0) {
            *part = part.checked_sub(less)?;
        }
        Some(Self(rest))
    }
}

/// The least time of each part that a span must have, ns; 0 for any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastParts([u64; 4]);

impl LeastParts {
    /// Nothing is asked for.
    pub const NONE: Self = Self([0; 4]);

    /// Asks for at least so much of a part, too, ns.
    pub fn ask(&mut self, part: TimePart, least: u64) {
        let known = &mut self.0[part as usize];
        *known = least.max(*known);
    }

    /// The parts of which some time is asked for, with how much, ns.
    pub fn asked(self) -> impl Iterator<Item = (TimePart, u64)> {
        let all = TimePart::ALL.into_iter().zip(self.0);
        all.filter(|(_, least)| *least > 0)
    }

    /// The first one of them.
    #[must_use]
    pub fn first(self) -> Option<TimePart> {
        self.asked().next().map(|(part, _)| part)
    }

    /// Whether a span has them. One whose parts are not known has none.
    #[must_use]
    #[inline]
    pub fn has(self, parts: Result<TimeParts, NoTimeParts>) -> bool {
        match parts {
            Ok(TimeParts(parts)) => parts.iter().zip(self.0).all(|(part, least)| *part >= least),
            Err(_) => self.0 == [0; 4],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tid: i32, [runnable, iowait, blocked]: [u64; 3]) -> HitWaits {
        let waits = ThreadWaits {
            runnable,
            iowait,
            blocked,
            missed: 0,
        };
        HitWaits {
            tid,
            waits: Ok(waits),
        }
    }

    const fn unknown(tid: i32, why: NoWaits) -> HitWaits {
        HitWaits {
            tid,
            waits: Err(why),
        }
    }

    #[test]
    fn parts_are_the_duration_exactly() {
        let parts = TimeParts::between(at(7, [1, 2, 3]), at(7, [5, 2, 13]), 20).unwrap();
        assert_eq!(parts.all(), [6, 4, 0, 10]);
        assert_eq!(parts.total(), 20);
        assert_eq!(parts.get(TimePart::Blocked), 10);
        let no_cpu = TimeParts::between(at(7, [0; 3]), at(7, [5, 5, 10]), 20);
        assert_eq!(no_cpu.map(TimeParts::all), Ok([0, 5, 5, 10]));
    }

    #[test]
    fn what_cannot_be_said_has_a_reason() {
        use NoTimeParts::{Contradictory, NoRoom, NotRecorded, OneSide, OtherThread};
        let known = at(7, [1, 1, 1]);
        let none = unknown(7, NoWaits::NotRecorded);
        let full = unknown(7, NoWaits::NoRoom);
        for (begin, end, reason) in [
            (none, none, NotRecorded),
            (none, known, OneSide),
            (known, none, OneSide),
            (known, full, NoRoom),
            (full, full, NoRoom),
            (known, at(8, [9, 9, 9]), OtherThread),
            (known, unknown(8, NoWaits::NoRoom), OtherThread),
            (at(7, [2, 1, 1]), known, Contradictory),
            (known, at(7, [1, 1, 22]), Contradictory),
            (at(7, [0; 3]), at(7, [u64::MAX, 1, 0]), Contradictory),
        ] {
            let found = TimeParts::between(begin, end, 20);
            assert_eq!(found, Err(reason), "{begin:?} {end:?}");
        }
    }

    #[test]
    fn a_span_with_a_missed_switch_has_no_parts() {
        let missed = |hit: HitWaits, missed| HitWaits {
            waits: hit.waits.map(|waits| ThreadWaits { missed, ..waits }),
            ..hit
        };
        let (begin, end) = (at(7, [1, 2, 3]), at(7, [5, 2, 13]));
        let parts = |begin, end| TimeParts::between(begin, end, 20).map(TimeParts::all);
        assert_eq!(parts(begin, missed(end, 1)), Err(NoTimeParts::Missed));
        let later = parts(missed(begin, 1), missed(end, 1));
        assert_eq!(later, Ok([6, 4, 0, 10]), "it was before the span");
    }

    #[test]
    fn times_within_are_taken_off_part_by_part() {
        let (whole, within) = (TimeParts([9, 8, 7, 6]), TimeParts([1, 8, 0, 2]));
        assert_eq!(whole.without(within), Some(TimeParts([8, 0, 7, 4])));
        assert_eq!(within.without(whole), None);
        assert_eq!(
            whole.without(within).map(|rest| rest.plus(within)),
            Some(whole)
        );
    }

    #[test]
    fn a_span_has_what_is_asked_for() {
        let mut least = LeastParts::default();
        assert!(least.has(Err(NoTimeParts::NotRecorded)) && least.first().is_none());
        least.ask(TimePart::Blocked, 5);
        least.ask(TimePart::Blocked, 3);
        assert_eq!(least.first(), Some(TimePart::Blocked));
        assert!(least.has(Ok(TimeParts([0, 0, 0, 5]))));
        assert!(!least.has(Ok(TimeParts([9, 9, 9, 4]))));
        assert!(!least.has(Err(NoTimeParts::NoRoom)));
    }

    #[test]
    fn parts_have_names_of_their_own() {
        for part in TimePart::ALL {
            assert_eq!(TimePart::named(part.spec().name), Some(part));
        }
        let waits = TimePart::ALL.map(|part| part.spec().name);
        assert_eq!(waits[1..], ThreadWaits::NAMES);
    }
}
