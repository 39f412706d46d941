//! Processes that a lossless recording never stops. If one of them were stopped, the output could not be read, or the recorder not be
//! ended.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use usdtrec_kernel::host::process::{NOT_EXECUTED, Process, Stat};

/// Standard output and standard error.
const STANDARD_STREAMS: [u32; 2] = [1, 2];

/// Maximum time to wait for children that are about to execute a program.
const CHILDREN_TIME: Duration = Duration::from_secs(1);

/// Interval at which these are checked.
const CHILDREN_STEP: Duration = Duration::from_millis(10);

/// A descriptor of a pipe that a process has open.
struct PipeEnd {
    pid: u32,
    /// Its number.
    number: u32,
    /// Target of its link: `pipe:[…]`.
    pipe: Vec<u8>,
    reads: bool,
    writes: bool,
}

/// The processes that are never stopped.
#[derive(Clone, Debug)]
pub(in crate::engine::bpf) struct ExemptProcesses {
    /// The recorder and its ancestors: shell, sudo, terminal, ssh server.
    pub(in crate::engine::bpf) ancestors: BTreeSet<u32>,
    /// Others that read its output from a pipe, those that read their output, and so on.
    pub(in crate::engine::bpf) readers: BTreeSet<u32>,
}

impl ExemptProcesses {
    /// Finds them. A child has all descriptors of its parent until it executes a program, and so seems to read what the parent
    /// reads, and to write to every process that the parent writes to. So for such children this waits for a bounded time.
    pub(in crate::engine::bpf) fn find() -> Self {
        let begin = Instant::now();
        loop {
            let found = Self::now();
            let children = found.unexecuted_children();
            if children.is_empty() || begin.elapsed() >= CHILDREN_TIME {
                return found;
            }
            while begin.elapsed() < CHILDREN_TIME
                && children.iter().any(|pid| has_not_executed(*pid))
            {
                std::thread::sleep(CHILDREN_STEP);
            }
        }
    }

    fn now() -> Self {
        let own = std::process::id();
        let ancestors = ancestors(own);
        let readers = readers(own, &ancestors);
        Self { ancestors, readers }
    }

    /// Readers that have not executed a program since another of the processes started them.
    fn unexecuted_children(&self) -> Vec<u32> {
        let is_ours = |stat: Stat| {
            let parent = u32::try_from(stat.ppid).ok();
            parent.is_some_and(|pid| self.ancestors.contains(&pid) || self.readers.contains(&pid))
        };
        let children = self.readers.iter().copied();
        let children = children.filter(|pid| has_not_executed(*pid));
        children
            .filter(|pid| stat_of(*pid).is_some_and(is_ours))
            .collect()
    }
}

fn stat_of(pid: u32) -> Option<Stat> {
    Process::open(pid.try_into().ok()?).ok()?.stat().ok()
}

/// Whether a process has not executed a program since it was started; `false` if it has ended.
fn has_not_executed(pid: u32) -> bool {
    stat_of(pid).is_some_and(|stat| stat.flags & NOT_EXECUTED != 0)
}

/// The processes that read the output of `own` from a pipe, those that read their output, and so on, without `ancestors`.
fn readers(own: u32, ancestors: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut readers = BTreeSet::new();
    let ends = if writes_pipe(own) {
        pipe_ends()
    } else {
        Vec::new()
    };
    let mut last = BTreeSet::from([own]);
    while !last.is_empty() {
        let pipes: BTreeSet<&[u8]> = ends
            .iter()
            .filter(|end| end.writes && last.contains(&end.pid))
            // Of the recorder's pipes, only standard output and error: the held command reads another one, and is recorded.
            .filter(|end| end.pid != own || STANDARD_STREAMS.contains(&end.number))
            .map(|end| end.pipe.as_slice())
            .collect();
        last = ends
            .iter()
            .filter(|end| end.reads && pipes.contains(end.pipe.as_slice()))
            .map(|end| end.pid)
            .filter(|pid| !ancestors.contains(pid) && !readers.contains(pid))
            .collect();
        readers.extend(&last);
    }
    readers
}

/// A process and its ancestors.
fn ancestors(pid: u32) -> BTreeSet<u32> {
    let mut ancestors = BTreeSet::new();
    let mut next = pid;
    while next > 0 && ancestors.insert(next) {
        next = stat_of(next).map_or(0, |stat| stat.ppid.unsigned_abs());
    }
    ancestors
}

/// Pipes that a process writes its standard streams to.
fn writes_pipe(pid: u32) -> bool {
    STANDARD_STREAMS
        .into_iter()
        .any(|number| end_of(pid, number).is_some_and(|end| end.writes))
}

/// The pipes of all processes.
fn pipe_ends() -> Vec<PipeEnd> {
    let processes = Process::all().into_iter().flatten();
    let pids = processes.filter_map(|process| u32::try_from(process.pid).ok());
    pids.flat_map(|pid| {
        numbers(pid)
            .into_iter()
            .filter_map(move |number| end_of(pid, number))
    })
    .collect()
}

fn numbers(pid: u32) -> Vec<u32> {
    let names = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    names
        .filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A descriptor of a process, if it is a pipe.
fn end_of(pid: u32, number: u32) -> Option<PipeEnd> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?;
    let link = link.as_os_str().as_bytes();
    // FIFOs have the path of a file here. Files are not opened, because that may block for ever.
    if !link.starts_with(b"pipe:[") {
        return None;
    }
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let access = u32::from_str_radix(flags.trim(), 8).ok()? & libc::O_ACCMODE.cast_unsigned();
    Some(PipeEnd {
        pid,
        number,
        pipe: link.to_vec(),
        reads: access != libc::O_WRONLY.cast_unsigned(),
        writes: access != libc::O_RDONLY.cast_unsigned(),
    })
}
