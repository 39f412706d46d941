//! Events that are added to a recording, and their names, which are unique for stock perf: `perf data convert --to-ctf` refuses two events with one name,
//! and perf's scripts call handlers by name. Our readers take names from the definitions.

use std::collections::{HashMap, HashSet};

use usdtrec_format::perf::{Attr, EventAttr, TracepointFormat};
use usdtrec_format::trace::{NewEvents, TraceInfo};
use usdtrec_format::{FileDefinition, ProbeDefinition};

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
    /// What is new beside a head. Names get numbers if they are taken.
    pub(super) fn beside(mut self, info: &TraceInfo) -> NewEvents {
        make_unique(&info.events, &mut self.events, &mut self.tracepoints);
        let known = info.definitions.as_ref().map_or(&[][..], |all| &all.files);
        let mut new: Vec<FileDefinition> = Vec::new();
        let index = |file| {
            let mut all = known.iter().chain(&new);
            all.position(|known| *known == file).unwrap_or_else(|| {
                new.push(file);
                known.len() + new.len() - 1
            })
        };
        let files: Vec<usize> = self.files.into_iter().map(index).collect();
        let probes = self.probes.into_iter().filter_map(|mut probe| {
            probe.file = *files.get(probe.file)?;
            Some(probe)
        });
        NewEvents {
            events: self.events,
            tracepoints: self.tracepoints,
            probes: probes.collect(),
            files: new,
        }
    }
}

/// Makes the names of events unique among themselves and `former` ones, which keep theirs, as `perf probe` does: the second event `a:b` becomes `a:b_1`. A probe has several events if its sites have their
/// arguments in different forms, or if several files have it.
pub(crate) fn make_unique(
    former: &[EventAttr],
    events: &mut [EventAttr],
    formats: &mut [TracepointFormat],
) {
    let names = former.iter().map(|event| event.name.clone());
    let mut met: HashMap<String, u32> = names.map(|name| (name, 0)).collect();
    let all = former.iter().chain(&*events);
    let mut taken: HashSet<String> = all.map(|event| event.name.clone()).collect();
    let mut by_id: HashMap<u64, &mut TracepointFormat> = formats
        .iter_mut()
        .map(|format| (format.id.into(), format))
        .collect();
    for event in events {
        let Some(number) = met.get_mut(&event.name) else {
            met.insert(event.name.clone(), 0);
            continue;
        };
        let name = loop {
            *number += 1;
            let name = format!("{}_{number}", event.name);
            if taken.insert(name.clone()) {
                break name;
            }
        };
        let format = by_id
            .get_mut(&event.attr.config)
            .filter(|_| event.attr.kind == Attr::TRACEPOINT);
        if let Some(format) = format {
            format.name = format!("{}_{number}", format.name);
        }
        event.name = name;
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::Attr;

    use super::*;

    fn event(name: &str, config: u64) -> EventAttr {
        EventAttr {
            attr: Attr {
                kind: Attr::TRACEPOINT,
                config,
                ..Attr::default()
            },
            name: name.to_owned(),
            ids: Vec::new(),
        }
    }

    #[test]
    fn names_of_others_are_not_taken() {
        let mut events = Vec::new();
        for (config, name) in (1..).zip(["a:b", "a:b_1", "a:b", "c:d", "a:b", "a:b_1"]) {
            events.push(event(name, config));
        }
        let format = |id| TracepointFormat {
            name: "b".to_owned(),
            id,
            ..TracepointFormat::default()
        };
        let mut formats = [format(1), format(3), format(5)];
        make_unique(&[], &mut events, &mut formats);
        let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["a:b", "a:b_1", "a:b_2", "c:d", "a:b_3", "a:b_1_1"]);
        let formats = formats.map(|format| format.name);
        assert_eq!(formats, ["b", "b_2", "b_3"]);
        let mut added = ["a:b", "a:b_1", "e:f", "e:f"].map(|name| event(name, 0));
        make_unique(&events, &mut added, &mut []);
        let names = added.map(|event| event.name);
        assert_eq!(names, ["a:b_4", "a:b_1_2", "e:f", "e:f_1"]);
    }
}
