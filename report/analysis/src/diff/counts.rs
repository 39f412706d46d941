//! What a recording holds, slice by slice of its time.

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::diff::slices::{Counts, SLICES, add};
use crate::diff::strings::SlicedStrings;
use crate::stats::distribution::Distribution;
use crate::stats::number::{Float, Integer, Number};

/// Counts of all probes. One a thread, merged at the end.
#[derive(Debug)]
pub(crate) struct RecordingCounts {
    pub(crate) rows: Vec<ProbeCounts>,
}

/// Counts of one probe.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeCounts {
    pub(crate) counts: Counts,
    pub(crate) arguments: Vec<ArgumentCounts>,
}

/// What an argument held.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentCounts {
    pub(crate) integers: Numbers<Integer>,
    pub(crate) floats: Numbers<Float>,
    pub(crate) strings: SlicedStrings,
    /// Hits without a value: it was not captured, or is no number.
    pub(crate) missing: Counts,
}

/// Numbers of each slice; empty until the first one is added.
#[derive(Clone, Debug)]
pub(crate) struct Numbers<N>(pub(crate) Vec<Distribution<N>>);

impl<N> Default for Numbers<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: Number> Numbers<N> {
    #[inline]
    fn add(&mut self, number: N, slice: usize) {
        if self.0.is_empty() {
            self.0.resize_with(SLICES, Distribution::default);
        }
        self.0[slice].add(number);
    }

    fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (numbers, others) in self.0.iter_mut().zip(other.0) {
            numbers.merge(others);
        }
    }
}

impl RecordingCounts {
    pub(crate) fn new(rows: &Rows) -> Self {
        let rows = rows.rows.iter().map(|row| ProbeCounts {
            counts: [0; SLICES],
            arguments: vec![ArgumentCounts::default(); row.arguments.len()],
        });
        Self {
            rows: rows.collect(),
        }
    }

    /// Counts a sample in its slice.
    #[inline]
    pub(crate) fn add(
        &mut self,
        rows: &Rows,
        slice: usize,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
    ) {
        let Some(&Some(row)) = rows.of_event.get(target.event as usize) else {
            return;
        };
        let row = &mut self.rows[row];
        row.counts[slice] += 1;
        let values = match resolver.session().site_of(target, sample) {
            Some(site) => resolver.values(site, sample),
            None => &[],
        };
        for (at, argument) in row.arguments.iter_mut().enumerate() {
            match values.get(at) {
                Some(value) => argument.add(value, slice),
                None => argument.missing[slice] += 1,
            }
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        for (row, theirs) in self.rows.iter_mut().zip(other.rows) {
            add(&mut row.counts, &theirs.counts);
            for (argument, theirs) in row.arguments.iter_mut().zip(theirs.arguments) {
                argument.merge(theirs);
            }
        }
        self
    }
}

impl ArgumentCounts {
    #[inline]
    fn add(&mut self, value: &Value, slice: usize) {
        let float = match value {
            Value::Unsigned(number) => {
                return self.integers.add(Integer(i128::from(*number)), slice);
            }
            Value::Signed(number) => {
                return self.integers.add(Integer(i128::from(*number)), slice);
            }
            Value::String(string) => return self.strings.add(&string.bytes, slice),
            Value::Float32(number) => Float::single(*number),
            Value::Float64(number) => Float::double(*number),
            _ => None,
        };
        match float {
            Some(number) => self.floats.add(number, slice),
            None => self.missing[slice] += 1,
        }
    }

    fn merge(&mut self, other: Self) {
        self.integers.merge(other.integers);
        self.floats.merge(other.floats);
        self.strings.merge(other.strings);
        add(&mut self.missing, &other.missing);
    }
}
