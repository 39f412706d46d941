//! The numbers of a measured argument.

use serde_json::{Value, json};
use usdtrec_analysis::counted_numbers::NumberFacts;
use usdtrec_format::scaled::{duration, size};
use usdtrec_trace::form::Form;

use super::member::Member;
use crate::report::groups::decimals;
use crate::report::histogram::json_buckets;
use crate::table::TableCell;
use crate::text::scalar::{json_float, json_integer};

/// An argument whose numbers are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatArgument {
    /// Its name.
    pub name: String,
    /// Whether percentiles and a histogram are shown, too.
    pub has_histogram: bool,
}

/// A figure of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFigure {
    Sum,
    Mean,
    /// The mean without its fraction.
    WholeMean,
    Min,
    P50,
    P90,
    P99,
    Max,
}

impl NumberFigure {
    /// Without those of a histogram.
    const PLAIN: [Self; 4] = [Self::Sum, Self::Mean, Self::Min, Self::Max];
    const ALL: [Self; 7] = [
        Self::Sum,
        Self::Mean,
        Self::Min,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::Max,
    ];

    /// Its name, that of the same figure in a report.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean | Self::WholeMean => "mean",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    /// Whether it is a percentile.
    const fn is_percentile(self) -> bool {
        matches!(self, Self::P50 | Self::P90 | Self::P99)
    }

    /// The figure, if it is an integer and known.
    pub(super) fn integer(self, facts: &NumberFacts) -> Option<i128> {
        let distribution = facts.distribution.as_ref();
        let percentiles = distribution.and_then(|all| all.percentiles);
        match self {
            Self::Sum => (facts.count > 0).then_some(facts.sum),
            Self::Mean => None,
            Self::WholeMean => (facts.count > 0).then(|| facts.sum / i128::from(facts.count)),
            Self::Min => facts.ends.map(|ends| ends.min),
            Self::Max => facts.ends.map(|ends| ends.max),
            Self::P50 => percentiles.map(|all| all.p50),
            Self::P90 => percentiles.map(|all| all.p90),
            Self::P99 => percentiles.map(|all| all.p99),
        }
    }

    /// The figure in JSON; `null` if it is not known.
    pub(super) fn json(self, facts: Option<&NumberFacts>) -> Value {
        let number = facts.and_then(|facts| match self {
            Self::Mean => facts.mean.map(json_float),
            _ => self.integer(facts).map(json_integer),
        });
        number.unwrap_or_default()
    }

    /// The figure with as many digits as people need, and as it has.
    fn cell(self, facts: &NumberFacts) -> TableCell {
        let unknown = || TableCell::unsorted("-");
        if self == Self::Mean {
            let cell = |mean| TableCell::number(decimals(mean), mean);
            return facts.mean.map_or_else(unknown, cell);
        }
        let Some(number) = self.integer(facts) else {
            return unknown();
        };
        let is_near = self.is_percentile() && !is_exact(facts);
        if !is_near {
            return TableCell::count(number);
        }
        let rounded = four_digits(number);
        let shown = facts
            .ends
            .map_or(rounded, |ends| rounded.clamp(ends.min, ends.max));
        TableCell::number(format!("~{shown}"), number)
    }
}

impl NumberFigure {
    /// The figures of a table that is redrawn, without a histogram.
    const LIVE_PLAIN: [Self; 2] = [Self::Sum, Self::Mean];
    /// And with one.
    const LIVE: [Self; 2] = [Self::P50, Self::P99];

    /// The figure in a unit that people read, if the argument has one; `facts` is `None` if nothing is known of the numbers.
    pub(super) fn cell_in(self, form: &Form, facts: Option<&NumberFacts>) -> TableCell {
        let Some(facts) = facts else {
            return TableCell::unsorted("-");
        };
        let number = match self {
            Self::Mean => facts.mean,
            _ => self.integer(facts).map(|number| number as f64),
        };
        match (form, number) {
            (Form::Time(unit), Some(number)) => {
                TableCell::number(duration(number * *unit as f64), number)
            }
            (Form::Memory(unit), Some(number)) => {
                TableCell::number(size(number * *unit as f64), number)
            }
            _ => self.cell(facts),
        }
    }
}

/// A percentile with four digits: it is within 1/64 of itself, and three digits would change it by up to a third of that.
fn four_digits(number: i128) -> i128 {
    let digits = number.unsigned_abs().max(1).ilog10() + 1;
    let step = 10_i128.pow(digits.saturating_sub(4));
    (number + number.signum() * (step / 2)) / step * step
}

/// Whether percentiles are exact.
pub(super) fn is_exact(facts: &NumberFacts) -> bool {
    let distribution = facts.distribution.as_ref();
    distribution.is_none_or(|distribution| distribution.exact)
}

/// The buckets of a histogram in JSON; `null` if they are not known.
pub(super) fn buckets(facts: Option<&NumberFacts>, form: &Form) -> Value {
    let distribution = facts.and_then(|facts| facts.distribution.as_ref());
    json!(distribution.map(|all| json_buckets(&all.buckets(), form)))
}

impl StatArgument {
    const fn figures(&self) -> &'static [NumberFigure] {
        match self.has_histogram {
            true => &NumberFigure::ALL,
            false => &NumberFigure::PLAIN,
        }
    }

    /// The figures that a table which is redrawn has room for.
    pub(super) const fn live_figures(&self) -> &'static [NumberFigure] {
        match self.has_histogram {
            true => &NumberFigure::LIVE,
            false => &NumberFigure::LIVE_PLAIN,
        }
    }

    /// The columns of a table.
    pub(super) fn columns(&self, is_only: bool) -> impl Iterator<Item = String> {
        let figures = self.figures().iter();
        figures.map(move |figure| self.column(*figure, is_only))
    }

    /// The column of a figure, with the name of the argument if others have columns, too.
    pub(super) fn column(&self, figure: NumberFigure, is_only: bool) -> String {
        match is_only {
            true => figure.name().to_owned(),
            false => format!("{}.{}", self.name, figure.name()),
        }
    }

    /// The cells of a row; `facts` is `None` if nothing is known of the numbers.
    pub(super) fn cells(&self, facts: Option<&NumberFacts>) -> impl Iterator<Item = TableCell> {
        let figures = self.figures().iter();
        figures.map(move |figure| figure.cell_in(&Form::Plain, facts))
    }

    /// What JSON and CSV have; `facts` is `None` if nothing is known of the numbers.
    pub(super) fn members(&self, facts: Option<&NumberFacts>) -> Vec<Member> {
        let named = |name: &str, value| Member::new(format!("{}.{name}", self.name), Some(value));
        let mut all = vec![named("count", json!(facts.map(|facts| facts.count)))];
        let figures = self.figures().iter();
        all.extend(figures.map(|figure| named(figure.name(), figure.json(facts))));
        let buckets = named("buckets", buckets(facts, &Form::Plain)).column_if(false);
        let of_histogram = [named("exact", json!(facts.map(is_exact))), buckets];
        all.extend(of_histogram.into_iter().filter(|_| self.has_histogram));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::four_digits;

    #[test]
    fn percentiles_have_four_digits() {
        for (number, shown) in [
            (0, 0),
            (7, 7),
            (1030, 1030),
            (-1030, -1030),
            (49_534, 49_530),
            (49_535, 49_540),
            (-49_535, -49_540),
            (99_996, 100_000),
        ] {
            assert_eq!(four_digits(number), shown, "{number}");
        }
    }
}
