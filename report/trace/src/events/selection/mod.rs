//! Which samples are requested.

pub(crate) mod expression;
pub mod span_filter;

use std::ops::RangeInclusive;
use std::str::FromStr;

use usdtrec_format::perf::Sample;
use usdtrec_format::trace::TimeRange;
use usdtrec_format::{Pattern, parse_cpu_list};

use crate::error::ReportError;
use crate::events::selection::expression::{Expression, SpanExpressions};
use crate::events::selection::span_filter::SpanEvents;
use crate::list::list;
use crate::question_error::QuestionError;
use crate::session::TraceSession;
use crate::session::events::Event;
use crate::session::ids::SampleTarget;
use crate::session::resolver::Resolver;
use crate::session::scan::SampleBlock;
use crate::time_span::{TimeSpan, TraceTimes};

/// What samples must fit; what is empty or `None` fits all.
#[derive(Clone, Debug, Default)]
pub struct EventSelection {
    /// Events.
    pub events: Vec<Pattern>,
    /// Span of time.
    pub time: Option<TimeSpan>,
    /// Names of threads, as [`escape`](usdtrec_format::escape::escape) prints them.
    pub comms: Vec<String>,
    /// Processes.
    pub pids: Vec<i32>,
    /// Threads.
    pub tids: Vec<i32>,
    /// CPUs.
    pub cpus: Option<CpuSet>,
    /// An expression over the arguments ([`usdtrec_format::expr`]) that must be true.
    pub filter: Option<String>,
}

/// A selection, worked out for a trace.
#[derive(Clone, Debug, Default)]
pub struct SampleFilter {
    /// For each event, whether it is selected.
    events: Vec<bool>,
    time: TimeRange,
    /// For each thread name, whether it is selected.
    names: Option<Vec<bool>>,
    pids: Vec<i32>,
    tids: Vec<i32>,
    cpus: Option<CpuSet>,
    expression: Option<Expression>,
    /// What must be true of the hit that ends a span.
    of_end: Option<Expression>,
    /// Arguments of the expression that the hits that begin and end spans both have, where nothing says which of the two is meant.
    of_both: Vec<String>,
    /// Whether event and time are all that counts.
    simple: bool,
}

impl SampleFilter {
    /// The filter of the selected samples of a trace.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what is selected.
    pub fn new(selection: &EventSelection, session: &TraceSession) -> Result<Self, ReportError> {
        Self::with(selection, session, None)
    }

    /// The same where spans are requested: an expression may be about what ends them, too.
    pub fn of_spans(
        selection: &EventSelection,
        session: &TraceSession,
        ends: SpanEvents<'_>,
    ) -> Result<Self, ReportError> {
        Self::with(selection, session, Some(ends))
    }

    fn with(
        selection: &EventSelection,
        session: &TraceSession,
        ends: Option<SpanEvents<'_>>,
    ) -> Result<Self, ReportError> {
        let names = (!selection.comms.is_empty()).then(|| {
            let names = session.processes().names();
            names
                .map(|(_, name)| selection.comms.iter().any(|comm| **comm == *name.text))
                .collect()
        });
        let events = events(&selection.events, session)?;
        let mut parts = SpanExpressions::default();
        if let Some(text) = &selection.filter {
            match ends {
                Some(ends) => parts = Expression::of_spans(text, session, ends)?,
                None => {
                    let asked = |event| events.get(event) == Some(&true);
                    parts.begin = Some(Expression::new(text, session, asked)?);
                }
            }
        }
        let expression = parts.begin;
        Ok(Self {
            events,
            time: match &selection.time {
                Some(span) => asked_time(span, session)?,
                None => TimeRange::ALL,
            },
            simple: names.is_none()
                && selection.pids.is_empty()
                && selection.tids.is_empty()
                && selection.cpus.is_none()
                && expression.is_none(),
            expression,
            of_end: parts.end,
            of_both: parts.of_both,
            names,
            pids: selection.pids.clone(),
            tids: selection.tids.clone(),
            cpus: selection.cpus.clone(),
        })
    }

    /// The times that are selected.
    pub const fn time(&self) -> TimeRange {
        self.time
    }

    /// Arguments that the hits that begin and end spans both have, where nothing says which of the two is meant: the one that begins it.
    pub fn of_both(&self) -> &[String] {
        &self.of_both
    }

    /// Whether an event is requested.
    pub fn event(&self, event: usize) -> bool {
        self.events.get(event) == Some(&true)
    }

    /// The same for event and time alone, and for those events that `event` says instead of those requested.
    pub fn relaxed(&self, event: impl Fn(usize) -> bool) -> Self {
        Self {
            events: (0..self.events.len()).map(event).collect(),
            time: self.time,
            simple: true,
            ..Self::default()
        }
    }

    /// The same for all times.
    pub const fn of_all_times(mut self) -> Self {
        self.time = TimeRange::ALL;
        self
    }

    /// The same up to the end of the time that is selected.
    pub const fn starting_at_zero(mut self) -> Self {
        self.time.first = 0;
        self
    }

    /// Whether a block may hold samples that are selected.
    pub(crate) const fn block(&self, block: &SampleBlock) -> bool {
        block.time.overlaps(self.time)
    }

    /// Whether a sample is requested, as far as event and time say.
    #[inline]
    pub fn early(&self, target: SampleTarget, time: u64) -> bool {
        self.events.get(target.event as usize) == Some(&true) && self.time.contains(time)
    }

    /// Whether [`early`](Self::early) says all.
    pub const fn is_simple(&self) -> bool {
        self.simple
    }

    /// Whether the hits that end spans are requested by what they are, too.
    pub const fn selects_ends(&self) -> bool {
        self.of_end.is_some()
    }

    /// Whether a span that a hit ends is requested, as far as that hit says.
    #[inline]
    pub fn ends(
        &self,
        target: SampleTarget,
        sample: &Sample<'_>,
        resolver: &mut Resolver<'_>,
    ) -> bool {
        let of_end = self.of_end.as_ref();
        of_end.is_none_or(|of_end| of_end.is_true(target, sample, resolver))
    }

    /// Whether a sample is requested, as far as its process, thread, CPU and name say.
    pub fn of_hit(&self, sample: &Sample<'_>, resolver: &mut Resolver<'_>) -> bool {
        (self.pids.is_empty() || self.pids.contains(&sample.pid))
            && (self.tids.is_empty() || self.tids.contains(&sample.tid))
            && self
                .cpus
                .as_ref()
                .is_none_or(|cpus| cpus.contains(sample.cpu))
            && self.names.as_ref().is_none_or(|names| {
                let name = resolver.name(sample.tid, sample.time);
                name.is_some_and(|name| names.get(name.0 as usize) == Some(&true))
            })
    }

    /// Whether a sample is requested, where [`early`](Self::early) does not say all.
    pub fn late(
        &self,
        target: SampleTarget,
        sample: &Sample<'_>,
        resolver: &mut Resolver<'_>,
    ) -> bool {
        self.of_hit(sample, resolver)
            && self
                .expression
                .as_ref()
                .is_none_or(|expression| expression.is_true(target, sample, resolver))
    }
}

/// The times of a span in a trace.
fn asked_time(span: &TimeSpan, session: &TraceSession) -> Result<TimeRange, ReportError> {
    let wall = session.wall_times();
    // A stream continues.
    let of_stream = || {
        wall.map_or_else(TimeRange::default, |wall| {
            TimeRange::new(wall.first_reading(), u64::MAX)
        })
    };
    let whole = session.time().unwrap_or_else(of_stream);
    let asked = span.within(TraceTimes::new(whole, session.trace()), wall);
    Ok(asked.ok_or(QuestionError::NoDays)?)
}

/// For each event, whether one of the patterns selects it.
fn events(patterns: &[Pattern], session: &TraceSession) -> Result<Vec<bool>, ReportError> {
    let events = &session.events().events;
    if let Some(pattern) = patterns
        .iter()
        .find(|pattern| !events.iter().any(|event| fits(pattern, event, session)))
    {
        let firing = events.iter().filter(|event| !event.is_dummy());
        return Err(QuestionError::NoEvent {
            event: pattern.to_string(),
            known: list(firing.map(|event| &*event.name)),
        }
        .into());
    }
    let asked = |event| patterns.iter().any(|pattern| fits(pattern, event, session));
    Ok(events
        .iter()
        .map(|event| patterns.is_empty() || asked(event))
        .collect())
}

/// Whether a pattern selects an event: by its name, and by the end of its file's path or its build-id where the pattern has one.
fn fits(pattern: &Pattern, event: &Event, session: &TraceSession) -> bool {
    let named = pattern.matches_event(&event.name) || pattern.text() == event.name;
    let file = || {
        let definitions = session.info().definitions.as_ref()?;
        let probe = definitions.probes.get(event.probe?)?;
        definitions.files.get(probe.file)
    };
    named
        && pattern
            .path()
            .is_none_or(|path| file().is_some_and(|file| file.path.ends_with(path)))
        && (pattern.build().is_none() || pattern.fits_build(file().and_then(|file| file.build_id)))
}

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<RangeInclusive<u32>>);

impl CpuSet {
    /// Whether a CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|range| range.contains(&cpu))
    }
}

/// A text is not a list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected CPU numbers and ranges such as 0-3,6")]
pub struct CpuSetError(
    /// The text.
    pub String,
);

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let ranges = parse_cpu_list(text);
        ranges.map(Self).map_err(|_| CpuSetError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let set: CpuSet = "0-2,6".parse().unwrap();
        let members: Vec<u32> = (0..9).filter(|&cpu| set.contains(cpu)).collect();
        assert_eq!(members, [0, 1, 2, 6]);
        assert!("0-4294967295".parse::<CpuSet>().unwrap().contains(7));
        let error = CpuSetError("3-1".to_owned());
        assert_eq!("3-1".parse::<CpuSet>(), Err(error));
    }
}
