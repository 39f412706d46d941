//! Puts the heads of several files together: events and probes that are the same have one number, and sample ids one meaning.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use super::TraceInfo;
use super::id_map::IdMap;
use super::trace_part::ProbeDifference;
use crate::build_id::BuildId;
use crate::definitions::{Definitions, FileDefinition, ProbeDefinition};
use crate::perf::{Attr, BuildIdEntry, EventAttr, TracepointFormat};

/// What a sample id stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    /// Index of the event.
    event: usize,
    /// Indices of those of its sites that have the id.
    sites: Vec<usize>,
}

/// The heads of several files.
#[derive(Debug)]
pub(crate) struct JoinedHeads {
    info: TraceInfo,
    /// Indices of the probes of events.
    probes: Vec<Option<usize>>,
    /// Events by what is the same in all files, as a hash.
    by_identity: HashMap<u64, Vec<usize>>,
    /// Indices of tracepoint formats by their numbers.
    formats: HashMap<u16, usize>,
    /// All higher numbers of formats are taken.
    unused_format: u16,
    /// Indices of files with probes.
    files: HashMap<FileDefinition, usize>,
    targets: HashMap<u64, Target>,
    /// One id of each target.
    ids: HashMap<Target, u64>,
    /// An id that no file has; so are all after it.
    unused: u64,
    build_ids: HashSet<(PathBuf, BuildId)>,
    last: Option<LastHead>,
}

/// The head of the file that was added last: those of one recording are mostly the same.
#[derive(Debug)]
struct LastHead {
    info: Arc<TraceInfo>,
    head: JoinedHead,
}

/// What the numbers of one file are among those of all files.
#[derive(Clone, Debug)]
pub(crate) struct JoinedHead {
    /// New indices of events.
    pub(crate) events: Arc<[usize]>,
    pub(crate) ids: Arc<IdMap>,
    pub(crate) probes: ProbeDifference,
}

/// An event of one file.
#[derive(Clone, Copy)]
struct OneEvent<'a> {
    attr: &'a EventAttr,
    probe: Option<&'a ProbeDefinition>,
    file: Option<&'a FileDefinition>,
    format: Option<&'a TracepointFormat>,
}

impl<'a> OneEvent<'a> {
    fn new(
        info: &'a TraceInfo,
        formats: &HashMap<u16, usize>,
        event: usize,
        probe: Option<usize>,
    ) -> Option<Self> {
        let attr = info.events.get(event)?;
        let all = info.definitions.as_ref();
        let probe = all.zip(probe).and_then(|(all, at)| all.probes.get(at));
        let is_of_tracepoint = attr.attr.kind == Attr::TRACEPOINT;
        let number = u16::try_from(attr.attr.config).ok();
        let format = number
            .filter(|_| is_of_tracepoint)
            .and_then(|number| info.tracepoints.get(*formats.get(&number)?));
        Some(Self {
            attr,
            probe,
            file: all
                .zip(probe)
                .and_then(|(all, probe)| all.files.get(probe.file)),
            format,
        })
    }

    /// The event without the numbers that files give out.
    fn identity(&self) -> Identity<'a> {
        Identity {
            name: &self.attr.name,
            attr: Attr {
                config: match self.format {
                    Some(_) => 0,
                    None => self.attr.attr.config,
                },
                ..self.attr.attr.clone()
            },
            file: self.file,
            format: self.format.map(|format| TracepointFormat {
                id: 0,
                ..format.clone()
            }),
            probe: self.probe.map(without_numbers),
        }
    }
}

/// What is the same of an event in all files.
#[derive(PartialEq, Eq)]
struct Identity<'a> {
    name: &'a str,
    attr: Attr,
    file: Option<&'a FileDefinition>,
    format: Option<TracepointFormat>,
    probe: Option<ProbeDefinition>,
}

impl Identity<'_> {
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        self.file.hash(&mut hasher);
        self.format.hash(&mut hasher);
        let mut bytes = Vec::new();
        self.attr.encode(&mut bytes);
        // What cannot be written is compared only.
        let _ = serde_json::to_writer(&mut bytes, &self.probe);
        bytes.hash(&mut hasher);
        hasher.finish()
    }
}

/// Indices of tracepoint formats by their numbers.
fn formats_of(info: &TraceInfo) -> HashMap<u16, usize> {
    let formats = info.tracepoints.iter().enumerate().rev();
    formats.map(|(at, format)| (format.id, at)).collect()
}

/// A probe without the numbers that a file gives out.
fn without_numbers(probe: &ProbeDefinition) -> ProbeDefinition {
    let mut probe = probe.clone();
    probe.file = 0;
    probe.sites.iter_mut().for_each(|site| site.ids.clear());
    probe
}

impl JoinedHeads {
    /// Of no file yet: what is said once is that of the first. `unused` is an id that no file has, and so are all after it.
    pub(crate) fn new(first: &TraceInfo, unused: u64) -> Self {
        let definitions = first.definitions.as_ref().map(|all| Definitions {
            files: Vec::new(),
            probes: Vec::new(),
            ..all.clone()
        });
        Self {
            info: TraceInfo {
                events: Vec::new(),
                tracepoints: Vec::new(),
                build_ids: Vec::new(),
                definitions,
                ..first.clone()
            },
            probes: Vec::new(),
            by_identity: HashMap::new(),
            formats: HashMap::new(),
            unused_format: u16::MAX,
            files: HashMap::new(),
            targets: HashMap::new(),
            ids: HashMap::new(),
            unused,
            build_ids: HashSet::new(),
            last: None,
        }
    }

    /// Adds the head of the next file.
    pub(crate) fn add(&mut self, info: &Arc<TraceInfo>) -> JoinedHead {
        self.add_machine(info);
        let mut all_events: Vec<usize> = (0..info.events.len()).collect();
        let mut ids = IdMap::default();
        let mut added = Vec::new();
        let last = self.last.as_ref().filter(|last| {
            Arc::ptr_eq(&last.info, info)
                || last.info.events == info.events
                    && last.info.definitions == info.definitions
                    && last.info.tracepoints == info.tracepoints
        });
        if let Some(last) = last {
            return last.head.clone();
        }
        let probes = match &info.definitions {
            Some(definitions) => definitions.probes_of(&info.events),
            None => vec![None; info.events.len()],
        };
        let mut is_taken = vec![false; self.info.events.len()];
        let mut seen = HashSet::new();
        let formats = formats_of(info);
        // How many events of the file are the same, by their hashes.
        let mut same: HashMap<u64, usize> = HashMap::new();
        // That of a file that is cut may be lost.
        let lacks_probes = info.definitions.is_none() && self.info.definitions.is_some();
        for (event, probe) in probes.into_iter().enumerate() {
            let Some(one) = OneEvent::new(info, &formats, event, probe) else {
                continue;
            };
            if lacks_probes && let Some(number) = self.event_with_ids(one.attr) {
                is_taken[number] = true;
                all_events[event] = number;
                seen.extend(&one.attr.ids);
                continue;
            }
            let identity = one.identity();
            let hash = identity.hash();
            let same = same.entry(hash).or_default();
            let known = self.find(&identity, hash, *same);
            *same += 1;
            let number = known.unwrap_or_else(|| {
                added.push(one.attr.name.clone());
                self.push(&one, hash)
            });
            is_taken.resize(self.info.events.len(), false);
            is_taken[number] = true;
            all_events[event] = number;
            self.add_ids(&one, number, &mut seen, &mut ids);
        }
        let events = self.info.events.iter().zip(is_taken);
        let lacking = events.filter(|(event, is_taken)| !is_taken && !is_dummy(&event.attr));
        let lacking = lacking.map(|(event, _)| event.name.clone()).collect();
        let head = JoinedHead {
            events: all_events.into(),
            ids: Arc::new(ids),
            probes: ProbeDifference::default(),
        };
        self.last = Some(LastHead {
            info: Arc::clone(info),
            head: head.clone(),
        });
        JoinedHead {
            probes: ProbeDifference { lacking, added },
            ..head
        }
    }

    /// The head of all files.
    pub(crate) fn into_info(self) -> TraceInfo {
        self.info
    }

    fn add_machine(&mut self, info: &TraceInfo) {
        let all = &mut self.info;
        all.cpus_available = all.cpus_available.max(info.cpus_available);
        all.cpus_online = all.cpus_online.max(info.cpus_online);
        for BuildIdEntry { build_id, path } in &info.build_ids {
            if self.build_ids.insert((path.clone(), *build_id)) {
                all.build_ids.push(BuildIdEntry {
                    build_id: *build_id,
                    path: path.clone(),
                });
            }
        }
        let uncounted = info.definitions.as_ref();
        let uncounted = uncounted.and_then(|all| all.uncounted.clone());
        if let Some(definitions) = &mut all.definitions {
            definitions.uncounted = definitions.uncounted.take().or(uncounted);
        }
    }

    /// The event that is the same; of several, the one after those that `same` earlier events of the file are.
    fn find(&self, identity: &Identity<'_>, hash: u64, same: usize) -> Option<usize> {
        let number = *self.by_identity.get(&hash)?.get(same)?;
        let probe = self.probes.get(number).copied().flatten();
        let known = OneEvent::new(&self.info, &self.formats, number, probe)?;
        (known.identity() == *identity).then_some(number)
    }

    /// The event that has all ids of another one.
    fn event_with_ids(&self, attr: &EventAttr) -> Option<usize> {
        let mut events = attr.ids.iter().map(|id| self.targets.get(id));
        let event = events.next()??.event;
        let is_same = |target: Option<&Target>| target.is_some_and(|target| target.event == event);
        events.all(is_same).then_some(event)
    }

    /// Adds an event without its ids.
    fn push(&mut self, one: &OneEvent<'_>, hash: u64) -> usize {
        let number = self.info.events.len();
        let mut attr = one.attr.attr.clone();
        if let Some(format) = one.format {
            attr.config = self.add_format(format).into();
        }
        self.info.events.push(EventAttr {
            attr,
            name: one.attr.name.clone(),
            ids: Vec::new(),
        });
        let probe = one.probe.and_then(|probe| self.add_probe(probe, one.file));
        self.probes.push(probe);
        self.by_identity.entry(hash).or_default().push(number);
        number
    }

    /// Adds the format of a tracepoint, and gives its number.
    fn add_format(&mut self, format: &TracepointFormat) -> u16 {
        let all = &mut self.info.tracepoints;
        let is_taken = |id: &u16| self.formats.contains_key(id);
        // Numbers of our own files are their own.
        let id = if is_taken(&format.id) {
            let mut others = (1..=self.unused_format).rev();
            let unused = others.find(|id| !is_taken(id));
            self.unused_format = unused.map_or(0, |id| id - 1);
            unused.unwrap_or(format.id)
        } else {
            format.id
        };
        self.formats.entry(id).or_insert(all.len());
        all.push(TracepointFormat {
            id,
            ..format.clone()
        });
        id
    }

    /// Adds a probe without its ids, and gives its index; `None` if there are no definitions.
    fn add_probe(
        &mut self,
        probe: &ProbeDefinition,
        file: Option<&FileDefinition>,
    ) -> Option<usize> {
        let all = self.info.definitions.as_mut()?;
        let number = match file {
            // A damaged file may have none.
            None => usize::MAX,
            Some(file) => {
                let files = &mut all.files;
                *self.files.entry(file.clone()).or_insert_with(|| {
                    files.push(file.clone());
                    files.len() - 1
                })
            }
        };
        all.probes.push(ProbeDefinition {
            file: number,
            ..without_numbers(probe)
        });
        Some(all.probes.len() - 1)
    }

    /// Adds the ids of an event of a file, which has the number `event` among those of all files. `seen` has those of the file so far.
    fn add_ids(
        &mut self,
        one: &OneEvent<'_>,
        event: usize,
        seen: &mut HashSet<u64>,
        map: &mut IdMap,
    ) {
        let ids = one.attr.ids.iter().map(|&id| (id, Vec::new()));
        let mut sites: BTreeMap<u64, Vec<usize>> = ids.collect();
        for (at, site) in one.probe.iter().flat_map(|probe| &probe.sites).enumerate() {
            for &id in &site.ids {
                sites.entry(id).or_default().push(at);
            }
        }
        for (id, mut sites) in sites {
            if !seen.insert(id) {
                continue;
            }
            sites.dedup();
            let new = self.id_for(id, Target { event, sites });
            if new != id {
                map.insert(id, new);
            }
        }
    }

    /// The id of a target: the one that it has in a file, unless it means something else in another one.
    fn id_for(&mut self, id: u64, target: Target) -> u64 {
        let id = match self.targets.get(&id) {
            Some(known) if *known == target => return id,
            None => id,
            Some(_) => match self.ids.get(&target) {
                Some(id) => return *id,
                None => {
                    self.unused += 1;
                    self.unused - 1
                }
            },
        };
        if let Some(event) = self.info.events.get_mut(target.event) {
            event.ids.push(id);
        }
        let probe = self.probes.get(target.event).copied().flatten();
        let all = self.info.definitions.as_mut();
        if let Some(probe) = all.zip(probe).and_then(|(all, at)| all.probes.get_mut(at)) {
            for &at in &target.sites {
                if let Some(site) = probe.sites.get_mut(at) {
                    site.ids.push(id);
                }
            }
        }
        self.ids.entry(target.clone()).or_insert(id);
        self.targets.insert(id, target);
        id
    }
}

fn is_dummy(attr: &Attr) -> bool {
    attr.kind == Attr::SOFTWARE && attr.config == Attr::DUMMY
}

/// An id that no head has, and so are all after it.
pub(crate) fn unused_id<'a>(heads: impl Iterator<Item = &'a TraceInfo>) -> u64 {
    let highest = heads.flat_map(|info| {
        let of_events = info.events.iter().flat_map(|event| &event.ids);
        let probes = info.definitions.iter().flat_map(|all| &all.probes);
        let of_sites = probes
            .flat_map(|probe| &probe.sites)
            .flat_map(|site| &site.ids);
        of_events.chain(of_sites)
    });
    highest.max().map_or(1, |id| id.saturating_add(1))
}
