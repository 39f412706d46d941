//! How much a window holds, and the files that are made of it, which hold less if its records have reached its size.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use usdtrec_format::scaled::{duration, size};
use usdtrec_format::trace::{FiredTrigger, Shortfall, ShortfallKind};

use crate::triggers::command::TriggerCommand;

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

/// How much a window holds: what is older, or exceeds the bytes, falls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    time: Duration,
    bytes: usize,
}

impl WindowLimits {
    /// A window of this time, of which the packed records take so many bytes of memory at most.
    #[must_use]
    pub const fn new(time: Duration, bytes: usize) -> Self {
        Self { time, bytes }
    }

    /// Maximum memory, bytes.
    pub(super) const fn bytes(self) -> usize {
        self.bytes
    }

    /// The age, ns.
    pub(super) fn nanoseconds(self) -> u64 {
        self.time.as_nanos().try_into().unwrap_or(u64::MAX)
    }
}

/// Number of the shortfall in a file; those of the recording are numbered from 0.
const NUMBER: u32 = u32::MAX;

/// A window that holds less than its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortenedWindow {
    /// The time that it holds.
    pub held: Duration,
    /// The time that it is to hold.
    pub asked: Duration,
    /// Its maximum memory, bytes.
    pub bytes: usize,
}

impl ShortenedWindow {
    /// A window that holds this time; `None` if nothing fell out of it too early.
    pub(super) fn new(limits: WindowLimits, held: Duration, fell_out: u64) -> Option<Self> {
        let asked = Duration::from_nanos(limits.nanoseconds());
        (fell_out > 0 && held < asked).then_some(Self {
            held,
            asked,
            bytes: limits.bytes(),
        })
    }

    /// The shortfall for the trace.
    pub(super) fn shortfall(self) -> Shortfall {
        let Self { held, asked, bytes } = self;
        let ns = |time: Duration| duration(time.as_nanos() as f64);
        Shortfall {
            number: NUMBER,
            kind: ShortfallKind::ShortWindow,
            found: format!(
                "the file holds the last {} instead of {}: its records filled the {} of memory",
                ns(held),
                ns(asked),
                size(bytes as f64)
            ),
            effect: "earlier hits are not in it".to_owned(),
            ..Shortfall::default()
        }
    }
}
