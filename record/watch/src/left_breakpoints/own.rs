//! After the end of a recording: whether its sites are as they were.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_format::Arch;
use usdtrec_format::escape::shown;

use super::kernel_log::KernelLog;
use super::notes::{SiteNotes, forget_settled};
use super::others::{BreakpointOwner, OtherTracers};
use super::scan::{FileSite, is_unchecked};
use crate::verify::ExpectedFiles;

/// How long the kernel may take after the last descriptor was closed.
const MAX_REMOVAL_TIME: Duration = Duration::from_secs(2);
/// First interval of looking again; each following one is twice as long.
const FIRST_STEP: Duration = Duration::from_millis(5);
/// Maximum time of the first look at all processes.
const MAX_LOOK_TIME: Duration = Duration::from_millis(500);

/// What is to be compared when the probes are removed.
#[derive(Debug)]
pub struct OwnSites {
    /// The files with probes.
    pub files: Arc<ExpectedFiles>,
    /// Processes that map the files.
    pub pids: Vec<i32>,
    /// `None` if there are no notes.
    pub notes: Option<SiteNotes>,
    /// The kernel's messages since the recording began, if they can be read.
    pub log: Option<KernelLog>,
}

/// What stayed in processes after a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// Breakpoints that no tracer is known to have.
    pub breakpoints: Vec<LeftBreakpoint>,
    /// Number of processes that could not be looked at in time, or that this user may not read.
    pub unchecked: usize,
    /// What the kernel logged meanwhile about uprobes that it could not remove.
    pub logged: Vec<String>,
}

/// A breakpoint in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBreakpoint {
    /// The process.
    pub pid: i32,
    /// The file.
    pub path: PathBuf,
    /// File offset of the site.
    pub offset: u64,
    /// Its address.
    pub address: u64,
    /// The tracer, as far as it is known.
    pub owner: BreakpointOwner,
    /// Whether the instruction was restored, or why not; `None` if that was not tried.
    pub restored: Option<Result<(), String>>,
}

impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let [first, others @ ..] = self.breakpoints.as_slice() {
            write!(f, "{first}")?;
            if !others.is_empty() {
                write!(f, ", and {} more", others.len())?;
            }
            separator = "; ";
        }
        if self.unchecked > 0 {
            write!(
                f,
                "{separator}not checked for remaining breakpoints: {} of the processes",
                self.unchecked
            )?;
            separator = "; ";
        }
        if let Some(last) = self.logged.last() {
            write!(f, "{separator}the kernel logged: {last}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LeftBreakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            path,
            offset,
            address,
            owner,
            ..
        } = self;
        let path = shown(path);
        write!(
            f,
            "process {pid} has a breakpoint at {address:#x} ({path}, offset {offset:#x}), {owner}"
        )
    }
}

impl OwnSites {
    /// Leaves the notes for a later repair: the probes are not removed yet.
    pub fn keep_notes(self) {
        if let Some(notes) = self.notes {
            notes.keep();
        }
    }

    /// Looks at the sites in all processes. What is still there after a short while and no other tracer is known to have is left. The notes are kept then.
    pub fn look_behind(self) -> LeftBehind {
        let mut left = LeftBehind::default();
        let begun = Instant::now();
        let mut found = Vec::new();
        for (at, &pid) in self.pids.iter().enumerate() {
            if begun.elapsed() >= MAX_LOOK_TIME {
                left.unchecked += self.pids.len() - at;
                break;
            }
            match self.files.planted_in(pid) {
                Ok(planted) => found.extend(planted.into_iter().map(|site| (pid, site))),
                Err(error) if is_unchecked(&error) => left.unchecked += 1,
                // It has ended.
                Err(_) => {}
            }
        }
        if !found.is_empty() {
            // Others that trace the same sites have breakpoints there for good.
            let others = OtherTracers::now();
            // Of very many sites of a process, its status is read once.
            let mut of_processes = HashMap::new();
            let mut of_process = |pid| {
                BreakpointOwner::clone(
                    of_processes
                        .entry(pid)
                        .or_insert_with(|| super::others::of_process(pid)),
                )
            };
            left.breakpoints = found
                .into_iter()
                .map(|(pid, site)| LeftBreakpoint {
                    pid,
                    owner: others
                        .of_site(FileSite {
                            file: site.file,
                            offset: site.offset,
                        })
                        .unwrap_or_else(|| of_process(pid)),
                    path: site.path,
                    offset: site.offset,
                    address: site.address,
                    restored: None,
                })
                .filter(|left| {
                    matches!(
                        left.owner,
                        BreakpointOwner::Unknown | BreakpointOwner::EndedRecording
                    )
                })
                .collect();
        }
        self.wait(&mut left.breakpoints);
        left.logged = self.log.map(KernelLog::leaks).unwrap_or_default();
        if (!left.breakpoints.is_empty() || left.unchecked > 0)
            && let Some(notes) = self.notes
        {
            notes.keep();
        }
        if let Some(arch) = Arch::host() {
            forget_settled(arch);
        }
        left
    }

    /// Waits until the kernel has removed breakpoints, but not for long.
    fn wait(&self, left: &mut Vec<LeftBreakpoint>) {
        let (begun, mut step) = (Instant::now(), FIRST_STEP);
        loop {
            self.remove_gone(left, begun + MAX_REMOVAL_TIME);
            if left.is_empty() || begun.elapsed() >= MAX_REMOVAL_TIME {
                return;
            }
            thread::sleep(step);
            step *= 2;
        }
    }

    /// Removes those that are gone. Each process is read once, and none after `deadline`.
    fn remove_gone(&self, left: &mut Vec<LeftBreakpoint>, deadline: Instant) {
        let pids: HashSet<i32> = left.iter().map(|left| left.pid).collect();
        for pid in pids {
            if Instant::now() >= deadline {
                return;
            }
            let planted = match self.files.planted_in(pid) {
                // It is looked at again, or stays as it was found.
                Err(error) if is_unchecked(&error) => continue,
                planted => planted.unwrap_or_default(),
            };
            let planted: HashSet<u64> = planted.iter().map(|site| site.address).collect();
            left.retain(|left| left.pid != pid || planted.contains(&left.address));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::process::{Command, Stdio};

    use usdtrec_buildid_cache::FileMapping;

    use super::*;

    /// A breakpoint that is written by hand is one that no tracer is known to have.
    #[test]
    fn a_breakpoint_that_stays_is_left() {
        let breakpoint = Arch::host().and_then(Arch::breakpoint).unwrap();
        let mut child = Command::new("/usr/bin/cat")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let code = loop {
            let maps = fs::read(format!("/proc/{pid}/maps")).unwrap();
            let mut maps = FileMapping::parse_all(&maps);
            let is_code = |map: &FileMapping| map.permissions[2] && map.path.ends_with("cat");
            if let Some(code) = maps.find(is_code) {
                break code;
            }
        };
        // The end of the last page, where there is no code.
        let distance = code.range.end - code.range.start - 16;
        let own = || OwnSites {
            files: Arc::new(ExpectedFiles::of_site(&code.path, code.offset + distance)),
            pids: vec![pid],
            notes: None,
            log: None,
        };
        assert_eq!(own().look_behind(), LeftBehind::default());
        let mut options = File::options();
        let memory = options
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .unwrap();
        let address = code.range.start + distance;
        memory.write_all_at(breakpoint, address).unwrap();
        let left = own().look_behind();
        let [one] = left.breakpoints.as_slice() else {
            panic!("{left:?}")
        };
        assert_eq!((one.pid, one.address), (pid, address));
        assert_eq!(one.owner, BreakpointOwner::Unknown);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(own().look_behind(), LeftBehind::default());
    }
}
