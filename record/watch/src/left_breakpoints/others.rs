//! Other tracers that may have a breakpoint at a site, as far as they can be listed: recordings, tracefs events, links of BPF programs, and
//! debuggers. Perf events of other processes cannot be listed.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use usdtrec_attach::engine::Tracefs;
use usdtrec_buildid_cache::elf::FileId;
use usdtrec_buildid_cache::file_id;
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_kernel::bpf::sys::uprobes_of_links;

use super::notes::FoundNotes;
use super::scan::FileSite;

/// A tracer that has a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakpointOwner {
    /// A recording that runs.
    Recording,
    /// A recording that was killed or could not remove it.
    EndedRecording,
    /// An event of tracefs.
    TracefsEvent(String),
    /// A link of a BPF program, by its number.
    Link(u32),
    /// A debugger, by its process.
    Debugger(u32),
    /// Not known: a perf event, or nobody any more.
    Unknown,
}

impl fmt::Display for BreakpointOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording => f.write_str("of a running recording"),
            Self::EndedRecording => f.write_str("left by a recording that has ended"),
            Self::TracefsEvent(name) => write!(f, "of the tracefs event {name}"),
            Self::Link(id) => write!(f, "of the BPF link {id}"),
            Self::Debugger(pid) => write!(f, "of the debugger with pid {pid}"),
            Self::Unknown => {
                f.write_str("owner unknown: a perf event of another tracer, or left behind")
            }
        }
    }
}

/// The other tracers, read when they are first needed.
#[derive(Debug, Default)]
pub struct OtherTracers {
    sites: HashMap<FileSite, BreakpointOwner>,
    /// Sites of recordings that have ended.
    ended: HashSet<FileSite>,
}

impl OtherTracers {
    /// Reads what can be listed now.
    pub fn read(notes: &[FoundNotes]) -> Self {
        let mut this = Self::default();
        for notes in notes {
            let sites = notes.sites.iter().map(|noted| noted.site);
            if notes.is_live {
                this.sites
                    .extend(sites.map(|site| (site, BreakpointOwner::Recording)));
            } else {
                this.ended.extend(sites);
            }
        }
        // What cannot be listed is unknown.
        let events = Tracefs::open()
            .and_then(|tracefs| tracefs.events().map_err(|error| tracefs.error(error)));
        let mut files = FilesByPath::default();
        for line in events.unwrap_or_default().lines() {
            if let Some((name, site)) = event(line, &mut files) {
                this.sites
                    .entry(site)
                    .or_insert(BreakpointOwner::TracefsEvent(name));
            }
        }
        for probe in uprobes_of_links() {
            if let Some(file) = files.id_at(&probe.path) {
                let offset = probe.offset;
                this.sites
                    .entry(FileSite { file, offset })
                    .or_insert(BreakpointOwner::Link(probe.link));
            }
        }
        this
    }

    /// Reads what can be listed now, the notes of recordings included.
    pub fn now() -> Self {
        Self::read(&FoundNotes::all().unwrap_or_default())
    }

    /// The owner of a breakpoint in a process.
    pub fn owner(&self, pid: i32, site: FileSite) -> BreakpointOwner {
        self.of_site(site).unwrap_or_else(|| of_process(pid))
    }

    /// The owner of breakpoints at a site; `None` if it is not known by the site.
    pub(super) fn of_site(&self, site: FileSite) -> Option<BreakpointOwner> {
        let ended = self.ended.contains(&site);
        let ended = ended.then_some(BreakpointOwner::EndedRecording);
        self.sites.get(&site).cloned().or(ended)
    }
}

/// Group and name, and site, of a line `p:GROUP/NAME PATH:OFFSET[(SEMAPHORE)] …` of `uprobe_events`.
fn event(line: &str, files: &mut FilesByPath) -> Option<(String, FileSite)> {
    let (kind, rest) = line.split_once(':')?;
    if !kind.starts_with(['p', 'r']) {
        return None;
    }
    let (name, place) = rest.split_once(' ')?;
    // A path may have blanks and colons; the offset is the last one with `:0x` before it.
    let (path, offset) = place.rsplit_once(":0x")?;
    // It was that of the process which created the event: an own one, whose probes are being removed, or one of another recording, which has notes.
    if path.starts_with("/proc/self/") {
        return None;
    }
    let end = offset.find(|c: char| !c.is_ascii_hexdigit());
    let offset = offset.get(..end.unwrap_or(offset.len()))?;
    Some((
        name.to_owned(),
        FileSite {
            file: files.id_at(Path::new(path))?,
            offset: u64::from_str_radix(offset, 16).ok()?,
        },
    ))
}

/// The files of other tracers' probes by their paths: thousands of probes may have one.
#[derive(Default)]
struct FilesByPath(HashMap<PathBuf, Option<FileId>>);

impl FilesByPath {
    fn id_at(&mut self, path: &Path) -> Option<FileId> {
        if let Some(known) = self.0.get(path) {
            return *known;
        }
        let id = file_id(path, Reader::of_unknown(Patience::Usual));
        self.0.insert(path.to_owned(), id);
        id
    }
}

/// The owner of breakpoints in a process whose site nobody else has.
pub(super) fn of_process(pid: i32) -> BreakpointOwner {
    debugger(pid).map_or(BreakpointOwner::Unknown, BreakpointOwner::Debugger)
}

/// The process that traces another one with ptrace(2).
fn debugger(pid: i32) -> Option<u32> {
    let status = PathBuf::from(format!("/proc/{pid}/status"));
    let status = fs::read(status).ok()?;
    let status = String::from_utf8_lossy(&status);
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))?;
    tracer.trim().parse().ok().filter(|pid| *pid != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn lines_of_uprobe_events_name_sites() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b:0x1");
        fs::write(&path, "").unwrap();
        let file = FileId::from_path(&path).unwrap();
        let line = |rest: &str| format!("p:g/e {}{rest}", path.display());
        for rest in [":0x0000000000001a2b", ":0x1a2b(0x4010) arg1=%ax"] {
            let found = event(&line(rest), &mut FilesByPath::default());
            let site = FileSite {
                file,
                offset: 0x1a2b,
            };
            assert_eq!(found, Some(("g/e".to_owned(), site)));
        }
        // An event of our own is not another tracer's: what stays of it is waited for, and said.
        let file = fs::File::open(&path).unwrap();
        let own = format!(
            "p:usdtrec_1_2_3/site0 /proc/self/fd/{}:0x1a2b",
            file.as_raw_fd()
        );
        assert_eq!(event(&own, &mut FilesByPath::default()), None);
        for other in [
            "",
            "p:g/e /does/not/exist:0x1",
            "x:g/e /bin/sh:0x1",
            "p:g/e",
        ] {
            assert_eq!(event(other, &mut FilesByPath::default()), None);
        }
    }
}
