//! Answers for programs: numbers are numbers, reasons are variants, and strings of traced programs are as they are.
//!
//! [`Answer`] is what is found about a question. [`Answer::data`] has it as plain data, whose serialization is what `report --format json`
//! prints; [`report::write`](crate::report::write) shows it as text, JSON or CSV.

pub(crate) mod distributions;
pub(crate) mod figure;
pub(crate) mod groups;
pub(crate) mod key_values;
pub(crate) mod reasons;
pub(crate) mod recorded_time;
pub(crate) mod recording;
pub(crate) mod series;
pub(crate) mod spans;
pub(crate) mod stacks;
pub(crate) mod summary;

use serde::{Serialize, Serializer};
use usdtrec_analysis::answer::{Facts, Found, find};
use usdtrec_analysis::question::Question;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

pub use crate::answer::distributions::{
    HeatMapAnswer, HeatMapBucket, HistogramAnswer, HistogramBucket, HistogramEdge,
};
pub use crate::answer::figure::Figure;
pub use crate::answer::groups::{GroupRow, OtherGroupsRow, ValueStatistics};
pub use crate::answer::key_values::KeyValues;
pub use crate::answer::reasons::{DamageRow, NoEventsRow, ShortfallRow, UnusualRow, UnusualTime};
pub use crate::answer::recorded_time::RecordedTime;
pub use crate::answer::recording::{
    ClockAnswer, ClockStepRow, GapRow, RecordingAnswer, TriggerAnswer,
};
pub use crate::answer::series::{OtherSeriesRow, RateSeries};
pub use crate::answer::spans::{
    DurationStatistics, OtherSpansRow, PausedSpans, SlowestSpan, SpanBy, SpanEvent, SpanGroupRow,
    SpanPairRow, SpanStatistics, SpansAnswer,
};
pub use crate::answer::stacks::{StackPath, StacksAnswer};
pub use crate::answer::summary::{
    ArgumentRow, CommRow, MissingRow, NumberRow, PausedProbeRow, ProbeRow, ProcessRow, StringRow,
    StringsAnswer, SummaryAnswer,
};

/// Answers questions.
pub trait AnswerQuestions {
    /// Answers a question about the selected events. The trace is read at once.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace has no event or argument that is requested.
    fn answer(
        &self,
        selection: &EventSelection,
        question: &Question,
    ) -> Result<Answer, ReportError>;
}

impl AnswerQuestions for TraceSession {
    fn answer(
        &self,
        selection: &EventSelection,
        question: &Question,
    ) -> Result<Answer, ReportError> {
        let Found { facts, notices } = find(self, selection, question)?;
        Ok(Answer { facts, notices })
    }
}

/// What is found about a question.
#[derive(Debug)]
pub struct Answer {
    pub(crate) facts: Facts,
    notices: Notices,
}

impl Answer {
    /// What is wrong with the trace.
    #[must_use]
    pub const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The same without the answer.
    #[must_use]
    pub fn into_notices(self) -> Notices {
        self.notices
    }

    /// The answer as plain data.
    #[must_use]
    pub fn data(&self) -> AnswerData {
        match &self.facts {
            Facts::Summary(facts) => AnswerData::Summary(Box::new(SummaryAnswer::new(facts))),
            Facts::Groups(grouped) => AnswerData::Groups(GroupRow::all(grouped)),
            Facts::Spans(report) => AnswerData::Spans(SpansAnswer::new(report)),
            Facts::Histogram(found) => AnswerData::Histograms(HistogramAnswer::all(found)),
            Facts::HeatMap(maps) => AnswerData::HeatMaps(HeatMapAnswer::all(maps)),
            Facts::Rate(rates) => AnswerData::Rates(RateSeries::all(rates)),
            Facts::Stacks(stacks) => AnswerData::Stacks(StacksAnswer::all(stacks)),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.data().serialize(serializer)
    }
}

/// The answer to a question as plain data. Members of JSON have the names of fields; `report/FIELDS.md` describes them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnswerData {
    /// Of [`Question::Summary`].
    Summary(Box<SummaryAnswer>),
    /// Of [`Question::Groups`]: of each event, its groups in the requested order, and then those that are not shown.
    Groups(Vec<GroupRow>),
    /// Of [`Question::Spans`].
    Spans(SpansAnswer),
    /// Of [`Question::Histogram`]: of each probe with the argument, of each span or group of spans.
    Histograms(Vec<HistogramAnswer>),
    /// Of [`Question::Heatmap`]: of each probe with the argument, of each span or group of spans.
    HeatMaps(Vec<HeatMapAnswer>),
    /// Of [`Question::Rate`]: the series with the most events first, and then those that are not counted one by one.
    Rates(Vec<RateSeries>),
    /// Of [`Question::Stacks`]: of each event, or span.
    Stacks(Vec<StacksAnswer>),
}
