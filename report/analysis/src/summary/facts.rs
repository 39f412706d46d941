//! What the summary of a trace says.

use usdtrec_format::trace::Shortfall;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::events::no_events::NoEventsReason;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::joined_files::PlacedDamage;
use usdtrec_trace::session::recorded_part::RecordedPart;

use crate::losses::Losses;
use crate::origin::Origin;
use crate::samples::SelectedSamples;
use crate::span_report::facts::SpanFacts;
use crate::summary::busiest::{BusiestProcesses, busiest};
use crate::summary::counts::{ProbeSums, Summary};
use crate::summary::probe::ProbeFacts;
use crate::summary::unusual::Unusual;

/// The counts of one reading of a trace.
#[derive(Debug)]
pub(crate) struct SummaryCounts {
    pub(crate) summary: Summary,
    pub(crate) spans: Vec<SpanFacts>,
}

/// The summary of a trace.
#[derive(Debug)]
pub struct SummaryFacts {
    /// Facts about the trace.
    pub origin: Origin,
    /// Samples that were requested.
    pub events: u64,
    /// From the earliest to the latest time of them.
    pub time: Option<TimeRange>,
    /// The part of the recording's time that was selected; `None` if the trace does not say when recording began and ended.
    pub recorded: Option<TimeRange>,
    /// Time of the trace's first event, which [`Episode`](crate::stats::bursts::Episode)s count from, ns.
    pub start: u64,
    /// The probes.
    pub probes: Vec<ProbeFacts>,
    /// Spans that are found by the names of probes.
    pub spans: Vec<SpanFacts>,
    /// The processes that hit them, the busiest first.
    pub busiest: BusiestProcesses,
    /// Unusual values, bursts and pauses.
    pub unusual: Vec<Unusual>,
    /// Events that were lost.
    pub losses: Losses,
    /// Why probes have no events.
    pub reasons: Vec<NoEventsReason>,
    /// What the recorder found not to work.
    pub shortfalls: Vec<Shortfall>,
    /// Damage of the file.
    pub damage: Vec<PlacedDamage>,
    /// How much of the recording's time is between files, so that nothing was recorded, ns.
    pub unrecorded: u64,
}

impl SummaryFacts {
    pub(crate) fn new(
        samples: SelectedSamples<'_>,
        rows: &Rows,
        counted: SummaryCounts,
        damage: Vec<PlacedDamage>,
    ) -> Self {
        let SelectedSamples { session, filter } = samples;
        let SummaryCounts { mut summary, spans } = counted;
        let losses = Losses::new(session, rows);
        summary.rows.iter_mut().for_each(ProbeSums::settle);
        let (events, time) = (summary.count(), summary.time);
        let busiest = busiest(session, &summary.rows);
        let slices = summary.slices;
        let mut probes: Vec<ProbeFacts> = summary
            .rows
            .into_iter()
            .enumerate()
            .map(|(at, sums)| ProbeFacts::new(session, rows, at, sums, losses.rows[at], slices))
            .collect();
        let recorded = recorded(session, filter, time);
        if let Some(span) = recorded.or(time).filter(|_| !session.pauses().is_empty()) {
            for (probe, row) in probes.iter_mut().zip(&rows.rows) {
                probe.part = RecordedPart::new(session, &row.events, span);
            }
        }
        // The most events first; of equals, the file's order stays.
        probes.sort_by_key(|probe| std::cmp::Reverse(probe.count));
        let silent = |event: &str| {
            let mut probes = probes.iter();
            probes.any(|probe| probe.event == event && probe.count == 0 && probe.lost == 0)
        };
        // What is requested leaves out events: that a probe has no events says nothing about it.
        let covers = |time| filter.time().covers(time);
        let reasons = if filter.is_simple() && session.time().is_none_or(covers) {
            NoEventsReason::find(session, silent)
        } else {
            Vec::new()
        };
        Self {
            unrecorded: recorded
                .or(time)
                .map_or(0, |time| session.files().unrecorded(time)),
            unusual: Unusual::find(&probes, session.info().definitions.as_ref()),
            reasons,
            origin: Origin::new(session),
            events,
            time,
            recorded,
            start: session.time().map_or(0, |time| time.first),
            probes,
            spans,
            busiest,
            losses,
            shortfalls: session.shortfalls().cloned().collect(),
            damage,
        }
    }

    /// How long was recorded; where the trace does not say, from the first to the last event, ns. What is between files does not count.
    pub fn duration(&self) -> u64 {
        let span = self.recorded.or(self.time);
        let length = span.map_or(0, |time| time.last.saturating_sub(time.first));
        length.saturating_sub(self.unrecorded)
    }

    /// The time that the rate of a probe is counted over, ns; 0 for too few events. What it was detached for does not count.
    pub fn duration_of(&self, probe: &ProbeFacts) -> u64 {
        let all = self.duration_for(probe.count);
        match probe.part {
            Some(part) if part.is_same => all.min(part.recorded),
            _ => all,
        }
    }

    /// The time that rates are counted over, ns; 0 for too few events.
    pub fn duration_for(&self, events: u64) -> u64 {
        // A single event has no distance to another one.
        match self.recorded {
            None if events < 2 => 0,
            _ => self.duration(),
        }
    }
}

/// The part of the recording's time that is selected. What a damaged file says may leave events out.
fn recorded(
    session: &TraceSession,
    filter: &SampleFilter,
    events: Option<TimeRange>,
) -> Option<TimeRange> {
    let recorded = session.trace().recorded()?;
    let asked = filter.time();
    let part = TimeRange {
        first: recorded.first.max(asked.first),
        last: recorded.last.min(asked.last),
    };
    Some(events.map_or(part, |events| part.joined(events)))
}
