//! The spans of one name in detail, from one walk over the trace.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::answer::filter_of_spans;
use crate::heatmap::{HeatMap, INTERVALS};
use crate::histogram::Histogram;
use crate::measured_subject::{MeasuredSubject, SpanGroup, SpanPart};
use crate::question::{Scale, SpanQuestion};
use crate::samples::SelectedSamples;
use crate::span_report::facts::SpanReport;
use crate::span_report::passes::{SpanExtras, matched};
use crate::span_report::request::SpanRequest;
use crate::span_report::{SpanDurations, report_of};
use crate::spans::slowest::BeginStacks;
use crate::stats::log2::BucketKind;
use crate::stats::timeline::Timeline;

/// The spans of one name: what `report --span`, `--hist` and `--heatmap` say of them.
#[derive(Debug)]
pub struct SpanOverview {
    /// The figures.
    pub report: SpanReport,
    /// Of the heat maps.
    pub timeline: Timeline,
    /// For each kind of span of the report.
    pub shapes: Vec<SpanShape>,
}

/// How the durations of a kind of span are distributed.
#[derive(Debug)]
pub struct SpanShape {
    /// The distribution of the durations.
    pub histogram: Histogram,
    /// The same over time.
    pub heat: HeatMap,
}

impl SpanOverview {
    /// Matches the spans of a question, which says how many of the slowest and of the groups are wanted.
    pub(crate) fn new(
        session: &TraceSession,
        selection: &EventSelection,
        question: &SpanQuestion,
        notices: &mut Notices,
    ) -> Result<Self, ReportError> {
        let filter = filter_of_spans(session, selection, question)?;
        let samples = SelectedSamples {
            session,
            filter: &filter,
        };
        let most = question.top.unwrap_or(usize::MAX);
        let request = SpanRequest { samples, question };
        let timeline = Timeline::divided(session, &filter, INTERVALS);
        let extras = SpanExtras {
            slowest: most,
            heat: Some(timeline),
            waits: true,
        };
        matched(request, extras, notices, |walk, spans| {
            let both = walk.pairs.iter().zip(&spans.pair_stats);
            let shapes = both.map(|(pair, stats)| {
                let named = || SpanGroup {
                    span: pair.name.clone(),
                    by: Vec::new(),
                    measured: None,
                    part: SpanPart::All,
                };
                let heat = &stats.all.heat;
                let of = MeasuredSubject::Spans(named());
                let all = SpanDurations {
                    spans: named(),
                    durations: stats.all.clone(),
                };
                SpanShape {
                    histogram: Histogram::of_spans(all, Scale::Auto),
                    heat: HeatMap::new(of, BucketKind::Time, heat, timeline),
                }
            });
            Self {
                shapes: shapes.collect(),
                report: report_of(request, walk, &spans, BeginStacks::With),
                timeline,
            }
        })
    }
}
