//! The spans of one name in detail, from one walk over the trace.

use crate::analysis::answer::filter_of_spans;
use crate::analysis::heatmap::{HeatMap, INTERVALS};
use crate::analysis::histogram::Histogram;
use crate::analysis::measured::{MeasuredSubject, SpanGroup, SpanPart};
use crate::analysis::question::{Scale, SpanQuestion};
use crate::analysis::samples::SelectedSamples;
use crate::analysis::span_report::facts::SpanReport;
use crate::analysis::span_report::passes::{SpanExtras, matched};
use crate::analysis::span_report::request::SpanRequest;
use crate::analysis::span_report::{SpanDurations, report_of};
use crate::analysis::spans::slowest::BeginStacks;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::EventSelection;
use crate::stats::log2::BucketKind;
use crate::stats::timeline::Timeline;
use crate::trace::session::TraceSession;

/// The spans of one name: what `report --span`, `--hist` and `--heatmap` say of them.
#[derive(Debug)]
pub(crate) struct SpanOverview {
    pub(crate) report: SpanReport,
    /// Of the heat maps.
    pub(crate) timeline: Timeline,
    /// For each kind of span of the report.
    pub(crate) shapes: Vec<SpanShape>,
}

/// How the durations of a kind of span are distributed.
#[derive(Debug)]
pub(crate) struct SpanShape {
    pub(crate) histogram: Histogram,
    pub(crate) heat: HeatMap,
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
        let request = SpanRequest {
            samples,
            question,
            groups: most,
        };
        let timeline = Timeline::divided(session, &filter, INTERVALS);
        let extras = SpanExtras {
            slowest: most,
            heat: Some(timeline),
        };
        matched(request, extras, notices, |walk, spans| {
            let both = walk.pairs.iter().zip(&spans.pair_stats);
            let shapes = both.map(|(pair, stats)| {
                let named = || SpanGroup {
                    span: pair.name.clone(),
                    by: Vec::new(),
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
