//! What the summary of a trace says.

use usdtrec_format::trace::Damage;

use crate::analysis::losses::Losses;
use crate::analysis::origin::Origin;
use crate::analysis::samples::Samples;
use crate::analysis::silence::{Silence, reasons};
use crate::analysis::span_report::facts::SpanFacts;
use crate::analysis::summary::busiest::{Busiest, busiest};
use crate::analysis::summary::counts::{Summary, Sums};
use crate::analysis::summary::probe::Probe;
use crate::analysis::summary::unusual::Unusual;
use crate::events::selection::Filter;
use crate::trace::rows::Rows;
use crate::trace::session::Session;

/// What was counted in one walk over a trace.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) summary: Summary,
    pub(crate) spans: Vec<SpanFacts>,
}

/// The summary of a trace.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) origin: Origin,
    /// Samples that were asked for.
    pub(crate) events: u64,
    /// Earliest and latest time of them, ns.
    pub(crate) time: Option<(u64, u64)>,
    /// The time of which events were asked for and in which there was a recording, ns; `None` if the trace does not say.
    pub(crate) recorded: Option<(u64, u64)>,
    /// Time of the trace's first event, which [`Episode`](crate::stats::bursts::Episode)s count from, ns.
    pub(crate) start: u64,
    pub(crate) probes: Vec<Probe>,
    /// Spans that the names of probes tell of.
    pub(crate) spans: Vec<SpanFacts>,
    /// The processes that hit them, the busiest first.
    pub(crate) busiest: Busiest,
    /// What stands out.
    pub(crate) unusual: Vec<Unusual>,
    pub(crate) losses: Losses,
    /// Why probes have no events.
    pub(crate) reasons: Vec<Silence>,
    pub(crate) damage: Vec<Damage>,
}

impl Facts {
    pub(crate) fn new(
        samples: Samples<'_>,
        rows: &Rows,
        counted: Counted,
        damage: Vec<Damage>,
    ) -> Self {
        let Samples { session, filter } = samples;
        let Counted { mut summary, spans } = counted;
        let losses = Losses::new(session, rows);
        summary.rows.iter_mut().for_each(Sums::settle);
        let (events, time) = (summary.count(), summary.time);
        let busiest = busiest(session, &summary.rows);
        let slices = summary.slices;
        let mut probes: Vec<Probe> = summary
            .rows
            .into_iter()
            .enumerate()
            .map(|(at, sums)| Probe::new(session, rows, at, (sums, losses.rows[at]), slices))
            .collect();
        // The most events first; of equals, the file's order stays.
        probes.sort_by_key(|probe| std::cmp::Reverse(probe.count));
        let silent = |event: &str| {
            let mut probes = probes.iter();
            probes.any(|probe| probe.event == event && probe.count == 0 && probe.lost == 0)
        };
        // What is asked for leaves out events: that a probe has none says nothing of it.
        let (from, to) = filter.time();
        let covers = |(first, last)| from <= first && last <= to;
        let reasons = if filter.is_simple() && session.time().is_none_or(covers) {
            reasons(session, silent)
        } else {
            Vec::new()
        };
        Self {
            unusual: Unusual::of(&probes),
            reasons,
            origin: Origin::new(session),
            events,
            time,
            recorded: recorded(session, filter, time),
            start: session.time().map_or(0, |(first, _)| first),
            probes,
            spans,
            busiest,
            losses,
            damage,
        }
    }

    /// How long was recorded; where the trace does not say, from the first to the last event, ns.
    pub(crate) fn duration(&self) -> u64 {
        let span = self.recorded.or(self.time);
        span.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// What rates are counted over, ns; 0 if so many events have none.
    pub(crate) fn duration_for(&self, events: u64) -> u64 {
        // A single event has no distance to another one.
        match self.recorded {
            None if events < 2 => 0,
            _ => self.duration(),
        }
    }
}

/// The part of the recording's time that is asked for. What a damaged file says may leave events out.
fn recorded(session: &Session, filter: &Filter, time: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let (began, until) = session.trace().recorded()?;
    let (from, to) = filter.time();
    let (first, last) = time.unwrap_or((u64::MAX, 0));
    Some((began.max(from).min(first), until.min(to).max(last)))
}
