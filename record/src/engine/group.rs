//! Probes planted as tracefs events, and the guard that takes them away.
//!
//! Events of the uprobe PMU cannot be inherited: for every new thread the kernel reads the path anew, from the
//! *traced* process's memory, and when that fails so does the thread's creation (`EFAULT` from
//! `clone(2)`, seen on Linux 6.18). Where threads and children are followed, each site is therefore a tracefs
//! event, which perf events can be opened on and inherited.
//!
//! Such events outlive their maker. Ours are in one group named after our process; a guard process
//! takes the group away when we end, however that happens, and the next recording takes away what a
//! killed guard may have left.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::tracefs::Tracefs;
use crate::RecordError;

/// What the names of our groups begin with; the process id follows.
const PREFIX: &str = "usdtrec_";

/// The verb that runs [`guard`] in a process of its own.
pub const GUARD_VERB: &str = "guard-tracefs";

/// How long the guard tries: events cannot go while the ended recorder's perf events are being closed,
/// which takes the kernel about a tenth of a second each.
const GUARD_PATIENCE: Duration = Duration::from_secs(1800);

/// A group of tracefs events, taken away when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    tracefs: Tracefs,
    name: String,
    count: usize,
    guard: Child,
}

impl Group {
    /// Prepares a group of this process's, and clears away what dead processes left.
    pub(crate) fn new() -> Result<Self, RecordError> {
        let tracefs = Tracefs::open()?;
        let name = format!("{PREFIX}{}", std::process::id());
        // What cannot go is in use: its recorder runs where its process id is another than here.
        let _ = clear(&tracefs, is_orphan);
        clear(&tracefs, |group| group == name).map_err(|source| tracefs.error(source))?;
        let guard = Command::new("/proc/self/exe")
            .args([GUARD_VERB, &name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| RecordError::Kernel {
                what: "cannot start the guard of the tracefs events".to_owned(),
                source,
            })?;
        Ok(Self {
            tracefs,
            name,
            count: 0,
            guard,
        })
    }

    /// Makes an event for a site, with fetch arguments (a blank before each), and gives its name.
    pub(crate) fn add(
        &mut self,
        path: &Path,
        (offset, ref_ctr): (u64, u32),
        arguments: &str,
    ) -> io::Result<String> {
        let event = format!("site{}", self.count);
        let file = File::open(path)?;
        let mut line = format!("p:{}/{event} ", self.name).into_bytes();
        if path
            .as_os_str()
            .as_bytes()
            .iter()
            .any(u8::is_ascii_whitespace)
        {
            // The line is split at blanks, and has no way to quote them.
            write!(line, "/proc/self/fd/{}", file.as_raw_fd())?;
        } else {
            line.extend_from_slice(path.as_os_str().as_bytes());
        }
        write!(line, ":{offset:#x}")?;
        if ref_ctr != 0 {
            write!(line, "({ref_ctr:#x})")?;
        }
        line.extend_from_slice(arguments.as_bytes());
        self.tracefs.command(&line)?;
        self.count += 1;
        Ok(event)
    }

    /// The number of an event.
    pub(crate) fn id(&self, event: &str) -> io::Result<u64> {
        self.tracefs.id(&self.name, event)
    }

    /// Where an event's fields stand.
    pub(crate) fn format(&self, event: &str) -> io::Result<String> {
        self.tracefs.format(&self.name, event)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What cannot be removed now, the guard tries again: it starts when its standard input closes.
        let _ = clear(&self.tracefs, |group| group == self.name);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Waits until standard input closes, that is until the recorder has ended, then takes the group away.
///
/// # Errors
/// [`RecordError`] if the group is not one of ours or cannot be removed.
pub fn guard(group: &str) -> Result<(), RecordError> {
    if pid_of(group).is_none() {
        return Err(RecordError::Usage(format!(
            "{group:?} is no group of a recorder's events"
        )));
    }
    let tracefs = Tracefs::open()?;
    // The signals of the recorder's terminal are not meant for us.
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
            Err(source) if start.elapsed() > GUARD_PATIENCE => return Err(tracefs.error(source)),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Removes the events of the groups that `unwanted` names. One that cannot go costs the others nothing.
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

/// Whether a group's recorder is gone.
fn is_orphan(group: &str) -> bool {
    pid_of(group).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// The recorder's process id in a group's name; `None` if it is not one of ours.
fn pid_of(group: &str) -> Option<u32> {
    group.strip_prefix(PREFIX)?.parse().ok()
}
