//! Closing the descriptors of attached probes, in processes of their own.
//!
//! The kernel takes long to close such descriptors: about a tenth of a second for each uprobe perf event, and for a BPF link as long as any
//! sleepable program of the host runs. A process that closes them, or exits with them open, cannot be ended meanwhile, not even by SIGKILL.
//! So a helper process inherits the descriptors, and the recorder closes its copies, which is fast while the helper has its own. Processes
//! that wait for the recorder do not have to wait for the kernel. A [`Keeper`] has the descriptors, too, until the helper's processes are
//! about to exit, so that no process that can be killed closes the last copy ([`helper`]).

pub(super) mod helper;
pub(super) mod in_program;

use std::ffi::CString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_buildid_cache::served::Contents;
use usdtrec_kernel::bpf::sys::{HitsOf, UprobeEvent, open_uprobe};
use usdtrec_kernel::host::cached_pages::CachedPages;
use usdtrec_kernel::host::page_reading::PagedFile;
use usdtrec_kernel::host::{cpus, inherited};
use usdtrec_kernel::separate_process::{close, planting};

use self::helper::{Keeper, MAX_CLOSERS, RELEASE_VERB};
use super::events::event::pmu_type;
use crate::error::{Interruption, RecordError, Removal};
use crate::select::probe::SiteOffsets;

/// Number of processes that close perf events at a time. The kernel serializes most of it under a lock that every tracer of the host needs:
/// more processes are at most a third faster (10 s, 8 s, 7 s for 80 events with 1, 4 and 64), and other tracers have to wait for all of
/// them. For links the kernel waits for many programs at once.
const EVENTS_AT_ONCE: usize = 4;

/// How long to wait for the removal of the probes of a session that ends before it began.
const REMOVAL_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait after a signal ended attaching.
const ATTACH_END_LIMIT: Duration = Duration::from_secs(2);

/// The descriptors of attached probes.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// BPF links, each to many sites.
    pub links: Vec<OwnedFd>,
    /// Perf events of sites, and BPF links to these events.
    pub events: Vec<OwnedFd>,
}

impl Descriptors {
    /// Adds others.
    pub(super) fn append(&mut self, others: Self) {
        self.links.extend(others.links);
        self.events.extend(others.events);
    }

    /// Closes them, and waits for it, but not for long. Returns whether all are closed.
    pub(super) fn close(self) -> bool {
        Release::start(self).wait(REMOVAL_LIMIT)
    }
}

/// The state of closing descriptors. Dropping it leaves the rest to the helper.
#[derive(Debug)]
pub struct Release {
    helper: Option<Child>,
    /// Pipe with one byte for each closed descriptor; `None` when all are closed.
    progress: Option<PipeReader>,
    total: usize,
    closed: usize,
    begun: Instant,
    /// When the last descriptor was closed.
    moved: Instant,
}

impl Release {
    /// Starts closing the descriptors.
    pub fn start(descriptors: Descriptors) -> Self {
        let Descriptors { links, events } = descriptors;
        let at_once = if events.is_empty() {
            MAX_CLOSERS
        } else {
            EVENTS_AT_ONCE
        };
        let descriptors: Vec<_> = links.into_iter().chain(events).collect();
        let now = Instant::now();
        let mut release = Self {
            helper: None,
            progress: None,
            total: descriptors.len(),
            closed: 0,
            begun: now,
            moved: now,
        };
        if descriptors.is_empty() {
            return release;
        }
        match io::pipe() {
            Ok((progress, closed)) => {
                release.progress = Some(progress);
                release.helper = hand_over(descriptors, at_once, closed);
            }
            // Without a pipe no helper can be started, either.
            Err(_) => drop(descriptors),
        }
        release
    }

    /// Number of descriptors to close.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// Number of descriptors that are not closed yet.
    pub const fn left(&self) -> usize {
        if self.progress.is_some() {
            self.total - self.closed
        } else {
            0
        }
    }

    /// Process id of the helper.
    pub fn helper(&self) -> Option<u32> {
        self.helper.as_ref().map(Child::id)
    }

    /// Time since the last descriptor was closed.
    pub fn stalled(&self) -> Duration {
        self.moved.elapsed()
    }

    /// Expected time for the rest, from the progress so far; `None` before the first descriptor is closed.
    pub fn remaining(&self) -> Option<Duration> {
        let each = self.begun.elapsed() / u32::try_from(self.closed.max(1)).ok()?;
        (self.closed > 0).then(|| each * u32::try_from(self.left()).unwrap_or(u32::MAX))
    }

    /// Waits until all are closed, or for the time given. Returns whether all are closed.
    pub fn wait(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.progress.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            self.read_progress(left);
            if left.is_zero() {
                break;
            }
        }
        self.progress.is_none()
    }

    /// The error for a signal that ended attaching. Closing continues in the helper if it takes long.
    pub fn interrupted(mut self) -> RecordError {
        let helper = if self.wait(ATTACH_END_LIMIT) {
            None
        } else {
            self.helper()
        };
        let removal = helper.map(|pid| Removal {
            pid,
            left: self.left(),
            total: self.total,
        });
        Interruption::Signal(removal).into()
    }

    /// Waits up to the time given for progress, and counts it.
    fn read_progress(&mut self, time: Duration) {
        let Some(progress) = &mut self.progress else {
            return;
        };
        let timeout = Timespec::try_from(time).ok();
        let readable = poll(
            &mut [PollFd::from_borrowed_fd(progress.as_fd(), PollFlags::IN)],
            timeout.as_ref(),
        );
        if !matches!(readable, Ok(1)) {
            return;
        }
        let mut bytes = [0; 256];
        match progress.read(&mut bytes) {
            Ok(count @ 1..) => {
                self.closed = (self.closed + count).min(self.total);
                self.moved = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The helper has exited, which closed all its descriptors.
            Ok(0) | Err(_) => {
                self.progress = None;
                if let Some(mut helper) = self.helper.take() {
                    let _ = helper.wait();
                }
            }
        }
    }
}

/// Passes descriptors to a helper. `None` if no process can be started; then this process closes them, in a thread if it can.
fn hand_over(descriptors: Vec<OwnedFd>, at_once: usize, closed: PipeWriter) -> Option<Child> {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let keeper = Keeper::for_descriptors(&numbers).ok();
    let started = closed
        .try_clone()
        .and_then(|closed| start_helper(&numbers, keeper.as_ref(), at_once, closed));
    let Ok(mut helper) = started else {
        drop(keeper);
        // If no thread can be started, either, they are closed here, as what it was to have.
        let _ = thread::Builder::new().spawn(move || close_all(descriptors, &closed));
        return None;
    };
    // The helper starts when it has read the list. Our copies are closed before, and none of them is the last one. The keeper is closed
    // after them, because the helper may have been killed.
    drop(descriptors);
    drop(keeper);
    if let Some(mut list) = helper.stdin.take() {
        let text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        // If the helper was killed, the kernel has closed its copies already.
        let _ = list.write_all(text.join(" ").as_bytes());
    }
    Some(helper)
}

fn start_helper(
    numbers: &[RawFd],
    keeper: Option<&Keeper>,
    at_once: usize,
    closed: PipeWriter,
) -> io::Result<Child> {
    if cfg!(test) {
        // This program is not the helper.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut command = Command::new("/proc/self/exe");
    command
        .args([RELEASE_VERB, &at_once.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::from(closed))
        .stderr(inherited::null_stream()?);
    let mut numbers = numbers.to_vec();
    if let Some(keeper) = keeper.map(|keeper| keeper.as_fd().as_raw_fd()) {
        command.arg(keeper.to_string());
        numbers.push(keeper);
    }
    let inherit = move || {
        // The helper must not get signals of our terminal.
        let _ = rustix::process::setsid();
        for &number in &numbers {
            // SAFETY: fcntl(2) takes integers; the descriptors are the child's copies.
            if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: only setsid(2) and fcntl(2) are called between fork and exec; no memory is allocated and no lock is taken.
    unsafe { command.pre_exec(inherit) };
    command.spawn()
}

/// Closes the descriptors in this process, and writes a byte for each.
fn close_all(descriptors: Vec<OwnedFd>, closed: &PipeWriter) {
    for descriptor in descriptors {
        drop(descriptor);
        // The recorder may have ended.
        let _ = (&*closed).write_all(&[0]);
    }
}

/// Attaches a probe to a site of a file in all processes, and removes it: what the kernel failed to remove earlier is then removed, unless another
/// tracer has a probe there.
///
/// # Errors
/// The error of `perf_event_open(2)`; a page of the site cannot be kept in the page cache.
pub fn attach_and_remove(file: &Contents, site: u64, semaphore: u64) -> io::Result<()> {
    let offsets = SiteOffsets {
        offset: site,
        ref_ctr: semaphore,
    };
    let path = CString::new(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))?;
    let stat = file.stat()?;
    let paged = PagedFile {
        contents: file,
        len: stat.len,
        device: stat.id.device,
    };
    let kept = CachedPages::default();
    kept.check(paged, offsets.pages())?;
    let event = UprobeEvent {
        pmu: pmu_type().map_err(io::Error::other)?,
        path: &path,
        offset: site,
        config: offsets
            .pmu_config()
            .map_err(|_| io::ErrorKind::Unsupported)?,
        of: HitsOf::Cpu(cpus::any_online()),
    };
    let opened = planting(|| open_uprobe(&event))?;
    close(vec![opened.into()]);
    Ok(())
}
