//! What the time of spans was spent on: of each, and summed up.

use usdtrec_format::{HitWaits, NoTimeParts, TimePart, TimeParts};

/// What the time of a span was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentTime {
    /// The parts of its duration; else why they are not known.
    pub whole: Result<TimeParts, NoTimeParts>,
    /// The same without the spans of its kind within it; `None` if that is not known.
    pub own: Option<TimeParts>,
}

impl SpentTime {
    /// The parts of a span and those without the spans within it, by the names of their columns, ns; `None` for what is not known.
    pub fn named(spent: Option<Self>) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        let whole = spent.and_then(|spent| spent.whole.ok());
        let own = spent.and_then(|spent| spent.own);
        let whole = TimePart::ALL.map(|part| {
            let ns = whole.map(|parts| parts.get(part));
            (part.spec().column, ns)
        });
        let own = TimePart::ALL.map(|part| {
            let ns = own.map(|parts| parts.get(part));
            (part.spec().own_column, ns)
        });
        whole.into_iter().chain(own)
    }
}

/// The parts of the times of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadParts {
    pub(crate) tid: i32,
    pub(crate) parts: TimeParts,
}

impl ThreadParts {
    /// Those of a span.
    #[inline]
    pub(crate) fn between(
        begin: HitWaits,
        end: HitWaits,
        duration: u64,
    ) -> Result<Self, NoTimeParts> {
        let parts = TimeParts::between(begin, end, duration)?;
        Ok(Self {
            tid: begin.tid,
            parts,
        })
    }
}

/// What the times of spans were spent on together.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpentSums {
    /// Of the spans whose parts are known, by part, ns.
    whole: TimeParts,
    /// The same without the spans within them.
    own: TimeParts,
    /// Of how many of these it is not known without the spans within them.
    own_unknown: u64,
    /// Number of the others, by reason.
    unknown: [u64; NoTimeParts::ALL.len()],
}

impl SpentSums {
    /// Adds a span.
    #[inline]
    pub(crate) fn add(&mut self, spent: SpentTime) {
        match spent.whole {
            Ok(parts) => self.whole = self.whole.plus(parts),
            Err(reason) => {
                self.unknown[reason as usize] += 1;
                return;
            }
        }
        match spent.own {
            Some(parts) => self.own = self.own.plus(parts),
            None => self.own_unknown += 1,
        }
    }

    /// Adds other spans.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.whole = self.whole.plus(other.whole);
        self.own = self.own.plus(other.own);
        self.own_unknown += other.own_unknown;
        for (count, more) in self.unknown.iter_mut().zip(other.unknown) {
            *count += more;
        }
    }

    /// Number of spans whose parts are not known.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown.iter().sum()
    }

    /// The sums of so many spans; `None` if the trace says of none how long threads waited.
    pub(crate) fn facts(&self, count: u64) -> Option<SpentFacts> {
        let is_recorded = self.unknown[NoTimeParts::NotRecorded as usize] < count;
        is_recorded.then(|| SpentFacts {
            known: count.saturating_sub(self.unknown()),
            whole: self.whole,
            own: (self.own_unknown == 0).then_some(self.own),
            unknown: self.unknown,
        })
    }
}

/// What the times of spans were spent on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentFacts {
    /// Number of spans whose parts are known.
    pub known: u64,
    whole: TimeParts,
    own: Option<TimeParts>,
    unknown: [u64; NoTimeParts::ALL.len()],
}

impl SpentFacts {
    /// The sum of a part of those that are known, ns.
    pub const fn part(&self, part: TimePart) -> u64 {
        self.whole.get(part)
    }

    /// The same without the spans within them; `None` if that is not known of all of them.
    pub fn own_part(&self, part: TimePart) -> Option<u64> {
        self.own.map(|own| own.get(part))
    }

    /// The sum of their durations, ns.
    pub fn total(&self) -> u64 {
        self.whole.total()
    }

    /// The sum of their times in no span within them, ns.
    pub fn own_total(&self) -> Option<u64> {
        self.own.map(TimeParts::total)
    }

    /// Number of the others, by each reason.
    pub fn unknown(&self) -> impl Iterator<Item = (NoTimeParts, u64)> {
        NoTimeParts::ALL.into_iter().zip(self.unknown)
    }
}
