//! tracefs, the file system in which uprobe events are created (Documentation/trace/uprobetracer.rst).

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use usdtrec_kernel::KernelError;
use usdtrec_kernel::KernelOperation;

use super::super::events::refusal::lockdown;
use crate::error::RecordError;

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
