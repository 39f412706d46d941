//! Events that are added to a recording.

use usdtrec_format::perf::{EventAttr, TracepointFormat};
use usdtrec_format::trace::TraceInfo;
use usdtrec_format::{FileDefinition, ProbeDefinition};

use crate::output::event_names;

/// Events that are added while recording, with what describes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddedEvents {
    /// The events; their sample ids are those of no other event.
    pub(crate) events: Vec<EventAttr>,
    /// The formats of the tracepoints among them; their ids are those of no other format.
    pub(crate) tracepoints: Vec<TracepointFormat>,
    /// The files with the probes. They may be files of the recording so far, too.
    pub(crate) files: Vec<FileDefinition>,
    /// The definitions of the events, in their order. [`ProbeDefinition::file`] is an index in [`files`](Self::files).
    pub(crate) probes: Vec<ProbeDefinition>,
}

impl AddedEvents {
    /// Appends them to a head. Names get numbers if they are taken.
    pub(crate) fn add_to(mut self, info: &mut TraceInfo) -> Before {
        let before = Before::of(info);
        event_names::make_unique(&info.events, &mut self.events, &mut self.tracepoints);
        info.events.append(&mut self.events);
        info.tracepoints.append(&mut self.tracepoints);
        let Some(definitions) = &mut info.definitions else {
            return before;
        };
        let files = &mut definitions.files;
        let index = |file| {
            let known = files.iter().position(|known| *known == file);
            known.unwrap_or_else(|| {
                files.push(file);
                files.len() - 1
            })
        };
        let files: Vec<usize> = self.files.into_iter().map(index).collect();
        definitions
            .probes
            .extend(self.probes.into_iter().filter_map(|mut probe| {
                probe.file = *files.get(probe.file)?;
                Some(probe)
            }));
        before
    }
}

/// How much a head had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    events: usize,
    tracepoints: usize,
    files: usize,
    probes: usize,
}

impl Before {
    fn of(info: &TraceInfo) -> Self {
        let definitions = info.definitions.as_ref();
        Self {
            events: info.events.len(),
            tracepoints: info.tracepoints.len(),
            files: definitions.map_or(0, |all| all.files.len()),
            probes: definitions.map_or(0, |all| all.probes.len()),
        }
    }

    /// Removes what was added.
    pub(crate) fn restore(self, info: &mut TraceInfo) {
        info.events.truncate(self.events);
        info.tracepoints.truncate(self.tracepoints);
        if let Some(definitions) = &mut info.definitions {
            definitions.files.truncate(self.files);
            definitions.probes.truncate(self.probes);
        }
    }
}
