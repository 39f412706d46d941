//! Bringing a finished file to the disk.

use std::fs::File;
use std::io;
use std::thread::JoinHandle;

use usdtrec_format::trace::WriteError;

use crate::RecordError;

/// A file that is being brought to the disk, beside the recording: until it is there, a power loss can cost parts of it.
#[derive(Debug)]
pub(crate) struct DiskSync(JoinHandle<io::Result<()>>);

impl DiskSync {
    /// Begins, in a thread of its own: a disk may take seconds, and rings fill in less.
    pub(crate) fn start(file: File) -> Self {
        Self(std::thread::spawn(move || sync(&file)))
    }

    /// Whether waiting for it takes no time.
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Result<(), RecordError> {
        let ended = self.0.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("the thread that syncs ended")));
        ended.map_err(|source| WriteError::Sync(source).into())
    }
}

fn sync(file: &File) -> io::Result<()> {
    match file.sync_data() {
        // Devices and some file systems have nothing to sync.
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
    use super::*;

    #[test]
    fn what_has_nothing_to_sync_is_no_error() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        DiskSync::start(null).wait().unwrap();
    }
}
