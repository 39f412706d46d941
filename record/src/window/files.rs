//! The files that are made of a window.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use usdtrec_format::trace::FiredTrigger;

use super::shortened::ShortenedWindow;
use crate::triggers::TriggerCommand;

/// An empty file that gets its name when it is complete.
pub trait NewWindowFile: Send {
    /// Another handle of it.
    ///
    /// # Errors
    /// The system call's.
    fn handle(&mut self) -> io::Result<File>;

    /// Gives it its name, and returns this.
    ///
    /// # Errors
    /// The system call's.
    fn finish(self: Box<Self>) -> io::Result<PathBuf>;
}

/// For which trigger a file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFileTime {
    /// When the trigger fired, ns since 1970.
    pub wall_ns: i64,
    /// Whether it ends the recording, so that the file is the last one.
    pub ends: bool,
}

/// Makes empty files.
type Create = dyn FnMut(WindowFileTime) -> io::Result<Box<dyn NewWindowFile>> + Send;

/// Where the files of a window are written, and what runs then.
pub struct WindowFiles {
    pub(super) create: Box<Create>,
    pub(crate) command: Option<TriggerCommand>,
}

impl WindowFiles {
    /// Files that `create` makes. `command` runs for each when it is complete.
    pub fn new(
        create: impl FnMut(WindowFileTime) -> io::Result<Box<dyn NewWindowFile>> + Send + 'static,
        command: Option<TriggerCommand>,
    ) -> Self {
        Self {
            create: Box::new(create),
            command,
        }
    }
}

impl fmt::Debug for WindowFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowFiles")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// A file that was made of a window.
#[derive(Clone, Debug)]
pub struct WrittenWindow {
    /// Its path.
    pub path: PathBuf,
    /// What fired.
    pub fired: FiredTrigger,
    /// When, ns since 1970.
    pub wall_ns: i64,
    /// Number of samples in it.
    pub samples: u64,
    /// Its length, bytes.
    pub bytes: u64,
    /// The time of which it has all hits.
    pub window: Duration,
    /// Whether that is less than it is to have.
    pub shortened: Option<ShortenedWindow>,
    /// How long it took to write.
    pub took: Duration,
}
