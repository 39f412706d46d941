//! How the events of a probe are spread over a trace's time, and where that is unusual.
//!
//! The events of a probe are counted in 64 to 128 slices of time, which are merged until they hold 16 events. A burst
//! has three times as many events as the median slice, and more than six standard deviations of chance more, unless a
//! quarter of all slices is like that.

use usdtrec_trace::session::TraceSession;

/// Events in a slice, at the least, from which a slice's number says something.
const MIN_EVENTS: u64 = 16;
/// Slices, at the least, from which their median says something.
const MIN_SLICES: usize = 16;
/// From how many times the median on events are a burst.
const BURST: u64 = 3;

/// Slices of time of one length: 64 to 128 of the whole trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    from: u64,
    /// Slices are powers of two of nanoseconds: every sample asks for its own.
    shift: u32,
}

impl Slices {
    const MAX_SLICES: usize = 128;

    pub(crate) fn new(session: &TraceSession) -> Self {
        let time = session.time().unwrap_or_default();
        let bits = u64::BITS - (time.last - time.first).leading_zeros();
        Self {
            from: time.first,
            shift: bits.saturating_sub(7),
        }
    }
}

/// Number of events in each slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    counts: Vec<u64>,
}

/// A time that is unlike the others of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Since the first event of the trace, ns.
    pub from: u64,
    /// Its end, ns.
    pub to: u64,
    /// Maximum ratio to the median; 0 for a pause.
    pub times: f64,
}

/// Slices that differ from the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Episodes {
    /// Many events in a short time.
    pub(crate) bursts: Vec<Episode>,
    /// No events for a time.
    pub(crate) pauses: Vec<Episode>,
    /// Length of the slices that were compared, ns.
    pub(crate) slice: u64,
}

impl Pace {
    /// Counts an event of this time.
    #[inline]
    pub(crate) fn add(&mut self, slices: Slices, time: u64) {
        let at = (time.saturating_sub(slices.from) >> slices.shift) as usize;
        let at = at.min(Slices::MAX_SLICES - 1);
        match self.counts.get_mut(at) {
            Some(count) => *count += 1,
            None => self.extend(at),
        }
    }

    #[cold]
    fn extend(&mut self, at: usize) {
        self.counts.resize(at + 1, 0);
        self.counts[at] = 1;
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *count += theirs;
        }
    }

    /// Bursts and pauses between a probe's first and last event. Those of few events are chance, and are left out.
    pub(crate) fn episodes(&self, slices: Slices) -> Episodes {
        let mut counts = self.counts.clone();
        let mut shift = slices.shift;
        loop {
            let first = counts.iter().position(|&count| count > 0);
            let (Some(first), last) = (first, counts.len()) else {
                return Episodes::default();
            };
            let active = &counts[first..last];
            if active.len() < MIN_SLICES {
                return Episodes::default();
            }
            let mut sorted = active.to_vec();
            sorted.sort_unstable();
            let median = sorted[sorted.len() / 2];
            if median >= MIN_EVENTS {
                return find(active, first, shift, median);
            }
            counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            shift += 1;
        }
    }
}

/// What is unlike the median in slices, of which the first is the so-manieth of the trace.
fn find(counts: &[u64], first: usize, shift: u32, median: u64) -> Episodes {
    // A Poisson process hardly ever goes beyond six standard deviations.
    let chance = median + 6 * median.isqrt();
    let many = chance.max(BURST * median);
    // Where a quarter of all slices is like that, it is this probe's way.
    let seldom = |found: &[bool]| {
        let number = found.iter().filter(|&&found| found).count();
        number * 4 <= found.len()
    };
    let episodes = |is: &dyn Fn(u64) -> bool| {
        let found: Vec<bool> = counts.iter().map(|&count| is(count)).collect();
        if !seldom(&found) {
            return Vec::new();
        }
        let mut episodes: Vec<Episode> = Vec::new();
        for (at, &count) in counts.iter().enumerate().filter(|(at, _)| found[*at]) {
            let from = ((first + at) as u64) << shift;
            let to = from.saturating_add(1 << shift);
            let times = count as f64 / median as f64;
            match episodes.last_mut() {
                Some(last) if last.to == from => {
                    last.to = to;
                    last.times = last.times.max(times);
                }
                _ => episodes.push(Episode { from, to, times }),
            }
        }
        episodes
    };
    Episodes {
        bursts: episodes(&|count| count > many),
        pauses: episodes(&|count| count == 0),
        slice: 1 << shift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICES: Slices = Slices { from: 0, shift: 10 };

    fn pace(counts: impl Iterator<Item = u64>) -> Pace {
        Pace {
            counts: counts.collect(),
        }
    }

    fn none(pace: &Pace) -> bool {
        let found = pace.episodes(SLICES);
        found.bursts.is_empty() && found.pauses.is_empty()
    }

    #[test]
    fn bursts_and_pauses_stand_out() {
        let even = pace((0..100).map(|at| 100 + at % 7));
        assert!(none(&even));
        let uneven = pace((0..100).map(|at| match at {
            0..10 => 0,
            40 | 41 => 450,
            70 => 0,
            at => 100 + at % 7,
        }));
        let found = uneven.episodes(SLICES);
        assert_eq!(found.bursts.len(), 1);
        assert_eq!((found.bursts[0].from, found.bursts[0].to), (40960, 43008));
        assert!((found.bursts[0].times - 4.37).abs() < 0.1);
        // That it began late is no pause.
        assert_eq!(found.pauses.len(), 1);
        assert_eq!(found.pauses[0].from, 71680);
    }

    #[test]
    fn few_events_and_habits_are_not_reported() {
        let few = pace((0..100).map(|at| u64::from(at % 50 == 0) * 5));
        assert!(none(&few));
        let habit = pace((0..100).map(|at| if at % 3 == 0 { 1000 } else { 20 }));
        assert!(none(&habit));
        assert!(none(&Pace::default()));
    }

    #[test]
    fn slices_are_merged_until_they_hold_enough() {
        let thin = pace((0..128).map(|at| if (64..72).contains(&at) { 30 } else { 4 }));
        let found = thin.episodes(SLICES);
        assert_eq!(found.bursts.len(), 1);
        assert_eq!((found.bursts[0].from, found.bursts[0].to), (65536, 73728));
        let mut one = Pace::default();
        let mut other = Pace::default();
        one.add(SLICES, 5000);
        other.add(SLICES, 0);
        other.add(SLICES, u64::MAX);
        one.merge(&other);
        assert_eq!(one.counts.len(), 128);
        assert_eq!((one.counts[0], one.counts[4], one.counts[127]), (1, 1, 1));
    }
}
