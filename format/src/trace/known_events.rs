//! The events of a trace so far, as far as those depend on them that are added.

use std::collections::HashSet;

use super::TraceInfo;
use super::head::check_attr;
use super::limits::HeadSize;
use super::write_error::{EventFault, WriteError};
use crate::definitions::{FileDefinition, ProbeDefinition};
use crate::perf::{EventAttr, SampleType, TracepointFormat};

/// Events, and what describes them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventsPart<'a> {
    pub(crate) events: &'a [EventAttr],
    pub(crate) formats: &'a [TracepointFormat],
    pub(crate) files: &'a [FileDefinition],
    pub(crate) probes: &'a [ProbeDefinition],
}

/// Numbers of what a head has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadCounts {
    pub(crate) events: usize,
    formats: usize,
    files: usize,
    probes: usize,
}

impl HeadCounts {
    pub(crate) fn of(info: &TraceInfo) -> Self {
        Self::default().with(&Self::default().rest(info))
    }

    fn with(self, part: &EventsPart<'_>) -> Self {
        Self {
            events: self.events + part.events.len(),
            formats: self.formats + part.formats.len(),
            files: self.files + part.files.len(),
            probes: self.probes + part.probes.len(),
        }
    }

    /// The head without what it has after so much.
    pub(crate) fn beginning(&self, info: &TraceInfo) -> TraceInfo {
        let mut beginning = info.clone();
        beginning.events.truncate(self.events);
        beginning.tracepoints.truncate(self.formats);
        if let Some(definitions) = &mut beginning.definitions {
            definitions.files.truncate(self.files);
            definitions.probes.truncate(self.probes);
        }
        beginning
    }

    /// What a head has after so much.
    pub(crate) fn rest<'a>(&self, info: &'a TraceInfo) -> EventsPart<'a> {
        let definitions = info.definitions.as_ref();
        EventsPart {
            events: info.events.get(self.events..).unwrap_or_default(),
            formats: info.tracepoints.get(self.formats..).unwrap_or_default(),
            files: definitions
                .and_then(|all| all.files.get(self.files..))
                .unwrap_or_default(),
            probes: definitions
                .and_then(|all| all.probes.get(self.probes..))
                .unwrap_or_default(),
        }
    }
}

/// The events so far.
#[derive(Debug)]
pub(crate) struct KnownEvents {
    pub(crate) counts: HeadCounts,
    pub(crate) size: HeadSize,
    /// Their sample ids, once events are added.
    ids: Option<HashSet<u64>>,
}

impl KnownEvents {
    /// The events of a head.
    pub(crate) fn new(info: &TraceInfo) -> Self {
        Self {
            counts: HeadCounts::of(info),
            size: HeadSize::of(info),
            ids: None,
        }
    }

    /// Checks events that are added to `former` ones.
    ///
    /// # Errors
    /// [`WriteError::Event`], [`WriteError::Limit`].
    pub(crate) fn check(
        &mut self,
        former: &[EventAttr],
        part: &EventsPart<'_>,
    ) -> Result<CheckedEvents, WriteError> {
        let first = former.first().or(part.events.first());
        let first = first.ok_or(WriteError::NoEvent)?;
        let ids = self.ids.get_or_insert_with(|| all_ids(former).collect());
        let refuse = |event: &EventAttr, fault| {
            Err(WriteError::Event {
                event: event.name.clone(),
                fault,
            })
        };
        let mut new = HashSet::new();
        for event in part.events {
            check_attr(first, event)?;
            let mut taken = event.ids.iter();
            if let Some(&id) = taken.find(|id| ids.contains(id) || !new.insert(**id)) {
                return refuse(event, EventFault::TakenId { id });
            }
        }
        let has_place = |event: &&EventAttr| event.attr.sample_type.has(SampleType::REGS_INTR);
        if let Some(event) = former.iter().chain(part.events).find(has_place) {
            return refuse(event, EventFault::InterruptRegisters);
        }
        let mut size = self.size;
        size.add_events(part.events);
        size.add_ids(part.events);
        size.add_formats(part.formats);
        size.add_files(part.files);
        size.add_probes(part.probes);
        size.check()?;
        Ok(CheckedEvents {
            counts: self.counts.with(part),
            size,
            ids: new,
        })
    }

    /// Takes events that were checked.
    pub(crate) fn take(&mut self, checked: CheckedEvents) {
        self.counts = checked.counts;
        self.size = checked.size;
        self.ids.get_or_insert_default().extend(checked.ids);
    }
}

/// Events that can be added.
#[derive(Debug)]
pub(crate) struct CheckedEvents {
    /// With them.
    counts: HeadCounts,
    size: HeadSize,
    /// Their sample ids.
    ids: HashSet<u64>,
}

impl CheckedEvents {
    /// Whether one of them has a sample id.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}

fn all_ids(events: &[EventAttr]) -> impl Iterator<Item = u64> {
    events.iter().flat_map(|event| &event.ids).copied()
}
