//! Histograms below the table.

use std::fmt::Write as _;

use usdtrec_analysis::counted_numbers::NumberDistribution;
use usdtrec_analysis::measured::Division;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::event_name::short_name;

use super::numbers::is_exact;
use super::{StatArgument, StatCounts, StatRow, StatView};
use crate::cells::{Cell, group_name};
use crate::report::histogram::{put_bars, words};

/// Histograms that are shown: those of the first rows.
const MAX_SHOWN: usize = 16;

/// A histogram.
#[derive(Clone, Copy)]
struct Shown<'a> {
    row: &'a StatRow,
    argument: &'a StatArgument,
    distribution: &'a NumberDistribution,
}

impl StatView {
    /// Appends how exact percentiles are, if any is not exact.
    pub(super) fn put_error(&self, counts: &StatCounts, out: &mut String) {
        let numbers = counts.rows.iter().flat_map(|row| &row.numbers);
        if numbers.flatten().any(|facts| !is_exact(facts)) {
            out.push_str("~ means: within 1.6 %\n");
        }
    }

    /// Appends the histograms.
    pub(super) fn put_histograms(&self, counts: &StatCounts, out: &mut String) {
        let shown = counts.rows.iter().flat_map(|row| {
            let measured = self.measured.iter().enumerate();
            measured.filter_map(move |(place, argument)| {
                let distribution = row.numbers_of(place)?.distribution.as_ref()?;
                (distribution.count > 0).then_some(Shown {
                    row,
                    argument,
                    distribution,
                })
            })
        });
        let shown: Vec<Shown<'_>> = shown.collect();
        for histogram in shown.iter().take(MAX_SHOWN) {
            self.put_histogram(*histogram, out);
        }
        if let Some(more) = shown.len().checked_sub(MAX_SHOWN + 1) {
            let _ = writeln!(out, "\n{} more histograms are not shown", more + 1);
        }
    }

    fn put_histogram(&self, shown: Shown<'_>, out: &mut String) {
        let Shown {
            row,
            argument,
            distribution,
        } = shown;
        let keys = row.keys.iter().flatten();
        let cells: Vec<Cell> = keys.map(super::StatKey::cell).collect();
        let mut of = escape(short_name(&row.event)).into_owned();
        if !cells.is_empty() {
            of += "  ";
            of += &group_name(&cells);
        }
        let _ = writeln!(
            out,
            "\n{of}: {}, {} values, {}",
            escape(&argument.name),
            distribution.count,
            words(Division::Log2)
        );
        put_bars(&distribution.buckets, &Form::Plain, self.theme, out);
    }
}
