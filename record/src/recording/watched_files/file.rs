//! A file with probes in all processes, and which processes map it, as `/proc/PID/maps` has it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use usdtrec_attach::engine::{FileLinks, WatchedFiles};
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{Patience, read_maps};
use usdtrec_buildid_cache::{FileMapping, MappedInode};
use usdtrec_format::BuildId;
use usdtrec_kernel::host::capabilities::may_read_processes;
use usdtrec_kernel::host::identity;
use usdtrec_kernel::host::process::{Process, is_gone};

use crate::recording::session::Session;

/// Files by their places. No file gets the place of another.
pub(super) type ProbedFiles = BTreeMap<usize, ProbedFile>;

/// A file with probes in all processes.
#[derive(Debug)]
pub(super) struct ProbedFile {
    pub(super) object: Arc<ObjectFile>,
    pub(super) path: PathBuf,
    pub(super) build_id: Option<BuildId>,
    /// The events of its probes.
    pub(super) events: BTreeSet<String>,
    /// File offsets of its sites, in ascending order.
    sites: Vec<u64>,
    /// How it appears among the mappings of processes; `None` until it is mapped, or if it cannot be.
    pub(super) identity: Option<MappedInode>,
    /// Its number for the program on mappings; `None` without one.
    pub(super) number: Option<u32>,
    /// What detaches its probes; `None` if it keeps them.
    pub(super) links: Option<FileLinks>,
}

impl ProbedFile {
    /// The files of these probes of a session.
    pub(super) fn of_probes(session: &Session, probes: Range<usize>) -> Vec<Self> {
        let mut files: Vec<Self> = Vec::new();
        let all = session.probes().iter().enumerate();
        for (number, probe) in all.skip(probes.start).take(probes.len()) {
            let is_named = is_named(session, probe);
            let known = files
                .iter()
                .position(|file| Arc::ptr_eq(&file.object, probe.file()));
            let at = known.unwrap_or_else(|| {
                let links = session.attached.engine.file_links(number, probe.file());
                files.push(Self::new(probe, links));
                files.len() - 1
            });
            let Some(file) = files.get_mut(at) else {
                continue;
            };
            if is_named {
                file.links = None;
            }
            file.events.insert(probe.event());
            let offsets = probe.sites.iter().filter_map(|site| site.site.offset);
            file.sites.extend(offsets);
        }
        files.iter_mut().for_each(|file| file.sites.sort_unstable());
        files
    }

    fn new(probe: &PlannedProbe, links: Option<FileLinks>) -> Self {
        Self {
            object: Arc::clone(probe.file()),
            path: probe.path.clone(),
            build_id: probe.build_id,
            events: BTreeSet::new(),
            sites: Vec::new(),
            identity: None,
            number: None,
            links,
        }
    }

    /// Maps it once, so that it is known how it appears among mappings.
    pub(super) fn learn(&mut self, watched: Option<&mut WatchedFiles>) {
        let object = &self.object;
        let mut identity = None;
        let mut map = || identity = identity::of_file(object);
        // A file that a helper reads is not mapped here, so the program would not get its inode.
        let watched = watched.filter(|_| object.local().is_some());
        let sites = self.sites.first().zip(self.sites.last());
        match watched.zip(sites) {
            Some((watched, (first, last))) => self.number = watched.watch(*first, *last, map),
            None => map(),
        }
        self.identity = identity;
        if self.number.is_none() || self.identity.is_none() {
            // Nobody would call when it is executed again.
            self.links = None;
        }
    }

    pub(super) fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Whether a mapping has one of its sites.
    pub(super) fn has_site(&self, offsets: &Range<u64>) -> bool {
        let first = self.sites.partition_point(|site| *site < offsets.start);
        self.sites
            .get(first)
            .is_some_and(|site| *site < offsets.end)
    }
}

/// Whether the user named the file of a probe: by a path or a build-id in a pattern, as an executable, or as a process of a recording that is not of all.
fn is_named(session: &Session, probe: &PlannedProbe) -> bool {
    let options = &session.options;
    let selects = |pattern: &usdtrec_format::Pattern| {
        let is_named = pattern.path().is_some() || pattern.build().is_some();
        is_named
            && pattern.matches(&probe.provider, &probe.name)
            && pattern.fits_build(probe.build_id)
    };
    let mut events = options.following.events.iter();
    let is_executable = |path: &PathBuf| {
        let named = path.metadata().map(|named| (named.dev(), named.ino()));
        let own = probe.file().id();
        named.is_ok_and(|named| (own.device, own.inode) == named)
    };
    options.target != Target::All
        || events.any(|event| selects(&event.pattern))
        || (options.engine.processes.executables.iter()).any(is_executable)
}

/// The processes that map files.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// A process that executes each file, by its place.
    pub(super) executing: HashMap<usize, i32>,
    /// Processes that map sites of a file and do not execute it.
    pub(super) reading: Vec<(usize, i32)>,
    /// Whether a living process could not be read for lack of a capability: it may execute any of the files.
    pub(super) is_denied: bool,
    /// The same, for lack of time.
    pub(super) is_late: bool,
}

/// How a process maps a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) executes: bool,
    pub(super) reads: bool,
}

/// Looks among the mappings of all processes.
pub(super) fn search(files: &ProbedFiles) -> Found {
    let identities = files.iter();
    let identities = identities.filter_map(|(at, file)| Some((file.identity?, *at)));
    let identities: HashMap<MappedInode, usize> = identities.collect();
    let own = std::process::id().cast_signed();
    let mut found = Found::default();
    let processes = fs::read_dir("/proc");
    found.is_denied = processes.is_err();
    let may_read = may_read_processes();
    let processes = processes.into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        let mapped = mapped_of(pid, files, |identity| identities.get(identity).copied());
        if let Err(error) = &mapped
            && !has_ended(pid, error)
        {
            // Security modules keep some processes from everybody: those count as executing nothing.
            found.is_denied |= error.kind() == io::ErrorKind::PermissionDenied && !may_read;
            found.is_late |= error.kind() == io::ErrorKind::TimedOut;
        }
        for (at, mapped) in mapped.unwrap_or_default() {
            if mapped.executes {
                found.executing.insert(at, pid);
            } else if mapped.reads {
                found.reading.push((at, pid));
            }
        }
    }
    found
}

/// Whether a process whose mappings could not be read has ended.
fn has_ended(pid: i32, error: &io::Error) -> bool {
    is_gone(error) || Process::open(pid).is_err_and(|error| is_gone(&error))
}

/// How a process maps some of the files: those at these places. Its mappings are read once. Nothing if it has ended or cannot be read.
pub(super) fn mapped_by(pid: i32, files: &ProbedFiles, places: &[usize]) -> HashMap<usize, Mapped> {
    let identities = places.iter().map(|at| (files.get(at), *at));
    let identities = identities.filter_map(|(file, at)| Some((file?.identity?, at)));
    let identities: HashMap<MappedInode, usize> = identities.collect();
    let mapped = mapped_of(pid, files, |identity| identities.get(identity).copied());
    mapped.unwrap_or_default()
}

/// How a process maps files, by their places.
///
/// # Errors
/// As [`read_maps`].
fn mapped_of(
    pid: i32,
    files: &ProbedFiles,
    place: impl Fn(&MappedInode) -> Option<usize>,
) -> io::Result<HashMap<usize, Mapped>> {
    let mut all: HashMap<usize, Mapped> = HashMap::new();
    let maps = read_maps(pid.cast_unsigned(), Patience::Short)?;
    for map in FileMapping::parse_all(&maps) {
        let at = place(&map.mapped_inode());
        let Some((at, file)) = at.and_then(|at| Some((at, files.get(&at)?))) else {
            continue;
        };
        let [_, is_writable, is_executable] = map.permissions;
        let length = map.range.end.saturating_sub(map.range.start);
        let offsets = map.offset..map.offset.saturating_add(length);
        let mapped = all.entry(at).or_default();
        mapped.executes |= is_executable;
        mapped.reads |= map.is_private && !is_writable && file.has_site(&offsets);
    }
    Ok(all)
}

#[cfg(test)]
mod made_up {
    use super::*;

    impl ProbedFile {
        /// A file of which nothing but its mapping is known.
        pub(in crate::recording::watched_files) fn of_path(path: &std::path::Path) -> Self {
            Self {
                object: Arc::new(ObjectFile::open(path).unwrap()),
                path: path.to_owned(),
                build_id: None,
                events: BTreeSet::new(),
                sites: vec![0],
                identity: None,
                number: None,
                links: None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_mapping_has_the_sites_between_its_offsets() {
        let mut file = ProbedFile::of_path("/usr/bin/true".as_ref());
        file.sites = vec![5, 10, 20];
        for (offsets, has) in [(0..5, false), (0..6, true), (11..20, false), (20..21, true)] {
            assert_eq!(file.has_site(&offsets), has, "{offsets:?}");
        }
        assert!(!file.has_site(&(21..u64::MAX)));
    }

    /// A process that cannot be read may execute anything, unless it has ended meanwhile.
    #[test]
    fn only_an_ended_process_executes_nothing_for_sure() {
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        let own = std::process::id().cast_signed();
        assert!(!has_ended(own, &late()));
        let mut child = Command::new("/usr/bin/true").spawn().unwrap();
        child.wait().unwrap();
        let pid = child.id().cast_signed();
        assert!(has_ended(pid, &late()));
        let error = mapped_of(pid, &ProbedFiles::new(), |_| None).unwrap_err();
        assert!(has_ended(pid, &error), "{error:?}");
        let mapped = mapped_of(own, &ProbedFiles::new(), |_| None);
        assert!(mapped.unwrap().is_empty());
    }
}
