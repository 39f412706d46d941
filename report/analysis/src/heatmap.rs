//! `report --heatmap`: the distribution of numbers over time.

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::fold::Folded;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::question_error::QuestionError;

use crate::measured_subject::MeasuredSubject;
use crate::origin::Origin;
use crate::question::Subject;
use crate::samples::SelectedSamples;
use crate::span_report::request::SpanRequest;
use crate::span_report::{self, SpanDurations};
use crate::spans::ambiguity::Ambiguity;
use crate::stats::heat::{Cells, HeatCell, merge};
use crate::stats::log2::{self, BucketKind, Log2};
use crate::stats::number::{Float, Integer, Scalar};
use crate::stats::timeline::Timeline;
use crate::values::ArgumentValues;

/// Intervals of a map.
pub const INTERVALS: usize = 60;
/// Buckets between the first and the last one up to which empty ones are there, too: of floats there may be very many.
const MAX_WITH_GAPS: i32 = 64;

/// Heat maps of a trace.
#[derive(Debug)]
pub struct HeatMaps {
    /// Facts about the trace.
    pub origin: Origin,
    /// Names that begin and end of a span both have.
    pub ambiguities: Vec<Ambiguity>,
    /// The intervals.
    pub timeline: Timeline,
    /// The heat maps.
    pub all: Vec<HeatMap>,
}

/// A heat map.
#[derive(Debug)]
pub struct HeatMap {
    /// What its numbers are of.
    pub of: MeasuredSubject,
    /// The least numbers first.
    pub buckets: Vec<HeatRow>,
    /// Numbers in all cells.
    pub count: u64,
    /// Numbers in the cell that has the most.
    pub most: u64,
}

/// A bucket of numbers, interval by interval.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// The least number of the bucket.
    pub from: Scalar,
    /// `None`: the bucket is infinity.
    pub to: Option<Scalar>,
    /// Numbers in each interval.
    pub counts: Vec<u64>,
}

/// Counts.
pub(crate) fn heat_maps(
    samples: SelectedSamples<'_>,
    of: &Subject,
    notices: &mut Notices,
) -> Result<HeatMaps, ReportError> {
    let timeline = Timeline::divided(samples.session, samples.filter, INTERVALS);
    match of {
        Subject::Argument(name) => Ok(HeatMaps {
            origin: Origin::new(samples.session),
            ambiguities: Vec::new(),
            timeline,
            all: of_argument(samples, name, timeline, notices)?,
        }),
        Subject::Span(question) => {
            let request = SpanRequest { samples, question };
            let found = span_report::named(request, Some(timeline), notices)?;
            let one = |SpanDurations { spans, durations }: SpanDurations| {
                HeatMap::new(
                    MeasuredSubject::Spans(spans),
                    BucketKind::Time,
                    &durations.heat,
                    timeline,
                )
            };
            Ok(HeatMaps {
                origin: Origin::new(samples.session),
                ambiguities: found.ambiguities,
                timeline,
                all: found.named.into_iter().map(one).collect(),
            })
        }
    }
}

fn of_argument(
    samples: SelectedSamples<'_>,
    name: &str,
    timeline: Timeline,
    notices: &mut Notices,
) -> Result<Vec<HeatMap>, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let of_key = |name| QuestionError::HeatMapOfKey { name };
    let values = ArgumentValues::new(session, filter, name, of_key)?;
    // Integers and floats of one row are maps of their own.
    let none = HashMap::<MapOfRow, Cells>::default;
    let Folded { states, outcome } =
        values.fold(session, filter, none, |maps, row, value, sample| {
            if let Some(Bucketed { bucket, is_float }) = bucketed(value) {
                let interval = timeline.place(sample.time) as u32;
                let cells = maps.entry(MapOfRow { row, is_float }).or_default();
                *cells.entry(HeatCell { interval, bucket }).or_default() += 1;
            }
        });
    notices.add(outcome);
    let mut all = none();
    for (map, cells) in states.into_iter().flatten() {
        merge(all.entry(map).or_default(), cells);
    }
    let mut maps: Vec<_> = all.into_iter().collect();
    maps.sort_by_key(|(map, _)| *map);
    let one = |(map, cells): (MapOfRow, Cells)| {
        let kind = if map.is_float {
            BucketKind::Float
        } else {
            BucketKind::Integer
        };
        HeatMap::new(values.measured(map.row), kind, &cells, timeline)
    };
    Ok(maps.into_iter().map(one).collect())
}

/// The numbers of a row that have a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct MapOfRow {
    row: usize,
    /// Whether it is of floats; else of integers.
    is_float: bool,
}

/// The bucket of a number.
struct Bucketed {
    bucket: i32,
    is_float: bool,
}

/// The bucket of a value; `None` for what is no number.
fn bucketed(value: &Value) -> Option<Bucketed> {
    let integer = |number: i128| Bucketed {
        bucket: Integer(number).index(BucketKind::Integer),
        is_float: false,
    };
    let float = |number: Option<Float>| {
        Some(Bucketed {
            bucket: number?.index(BucketKind::Float),
            is_float: true,
        })
    };
    match value {
        Value::Unsigned(number) => Some(integer((*number).into())),
        Value::Signed(number) => Some(integer((*number).into())),
        Value::Float32(number) => float(Float::single(*number)),
        Value::Float64(number) => float(Float::double(*number)),
        _ => None,
    }
}

impl HeatMap {
    /// The map of cells.
    pub(crate) fn new(
        of: MeasuredSubject,
        kind: BucketKind,
        cells: &Cells,
        timeline: Timeline,
    ) -> Self {
        let count = |column: usize, index: i32| {
            let cell = HeatCell {
                interval: column as u32,
                bucket: index,
            };
            cells.get(&cell).copied().unwrap_or(0)
        };
        let bucket = |index: i32| HeatRow {
            from: log2::from(index, kind),
            to: log2::to(index, kind),
            counts: (0..timeline.intervals)
                .map(|column| count(column, index))
                .collect(),
        };
        Self {
            of,
            buckets: indices(cells).into_iter().map(bucket).collect(),
            count: cells.values().sum(),
            most: cells.values().copied().max().unwrap_or(0),
        }
    }
}

/// The buckets of a map, those between that are empty, too.
fn indices(cells: &Cells) -> Vec<i32> {
    let mut indices: Vec<i32> = cells.keys().map(|cell| cell.bucket).collect();
    indices.sort_unstable();
    indices.dedup();
    match (indices.first(), indices.last()) {
        (Some(&first), Some(&last)) if last - first <= MAX_WITH_GAPS => (first..=last).collect(),
        _ => indices,
    }
}
