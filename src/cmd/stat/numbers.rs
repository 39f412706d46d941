//! The numbers of measured arguments, as the view has them.

use usdtrec_format::NumberEnds;
use usdtrec_record::{HitGroup, MeasuredArgument, NumberTotals};
use usdtrec_report::stat::CountedNumbers;

/// The numbers of each measured argument in hits with equal keys; `None` for those that are not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Vec<Option<CountedNumbers>>);

impl Numbers {
    /// The numbers of no hits.
    pub(super) fn none(measured: &[MeasuredArgument]) -> Self {
        let none = measured.iter().map(|argument| {
            Some(CountedNumbers {
                histogram: argument.has_histogram.then(Default::default),
                ..CountedNumbers::default()
            })
        });
        Self(none.collect())
    }

    /// The numbers of hits of which nothing is known.
    pub(super) fn unknown(measured: &[MeasuredArgument]) -> Self {
        Self(measured.iter().map(|_| None).collect())
    }

    /// Adds those of a group.
    pub(super) fn add(&mut self, group: &HitGroup) {
        for (sum, totals) in self.0.iter_mut().zip(&group.numbers) {
            match (&mut *sum, totals) {
                (Some(sum), Some(totals)) => sum.add(counted(totals, sum.histogram.is_some())),
                _ => *sum = None,
            }
        }
    }

    /// What the next interval begins after: these, without their extremes.
    pub(super) fn counted(mut self) -> Self {
        self.0.iter_mut().flatten().for_each(|all| all.ends = None);
        self
    }

    /// What the next interval begins after if no hit was counted in this one: earlier ones, and the extremes that a hit had before it was counted.
    pub(super) fn postponed(&self, earlier: &Self) -> Self {
        let both = self.0.iter().zip(&earlier.0);
        let postponed = both.map(|(now, before)| {
            Some(CountedNumbers {
                ends: NumberEnds::of_both(now.as_ref()?.ends, before.as_ref()?.ends),
                ..before.clone()?
            })
        });
        Self(postponed.collect())
    }

    /// The least and the greatest of each.
    pub(super) fn ends(&self) -> Vec<Option<NumberEnds>> {
        let numbers = self.0.iter();
        numbers.map(|numbers| numbers.as_ref()?.ends).collect()
    }

    /// These, with extremes that are those of earlier readings, too.
    pub(super) fn with_ends(mut self, earlier: &[Option<NumberEnds>]) -> Self {
        for (numbers, earlier) in self.0.iter_mut().zip(earlier) {
            if let Some(numbers) = numbers {
                numbers.ends = NumberEnds::of_both(numbers.ends, *earlier);
            }
        }
        self
    }

    /// The numbers of each measured argument, as the view has them.
    pub(super) fn into_counted(self) -> Vec<Option<CountedNumbers>> {
        self.0
    }

    /// The numbers that are not among earlier ones.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let earlier = earlier.0.iter().map(Option::as_ref);
        let earlier = earlier.chain(std::iter::repeat(None));
        let since = self.0.iter().zip(earlier).map(|(now, before)| {
            let now = now.as_ref()?;
            Some(before.map_or_else(|| now.clone(), |before| now.since(before)))
        });
        Self(since.collect())
    }
}

fn counted(totals: &NumberTotals, has_histogram: bool) -> CountedNumbers {
    let buckets = totals.buckets.iter();
    let buckets = buckets.map(|counted| (counted.bucket, counted.count));
    CountedNumbers {
        count: totals.count,
        sum: totals.sum,
        ends: totals.ends,
        histogram: has_histogram.then(|| buckets.collect()),
        unbucketed: totals.unbucketed,
    }
}
