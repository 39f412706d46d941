//! The extremes of counts that are not shown: they are those since the last reading, while counts, sums and buckets are totals.

use std::collections::BTreeMap;

use usdtrec_record::{AggregateValue, HitGroup, HitTotals, NumberEnds};

/// What groups have in common that are shown as one. Their values are in the form of [`std::fmt::Debug`], as they have no order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EndsKey {
    event: String,
    is_span: bool,
    values: Vec<String>,
}

impl EndsKey {
    fn from_group(group: &HitGroup) -> Self {
        let values = group.values.iter().map(|value| match value {
            AggregateValue::Stack(stack) => format!("stack {}", stack.number),
            value => format!("{value:?}"),
        });
        Self {
            event: group.probe.event.clone(),
            is_span: group.probe.is_span,
            values: values.collect(),
        }
    }
}

/// Adds the extremes of counts that are left out to those of the same groups in the next ones.
pub(in crate::cmd) fn keep_ends(left_out: &HitTotals, next: &mut HitTotals) {
    let mut kept: BTreeMap<EndsKey, Vec<Option<NumberEnds>>> = BTreeMap::new();
    for group in left_out.groups.iter().filter(|group| has_ends(group)) {
        let ends = kept.entry(EndsKey::from_group(group)).or_default();
        ends.resize(group.numbers.len().max(ends.len()), None);
        for (ends, totals) in ends.iter_mut().zip(&group.numbers) {
            let new = totals.as_ref().and_then(|totals| totals.ends);
            *ends = NumberEnds::of_both(*ends, new);
        }
    }
    if kept.is_empty() {
        return;
    }
    for group in &mut next.groups {
        let ends = kept.get(&EndsKey::from_group(group));
        let ends = ends.into_iter().flatten();
        for (totals, ends) in group.numbers.iter_mut().zip(ends) {
            if let Some(totals) = totals {
                totals.ends = NumberEnds::of_both(totals.ends, *ends);
            }
        }
    }
}

fn has_ends(group: &HitGroup) -> bool {
    let mut totals = group.numbers.iter().flatten();
    totals.any(|totals| totals.ends.is_some())
}

#[cfg(test)]
pub(in crate::cmd) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use usdtrec_record::{GroupedProbe, NumberTotals};

    use super::*;

    /// A process, and the extremes of its numbers.
    type OfProcess = (u32, Option<(i128, i128)>);

    /// Counts at a time.
    pub(in crate::cmd) fn counted(time: u64, groups: &[OfProcess]) -> HitTotals {
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            is_span: false,
            arguments: vec![None],
            measured: vec![None],
        });
        let groups = groups.iter().map(|(pid, ends)| HitGroup {
            probe: Arc::clone(&probe),
            values: vec![AggregateValue::Number(*pid)],
            count: 1,
            numbers: vec![Some(NumberTotals {
                ends: ends.map(|(min, max)| NumberEnds { min, max }),
                ..NumberTotals::default()
            })],
        });
        HitTotals {
            elapsed: Duration::from_secs(time),
            time,
            hits: Vec::new(),
            groups: groups.collect(),
            spans: Vec::new(),
        }
    }

    /// The extremes of each group.
    pub(in crate::cmd) fn ends(counted: &HitTotals) -> Vec<Option<(i128, i128)>> {
        let groups = counted.groups.iter();
        let ends = groups.map(|group| group.numbers[0].as_ref()?.ends);
        ends.map(|ends| ends.map(|ends| (ends.min, ends.max)))
            .collect()
    }

    #[test]
    fn extremes_that_are_left_out_are_those_of_the_next_counts() {
        let left_out = counted(1, &[(7, Some((1, 3))), (8, None), (7, Some((-2, 0)))]);
        let mut next = counted(
            2,
            &[(9, Some((5, 5))), (8, Some((6, 6))), (7, Some((2, 9)))],
        );
        keep_ends(&left_out, &mut next);
        assert_eq!(ends(&next), [Some((5, 5)), Some((6, 6)), Some((-2, 9))]);
        let mut without = counted(2, &[(7, None)]);
        keep_ends(&left_out, &mut without);
        assert_eq!(ends(&without), [Some((-2, 3))]);
        let mut of_span = counted(2, &[(7, None)]);
        for group in &mut of_span.groups {
            Arc::make_mut(&mut group.probe).is_span = true;
        }
        keep_ends(&left_out, &mut of_span);
        assert_eq!(ends(&of_span), [None]);
    }
}
