//! What the time of spans was spent on, of those whose thread's waits are known.

use serde_json::json;
use usdtrec_analysis::counted_numbers::{CountedNumbers, NumberFacts};
use usdtrec_format::TimePart;

use super::member::Member;
use crate::report::spans::share_cell;
use crate::table::TableCell;

/// Number of parts, which are before the durations among the numbers of spans.
const PARTS: usize = TimePart::ALL.len();

/// The sums of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanParts {
    /// In the order of [`TimePart::ALL`], ns.
    pub(super) sums: [u64; PARTS],
    /// Number of spans of which they are known.
    known: u64,
}

impl SpanParts {
    /// Those of the numbers of spans; `None` if they are of no span.
    pub(super) fn from_facts(numbers: &[Option<NumberFacts>]) -> Option<Self> {
        Self::new(numbers, |facts| (facts.count, facts.sum))
    }

    /// The same.
    pub(super) fn from_counted(numbers: &[Option<CountedNumbers>]) -> Option<Self> {
        Self::new(numbers, |counted| (counted.count, counted.sum))
    }

    fn new<N>(numbers: &[Option<N>], count_and_sum: impl Fn(&N) -> (u64, i128)) -> Option<Self> {
        let (_, before) = numbers.split_last()?;
        let parts = before.last_chunk::<PARTS>()?;
        let (mut sums, mut known) = ([0; PARTS], u64::MAX);
        for (sum, part) in sums.iter_mut().zip(parts) {
            let (count, all) = count_and_sum(part.as_ref()?);
            *sum = u64::try_from(all).unwrap_or(u64::MAX);
            known = known.min(count);
        }
        (known > 0).then_some(Self { sums, known })
    }

    /// Number of spans of which they are not known, among so many.
    pub(super) fn unknown(this: Option<Self>, spans: u64) -> u64 {
        spans.saturating_sub(this.map_or(0, |parts| parts.known))
    }
}

/// Why parts are not known of spans with these numbers. They have none where the key has no thread.
pub(super) fn why_unknown(numbers: &[Option<NumberFacts>]) -> &'static str {
    let before = numbers.split_last().map(|(_, before)| before);
    let parts = before.and_then(|before| before.last_chunk::<PARTS>());
    match parts.is_some_and(|parts| parts.iter().all(Option::is_some)) {
        true => "the kernel did not report a switch, or there was no room for the thread",
        false => "another thread may have ended them",
    }
}

/// The headings of the columns of the shares.
pub(super) fn columns() -> impl Iterator<Item = &'static str> {
    TimePart::ALL.into_iter().map(|part| part.spec().heading)
}

/// The share of each part.
pub(super) fn shares(parts: Option<SpanParts>) -> impl Iterator<Item = TableCell> {
    let sums = parts.map(|parts| parts.sums);
    let whole = sums.map(|sums| sums.into_iter().fold(0, u64::saturating_add));
    (0..PARTS).map(move |part| share_cell(sums.map(|sums| sums[part]), whole))
}

/// What JSON and CSV have of the parts of so many spans.
pub(super) fn members(parts: Option<SpanParts>, spans: u64) -> Vec<Member> {
    let sums = TimePart::ALL.into_iter().enumerate();
    let sums = sums.map(|(place, part)| {
        let sum = parts.map(|parts| parts.sums[place]);
        Member::new(part.spec().column, Some(json!(sum)))
    });
    let unknown = SpanParts::unknown(parts, spans);
    let unknown = Member::new("unknown_parts", Some(json!(unknown)));
    sums.chain([unknown]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(counts: [u64; PARTS + 1]) -> Vec<Option<CountedNumbers>> {
        let sums = [10, 20, 30, 40, 150];
        let all = counts.into_iter().zip(sums);
        all.map(|(count, sum)| {
            Some(CountedNumbers {
                count,
                sum,
                ..CountedNumbers::default()
            })
        })
        .collect()
    }

    #[test]
    fn shares_are_of_the_spans_whose_parts_are_known() {
        let parts = SpanParts::from_counted(&numbers([2, 2, 2, 2, 3]));
        assert_eq!(parts.map(|parts| parts.sums), Some([10, 20, 30, 40]));
        assert_eq!(SpanParts::unknown(parts, 3), 1);
        let shares: Vec<String> = shares(parts)
            .map(|cell| cell.shown().into_owned())
            .collect();
        assert_eq!(shares, ["10.0%", "20.0%", "30.0%", "40.0%"]);
    }

    #[test]
    fn parts_are_unknown_by_the_key() {
        let facts = |numbers: Vec<Option<CountedNumbers>>| -> Vec<Option<NumberFacts>> {
            let numbers = numbers.iter();
            numbers
                .map(|of| of.as_ref().map(CountedNumbers::facts))
                .collect()
        };
        let mut all = numbers([0, 0, 0, 0, 3]);
        assert!(why_unknown(&facts(all.clone())).contains("a switch, or there was no room"));
        all[..PARTS].fill(None);
        assert!(why_unknown(&facts(all)).contains("another thread"));
    }

    #[test]
    fn unknown_parts_are_no_zeros() {
        let parts = SpanParts::from_counted(&numbers([0, 0, 0, 0, 3]));
        assert_eq!(parts, None);
        assert!(shares(parts).all(|cell| cell.shown() == "-"));
        let members = members(parts, 3);
        assert_eq!(members[0].value, Some(serde_json::Value::Null));
        assert_eq!(
            members.last().map(|last| last.value.clone()),
            Some(Some(json!(3)))
        );
    }
}
