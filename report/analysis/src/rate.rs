//! `report --rate`: how many events there are, interval by interval.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::HashMap;

use crate::origin::Origin;
use crate::samples::SelectedSamples;
use crate::stats::keys::value::KeyValue;

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::hit::Hit;

use crate::groups::counted_groups::{Bounded, ChosenGroups, CountedGroups, Grouping};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{Key, KeyWords};
use crate::stats::sketch::Combine;
use crate::stats::timeline::Timeline;

/// Series that are counted one by one, if intervals are few.
const MAX_SERIES: usize = 1024;
/// Series that are counted one by one however many intervals there are.
const MIN_SERIES: usize = 16;
/// Counts of all series and intervals that a thread keeps, of 8 bytes each.
const MAX_COUNTS: usize = 1 << 23;

type BySeries = HashMap<Box<[KeyWords]>, Vec<u64>>;

/// Rates of events, interval by interval.
#[derive(Debug)]
pub struct Rates {
    /// Facts about the trace.
    pub origin: Origin,
    /// The intervals.
    pub timeline: Timeline,
    /// What events are grouped by.
    pub keys: Vec<Key>,
    /// The most events first.
    pub series: Vec<Series>,
    /// Events of series that were too many to be counted one by one.
    pub others: Option<OtherSeries>,
}

/// Events of one series.
#[derive(Clone, Debug)]
pub struct Series {
    /// The event, if it is not a key.
    pub event: Option<String>,
    /// The value of each key.
    pub values: Vec<KeyValue>,
    /// In each interval.
    pub counts: Vec<u64>,
    /// For how long its probes were attached in each interval, ns.
    pub recorded: Vec<u64>,
}

/// Series that are not counted one by one.
#[derive(Clone, Debug)]
pub struct OtherSeries {
    /// In each interval.
    pub counts: Vec<u64>,
    /// For how long probes were attached in each interval, ns.
    pub recorded: Vec<u64>,
    /// What one of them may have of events, if that is more than the last one that is kept has.
    pub doubtful: Option<u64>,
}

/// Counts of a thread.
#[derive(Debug, Default)]
struct Counts {
    series: BySeries,
    /// Maximum number of series.
    most: usize,
    others: Option<Vec<u64>>,
    /// Whether there were more series than there may be.
    overflow: bool,
    key: Vec<KeyWords>,
}

/// Counts in intervals of so many ns, grouped by keys.
pub(crate) fn rates(
    samples: SelectedSamples<'_>,
    interval: u64,
    sort: &[String],
    notices: &mut Notices,
) -> Result<Rates, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let timeline = Timeline::stepped(session, filter, interval)?;
    let rows = Rows::new(session, |event| filter.event(event));
    let keys = sort.iter();
    let keys: Vec<Key> = keys
        .map(|name| Key::parse(name, session, &rows))
        .collect::<Result<_, _>>()?;
    let asked = Asked {
        grouping: Grouping {
            session,
            filter,
            rows: &rows,
            keys: &keys,
            by_row: true,
            apart: false,
        },
        timeline: &timeline,
    };
    let CountedGroups {
        counts,
        dictionary,
        kept,
    } = asked.count(notices);
    let by_event = !keys.contains(&Key::Event);
    let all: Vec<usize> = rows
        .rows
        .iter()
        .flat_map(|row| row.events.clone())
        .collect();
    let of_all = timeline.recorded(session, &all);
    let has_pauses = !session.pauses().is_empty();
    let series = counts.series.into_iter().map(|(words, counts)| {
        let row = words.first().map_or(0, |words| words.kind as usize);
        let event = rows
            .rows
            .get(row)
            .map_or_else(String::new, |row| row.name.clone());
        let values = keys.iter().zip(words.iter().skip(1));
        let values = values.map(|(key, &words)| key.value(words, session, &rows, &dictionary));
        Series {
            recorded: match rows.rows.get(row).filter(|_| has_pauses) {
                Some(row) => timeline.recorded(session, &row.events),
                None => of_all.clone(),
            },
            event: by_event.then_some(event),
            values: values.collect(),
            counts,
        }
    });
    let mut series: Vec<Series> = series.collect();
    series.sort_by(|a, b| {
        let by_count = b.count().cmp(&a.count());
        by_count
            .then_with(|| a.event.cmp(&b.event))
            .then_with(|| Key::compare(&keys, &a.values, &b.values))
    });
    let last = series.last().map_or(0, Series::count);
    let bound = kept.map_or(0, |kept| kept.bound(0));
    let others = counts.others.map(|counts| OtherSeries {
        counts,
        recorded: of_all,
        doubtful: (bound > last).then_some(bound),
    });
    Ok(Rates {
        origin: Origin::new(session),
        timeline,
        keys,
        series,
        others,
    })
}

impl Series {
    /// All its events.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// What all walks for a question have in common.
struct Asked<'a> {
    grouping: Grouping<'a>,
    timeline: &'a Timeline,
}

impl Asked<'_> {
    /// Counts all series, or if there are too many, those with the most events.
    fn count(&self, notices: &mut Notices) -> CountedGroups<Counts> {
        let grouping = &self.grouping;
        grouping.count(
            most_series(self.timeline.intervals),
            notices,
            |kept, dictionary, notices| self.walk(kept, dictionary, notices),
            |_, notices| grouping.bounds(&[true], Combine::Sum, |_, _, _| 1, notices),
        )
    }

    fn walk(
        &self,
        kept: Option<&ChosenGroups>,
        dictionary: &Dictionary,
        notices: &mut Notices,
    ) -> Counts {
        // Of too many series, the counts are of no use.
        let is_full = AtomicBool::new(false);
        let make = || Counts::new(most_series(self.timeline.intervals));
        let states = self.grouping.walk(
            kept.is_none(),
            make,
            |counts, resolver, samples| {
                if is_full.load(Relaxed) {
                    return;
                }
                for sample in samples.samples() {
                    let hit = Hit {
                        target: samples.target,
                        sample: &sample,
                    };
                    let key = &mut counts.key;
                    if kept.is_some_and(|kept| !kept.has(&self.grouping, key, resolver, hit)) {
                        counts.count_other(self.timeline, sample.time);
                    } else if self.grouping.put(key, resolver, hit, dictionary).is_some() {
                        counts.count(self.timeline, sample.time);
                    }
                }
                if kept.is_none() && (counts.overflow || dictionary.is_overflown()) {
                    is_full.store(true, Relaxed);
                }
            },
            notices,
        );
        let all = states.into_iter().reduce(Counts::merge);
        all.unwrap_or_default()
    }
}

/// Series that are counted one by one in so many intervals.
fn most_series(intervals: usize) -> usize {
    (MAX_COUNTS / intervals.max(1)).clamp(MIN_SERIES, MAX_SERIES)
}

impl Bounded for Counts {
    fn is_overflown(&self) -> bool {
        self.overflow
    }
}

impl Counts {
    /// Without events, for at most this number of series.
    fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Counts an event of the series of `key`.
    fn count(&mut self, timeline: &Timeline, time: u64) {
        let place = timeline.place(time);
        let full = self.series.len() >= self.most;
        match self.series.get_mut(&*self.key) {
            Some(counts) => counts[place] += 1,
            None if full => {
                self.overflow = true;
                self.count_other(timeline, time);
            }
            None => {
                let mut counts = vec![0; timeline.intervals];
                counts[place] = 1;
                self.series.insert(self.key.as_slice().into(), counts);
            }
        }
    }

    fn count_other(&mut self, timeline: &Timeline, time: u64) {
        let others = self
            .others
            .get_or_insert_with(|| vec![0; timeline.intervals]);
        others[timeline.place(time)] += 1;
    }

    /// Adds those of another thread.
    fn merge(mut self, other: Self) -> Self {
        let add = |sums: &mut Vec<u64>, counts: &[u64]| {
            let both = sums.iter_mut().zip(counts);
            both.for_each(|(sum, count)| *sum += count);
        };
        self.overflow |= other.overflow;
        for (key, counts) in other.series {
            let full = self.series.len() >= self.most;
            match self.series.get_mut(&key) {
                Some(sums) => add(sums, &counts),
                None if full => self.overflow = true,
                None => {
                    self.series.insert(key, counts);
                }
            }
        }
        match (&mut self.others, other.others) {
            (Some(sums), Some(counts)) => add(sums, &counts),
            (None, Some(counts)) => self.others = Some(counts),
            (_, None) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_for_counts_is_bounded() {
        let most = [0, 1, 1 << 13, 1 << 14, 1 << 16].map(most_series);
        assert_eq!(most, [1024, 1024, 1024, 512, 128]);
    }

    #[test]
    fn series_beyond_the_most_are_counted_together() {
        let timeline = Timeline {
            from: 0,
            interval: 10,
            intervals: 2,
            until: 20,
        };
        let of = |series: std::ops::Range<u64>| {
            let mut counts = Counts::new(3);
            for series in series {
                counts.key = vec![KeyWords::new(1, series)];
                counts.count(&timeline, 5);
                counts.count(&timeline, 15);
            }
            counts
        };
        let few = of(0..3);
        assert!(!few.overflow && few.others.is_none());
        let many = of(0..5);
        assert!(many.overflow && many.series.len() == 3);
        assert_eq!(many.others, Some(vec![2, 2]));
        assert!(!of(0..2).merge(of(1..3)).overflow);
        assert!(of(0..2).merge(of(2..4)).overflow);
    }
}
