//! Histograms below the table.

use std::fmt::Write as _;

use usdtrec_analysis::counted_numbers::{NumberDistribution, NumberFacts};
use usdtrec_analysis::measured_subject::Division;
use usdtrec_format::counted;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::event_name::short_name;

use super::durations::NANOSECONDS;
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
    /// The argument; `None` for durations.
    argument: Option<&'a StatArgument>,
    distribution: &'a NumberDistribution,
}

impl StatView {
    /// Appends how exact percentiles are, if any is not exact.
    pub(super) fn put_error(&self, counts: &StatCounts, out: &mut String) {
        let is_near = |facts: &NumberFacts| !is_exact(facts);
        let mut spans = counts.rows.iter().filter_map(StatRow::durations);
        if spans.any(is_near) {
            out.push_str("  percentiles of spans are within 1.6 %\n");
        }
        let events = counts.rows.iter().filter(|row| !row.is_span);
        let mut numbers = events.flat_map(|row| &row.numbers).flatten();
        if numbers.any(is_near) {
            out.push_str("~ means: within 1.6 %\n");
        }
    }

    /// Appends the histograms.
    pub(super) fn put_histograms(&self, counts: &StatCounts, out: &mut String) {
        let shows_spans = self.spans.is_some_and(|spans| spans.has_histogram);
        let shown = counts.rows.iter().flat_map(|row| {
            let measured = self.measured.iter().enumerate();
            let measured = measured.filter(|_| !row.is_span);
            let measured =
                measured.map(|(place, argument)| (Some(argument), row.numbers_of(place)));
            let durations = row.durations().filter(|_| shows_spans);
            let all = measured.chain(durations.map(|facts| (None, Some(facts))));
            all.filter_map(move |(argument, facts)| {
                let distribution = facts?.distribution.as_ref()?;
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
        let counted = match argument {
            Some(argument) => {
                let name = escape(&argument.name);
                format!("{name}, {} values", distribution.count)
            }
            None => counted(distribution.count, "span"),
        };
        let _ = writeln!(out, "\n{of}: {counted}, {}", words(Division::Log2));
        let form = match argument {
            Some(_) => &Form::Plain,
            None => &NANOSECONDS,
        };
        put_bars(&distribution.buckets(), form, self.theme, out);
    }
}
