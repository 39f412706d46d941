//! `--value`: the numbers of an argument, summed up group by group.

use usdtrec_format::Value;

use crate::report::argument::Argument;
use crate::report::distribution::{Distribution, Middle};
use crate::report::number::Number;
use crate::text::Text;

/// Groups whose numbers are summed up: each takes some kilobytes.
pub(super) const MOST_STATS: usize = 1 << 14;

/// Numbers of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    held: Argument,
    integers: i128,
    floats: f64,
}

/// What is told of them: decimal text, empty if there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatFacts {
    pub(crate) count: u64,
    /// The sum, to sort by.
    pub(crate) weight: f64,
    /// `sum`, `mean`, `min`, `p50`, `p90`, `p99`, `max`.
    pub(crate) figures: [String; 7],
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub(crate) exact: bool,
}

impl StatFacts {
    /// Names of the figures.
    pub(crate) const NAMES: [&'static str; 7] = ["sum", "mean", "min", "p50", "p90", "p99", "max"];
}

impl Stats {
    /// Adds a value; what is no number does not count.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::Unsigned(number) => self.integers += i128::from(*number),
            Value::Signed(number) => self.integers += i128::from(*number),
            Value::Float32(number) if !number.is_nan() => self.floats += f64::from(*number),
            Value::Float64(number) if !number.is_nan() => self.floats += number,
            _ => return,
        }
        self.held.add(value);
    }

    /// Adds those of another thread.
    pub(super) fn merge(&mut self, other: Self) {
        self.held.settle();
        self.held.merge(other.held);
        self.integers += other.integers;
        self.floats += other.floats;
    }

    /// What is told.
    pub(super) fn facts(mut self) -> StatFacts {
        self.held.settle();
        let (integers, floats) = (&self.held.integers, &self.held.floats);
        if floats.count() > integers.count() {
            return told(floats, self.floats, |sum| {
                let mut text = Text::default();
                text.float64(sum);
                text.into_string()
            });
        }
        let exact = self.integers;
        let mut facts = told(integers, exact as f64, |number| format!("{number:.1}"));
        if facts.count > 0 {
            facts.figures[0] = exact.to_string();
        }
        facts
    }
}

fn told<N: Number>(
    numbers: &Distribution<N>,
    sum: f64,
    shown: impl Fn(f64) -> String,
) -> StatFacts {
    let Some((min, max)) = numbers.ends() else {
        return StatFacts::default();
    };
    let at = |thousandths| match numbers.quantile(thousandths) {
        Some(Middle::Exact(number) | Middle::Near(number)) => number.decimal(),
        None => String::new(),
    };
    StatFacts {
        count: numbers.count(),
        weight: sum,
        figures: [
            shown(sum),
            shown(sum / numbers.count() as f64),
            min.decimal(),
            at(500),
            at(900),
            at(990),
            max.decimal(),
        ],
        exact: numbers.values().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_texts_do_not_count() {
        let mut stats = Stats::default();
        for number in [u64::MAX, u64::MAX, 1] {
            stats.add(&Value::Unsigned(number));
        }
        stats.add(&Value::Float64(0.5));
        let mut other = Stats::default();
        other.add(&Value::Signed(-1));
        stats.merge(other);
        let facts = stats.facts();
        assert_eq!(
            (facts.count, &*facts.figures[0]),
            (4, "36893488147419103230")
        );
        assert_eq!((&*facts.figures[2], &*facts.figures[3]), ("-1", "1"));
        let mut floats = Stats::default();
        for number in [0.5, 1.5] {
            floats.add(&Value::Float64(number));
        }
        assert_eq!(floats.facts().figures[..2], ["2.0", "1.0"]);
        assert_eq!(Stats::default().facts(), StatFacts::default());
    }
}
