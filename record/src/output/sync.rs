//! Flushing a finished file to disk.
//!
//! A process that waits for a disk (`fdatasync(2)`) cannot be killed, and a broken disk may never answer. So a helper process calls it, and
//! the recorder waits for the helper only as long as the user wants.
//!
//! A file is flushed only when it ends: a disk may stall for longer than the rings have room.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::WriteError;
use usdtrec_kernel::host::inherited;

/// The first argument of the process that runs [`sync_file`].
pub const SYNC_VERB: &str = "sync-file";

/// A file that is being flushed to disk while recording continues. Until then a power failure can damage it.
#[derive(Debug)]
pub(crate) struct DiskSync(SyncMethod);

#[derive(Debug)]
enum SyncMethod {
    Helper(Child),
    /// Flushed by the recorder itself, because no process could be started.
    Thread(JoinHandle<io::Result<()>>),
    /// Flushed already, because no thread could be started, either.
    Done(io::Result<()>),
}

impl DiskSync {
    /// Starts the helper process: a disk may take seconds, and rings fill up faster.
    pub(crate) fn start(file: File) -> Self {
        let started = file.try_clone().and_then(start_helper);
        Self(match started {
            Ok(helper) => SyncMethod::Helper(helper),
            Err(_) => start_thread(Arc::new(file)),
        })
    }

    /// Whether the helper has ended.
    pub(crate) fn is_done(&mut self) -> bool {
        match &mut self.0 {
            SyncMethod::Helper(helper) => !matches!(helper.try_wait(), Ok(None)),
            SyncMethod::Thread(thread) => thread.is_finished(),
            SyncMethod::Done(_) => true,
        }
    }

    /// The process that waits for the disk.
    pub(crate) fn helper(&self) -> Option<u32> {
        match &self.0 {
            SyncMethod::Helper(helper) => Some(helper.id()),
            SyncMethod::Thread(_) | SyncMethod::Done(_) => None,
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Result<(), RecordError> {
        let ended = match self.0 {
            SyncMethod::Helper(mut helper) => helper.wait().and_then(outcome),
            SyncMethod::Thread(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that syncs ended"))),
            SyncMethod::Done(ended) => ended,
        };
        ended.map_err(|source| WriteError::Sync(source).into())
    }
}

fn start_thread(file: Arc<File>) -> SyncMethod {
    let shared = Arc::clone(&file);
    let thread = Builder::new().spawn(move || sync(&shared));
    thread.map_or_else(|_| SyncMethod::Done(sync(&file)), SyncMethod::Thread)
}

fn start_helper(file: File) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(SYNC_VERB)
        .stdin(Stdio::from(file))
        .stdout(inherited::null_stream()?)
        .stderr(inherited::null_stream()?)
        // The helper must not get signals of the recorder's terminal.
        .process_group(0)
        .spawn()
}

/// The error in the helper's exit status.
fn outcome(status: ExitStatus) -> io::Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::Error::other(format!(
            "the process that syncs: {status}"
        ))),
    }
}

/// Flushes the file that is standard input to disk. Returns the error as `errno`, or 0; it is the exit status of the process.
#[must_use]
pub fn sync_file() -> u8 {
    let file = io::stdin().as_fd().try_clone_to_owned();
    let ended = file.and_then(|file| sync(&File::from(file)));
    let number = |error: io::Error| {
        let number = error
            .raw_os_error()
            .and_then(|number| u8::try_from(number).ok());
        number.unwrap_or(libc::EIO as u8)
    };
    ended.map_or_else(number, |()| 0)
}

fn sync(file: &File) -> io::Result<()> {
    match file.sync_data() {
        // Devices and some file systems do not support it.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_has_nothing_to_sync_is_no_error() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        sync(&null).unwrap();
    }

    #[test]
    fn what_is_flushed_already_has_its_outcome() {
        let failed = Err(io::Error::from_raw_os_error(libc::EIO));
        let mut sync = DiskSync(SyncMethod::Done(failed));
        assert!(sync.is_done());
        assert_eq!(sync.helper(), None);
        sync.wait().unwrap_err();
    }

    #[test]
    fn the_status_of_the_helper_is_the_error() {
        outcome(ExitStatus::from_raw(0)).unwrap();
        let error = outcome(ExitStatus::from_raw(libc::ENOSPC << 8)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        outcome(ExitStatus::from_raw(libc::SIGKILL)).unwrap_err();
    }
}
