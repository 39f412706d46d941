//! Groups of tracefs events, and the guard process that removes them.
//!
//! Events of the uprobe PMU cannot be inherited: for each new thread the kernel reads the path again, from the memory of the *traced*
//! process. If that fails, the creation of the thread fails (`EFAULT` from `clone(2)`, seen on Linux 6.18). If threads and children are
//! followed, each site is therefore a tracefs event, on which perf events can be opened and inherited.
//!
//! Such events outlive their creator. Those of a recorder are in one group that is named after its process. A guard process removes the
//! group when the recorder ends in any way, and the next recording removes what a killed guard left behind. All containers share one
//! tracefs, so the name contains the process and its pid namespace ([`Owner`]).
//!
//! A tracefs event is also faster and exact on several CPUs. Each PMU event is a uprobe consumer of its own in the
//! kernel: with one event per CPU, all consumers run at each hit, one after the other, and each compares its CPU with
//! the current one. A thread that migrates in between is counted twice or not at all (30,043 of 30,000). A tracefs
//! event is one consumer, however many perf events are opened on it. PMU events are used where there is no tracefs.
//!
//! The name of a group has the recorder's process id, start time and pid namespace, so no group is mistaken for
//! another, and a recorder leaves groups alone whose recorder it cannot see. In the file both kinds are PMU events,
//! because the number of a tracefs event has no meaning later. The kernel's inherited events miss hits of children and
//! do not count them: the definitions say so (`uncounted`), and such losses are never reported as exact.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_kernel::host::inherited;
use usdtrec_kernel::{KernelError, KernelOperation};

use super::super::events::event::lockdown;
use super::super::guard_process::{GuardDeath, GuardProcess};
use super::owner::Owner;
use crate::error::{RecordError, UsageError};
use crate::select::probe::SiteOffsets;

/// The first argument of the process that runs [`guard`].
pub const GUARD_VERB: &str = "guard-tracefs";

/// How long the guard tries: events cannot be removed while the kernel closes the perf events of the recorder that ended, which takes about
/// a tenth of a second each.
const GUARD_TIMEOUT: Duration = Duration::from_secs(1800);

/// A group of tracefs events. Dropping it removes the events.
#[derive(Debug)]
pub struct Group {
    tracefs: Tracefs,
    name: String,
    count: usize,
    guard: GuardProcess,
    /// Whether the guard removes the group instead of this process.
    left: bool,
}

impl Group {
    /// Prepares a group for this process, and removes those of processes that have ended.
    pub fn new() -> Result<Self, RecordError> {
        let tracefs = Tracefs::open()?;
        let own = Owner::of_this_process().map_err(KernelError::host("/proc/self"))?;
        let name = own.to_string();
        // Events that cannot be removed are in use.
        let _ = clear(&tracefs, |group| {
            Owner::parse(group).is_some_and(|owner| owner.has_ended(&own))
        });
        let guard =
            start_guard(&name).map_err(KernelError::operation(KernelOperation::TracefsGuard))?;
        Ok(Self {
            tracefs,
            name,
            count: 0,
            guard: GuardProcess::new(guard),
            left: false,
        })
    }

    /// Creates an event for a site. Returns its name.
    pub fn add(
        &mut self,
        file: &ObjectFile,
        SiteOffsets { offset, ref_ctr }: SiteOffsets,
    ) -> io::Result<String> {
        let event = format!("site{}", self.count);
        let mut line = format!("p:{}/{event} ", self.name).into_bytes();
        // Never the file's own path: its owner could inject commands (the line is split at spaces, and `#` begins a comment), or exchange
        // the file.
        line.extend_from_slice(file.kernel_path().as_bytes());
        write!(line, ":{offset:#x}")?;
        if ref_ctr != 0 {
            write!(line, "({ref_ctr:#x})")?;
        }
        self.tracefs.command(&line)?;
        self.count += 1;
        Ok(event)
    }

    /// Leaves the group to the guard: the kernel may lock its list of events for a long time.
    pub fn leave_to_guard(&mut self) {
        self.left = true;
        // The guard may have been killed. If no other one can be started, the next recording removes the group.
        let _ = self.guard.replace_now(|| start_guard(&self.name));
    }

    /// Starts another guard if it was killed.
    pub fn replace_guard(&mut self) -> Option<GuardDeath> {
        self.guard.replace(|| start_guard(&self.name))
    }

    /// The number of an event.
    pub fn id(&self, event: &str) -> io::Result<u64> {
        self.tracefs.id(&self.name, event)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let cleared = !self.left && clear(&self.tracefs, |group| group == self.name).is_ok();
        // What cannot be removed now, the guard tries again when its standard input closes.
        self.guard.release();
        if cleared {
            self.guard.wait();
        }
    }
}

/// Starts the guard of a group.
fn start_guard(group: &str) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .args([GUARD_VERB, group])
        .stdin(Stdio::piped())
        .stdout(inherited::null_stream()?)
        .stderr(inherited::null_stream()?)
        .spawn()
}

/// Waits until standard input closes, which means that the recorder has ended, and removes the group.
///
/// # Errors
/// [`UsageError::Group`] if the name is not that of a recorder's group; other [`RecordError`]s if the group cannot be removed.
pub fn guard(group: &str) -> Result<(), RecordError> {
    if Owner::parse(group).is_none() {
        return Err(UsageError::Group(group.to_owned()).into());
    }
    let tracefs = Tracefs::open()?;
    // The guard must not get signals of the recorder's terminal.
    let _ = rustix::process::setsid();
    let ignored = std::sync::Arc::default();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let registered = signal_hook::flag::register(signal, std::sync::Arc::clone(&ignored));
        registered.map_err(|source| tracefs.error(source))?;
    }
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let start = Instant::now();
    loop {
        match clear(&tracefs, |name| name == group) {
            Ok(()) => return Ok(()),
            Err(source) if start.elapsed() > GUARD_TIMEOUT => return Err(tracefs.error(source)),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// A group of tracefs events whose recorder has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedGroup {
    /// Its name.
    pub name: String,
    /// Whether it was removed.
    pub is_removed: bool,
}

/// The groups of recorders that have ended. They are removed only if `remove` is set.
///
/// # Errors
/// [`RecordError`] if tracefs cannot be read. Without tracefs there are no groups.
pub fn abandoned_groups(remove: bool) -> Result<Vec<AbandonedGroup>, RecordError> {
    let Ok(tracefs) = Tracefs::open() else {
        return Ok(Vec::new());
    };
    let own = Owner::of_this_process().map_err(|source| tracefs.error(source))?;
    let events = tracefs.events().map_err(|source| tracefs.error(source))?;
    let groups = events.lines().filter_map(|line| {
        let (_, name) = line.split_once(':')?;
        let (group, _) = name.split_once('/')?;
        let has_ended = Owner::parse(group)?.has_ended(&own);
        has_ended.then(|| group.to_owned())
    });
    let groups: BTreeSet<String> = groups.collect();
    let removed = |name: String| AbandonedGroup {
        is_removed: remove && clear(&tracefs, |group| group == name).is_ok(),
        name,
    };
    Ok(groups.into_iter().map(removed).collect())
}

/// Removes the events of the groups that `unwanted` selects. An event that cannot be removed does not affect the others.
fn clear(tracefs: &Tracefs, unwanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut outcome = Ok(());
    for line in tracefs.events()?.lines() {
        let name = line
            .split_once(':')
            .and_then(|(_, rest)| rest.split_whitespace().next());
        if let Some(name) = name
            && let Some((group, _)) = name.split_once('/')
            && unwanted(group)
            && let Err(error) = tracefs.command(format!("-:{name}").as_bytes())
        {
            outcome = Err(error);
        }
    }
    outcome
}

/// Where tracefs is usually mounted.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// tracefs: where it is mounted, or a detached mount of our own, which ends with this process.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds tracefs, or mounts it.
    pub fn open() -> Result<Self, RecordError> {
        let mut mounts = MOUNTS.into_iter().map(PathBuf::from);
        // Lockdown lets nobody open files there.
        if let Some(root) = mounts.find(|mount| File::open(mount.join("uprobe_events")).is_ok()) {
            return Ok(Self { root, _mount: None });
        }
        let mount = mount(c"tracefs").map_err(RecordError::NoTracefs)?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        let tracefs = Self {
            root,
            _mount: Some(mount),
        };
        match tracefs.events() {
            Ok(_) => Ok(tracefs),
            Err(error) => Err(tracefs.error(error)),
        }
    }

    /// All uprobe events, one per line: `p:GROUP/EVENT PATH:OFFSET`.
    pub fn events(&self) -> io::Result<String> {
        let bytes = fs::read(self.root.join("uprobe_events"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes one command to `uprobe_events`, in one call.
    pub fn command(&self, line: &[u8]) -> io::Result<()> {
        let path = self.root.join("uprobe_events");
        OpenOptions::new().append(true).open(path)?.write_all(line)
    }

    /// The number of an event, which is the `config` of a tracepoint perf event.
    pub fn id(&self, group: &str, event: &str) -> io::Result<u64> {
        let names = ["events", group, event, "id"].map(Path::new);
        let path: PathBuf = [self.root.as_path()].iter().chain(&names).collect();
        let id = fs::read_to_string(path)?;
        id.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("expected an event's id, found {id:?}")))
    }

    /// Adds the name of the file to an error.
    pub fn error(&self, source: io::Error) -> RecordError {
        let operation = KernelOperation::Tracefs {
            root: self.root.clone(),
            meaning: lockdown(),
        };
        KernelError::operation(operation)(source).into()
    }
}

/// Creates a detached mount of a file system (fsopen(2), Linux 5.2).
fn mount(name: &CStr) -> io::Result<OwnedFd> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?)
}
