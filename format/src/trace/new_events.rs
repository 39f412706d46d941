//! Events that are added to a trace while it is written.

use super::TraceInfo;
use super::known_events::{EventsPart, HeadCounts};
use crate::definitions::{FileDefinition, ProbeDefinition};
use crate::perf::{EventAttr, TracepointFormat};

/// Events that are added to a head, with what describes them.
#[derive(Clone, Debug, Default)]
pub struct NewEvents {
    /// The events; their sample ids are those of no other event.
    pub events: Vec<EventAttr>,
    /// The formats of the tracepoints among them; their ids are those of no other format.
    pub tracepoints: Vec<TracepointFormat>,
    /// Files with the probes, which follow those of the head.
    pub files: Vec<FileDefinition>,
    /// The definitions of the events, in their order. [`ProbeDefinition::file`] is an index in all files.
    pub probes: Vec<ProbeDefinition>,
}

impl NewEvents {
    /// What `info` has after as many events, formats, files and definitions as `former` has.
    #[must_use]
    pub fn after(former: &TraceInfo, info: &TraceInfo) -> Self {
        let part = HeadCounts::of(former).rest(info);
        Self {
            events: part.events.to_vec(),
            tracepoints: part.formats.to_vec(),
            files: part.files.to_vec(),
            probes: part.probes.to_vec(),
        }
    }

    /// Appends them to a head.
    pub fn add_to(self, info: &mut TraceInfo) {
        info.events.extend(self.events);
        info.tracepoints.extend(self.tracepoints);
        if let Some(definitions) = &mut info.definitions {
            definitions.files.extend(self.files);
            definitions.probes.extend(self.probes);
        }
    }

    pub(super) fn part(&self) -> EventsPart<'_> {
        EventsPart {
            events: &self.events,
            formats: &self.tracepoints,
            files: &self.files,
            probes: &self.probes,
        }
    }
}
