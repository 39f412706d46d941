//! What is attached in files that appear while recording, as the caller of a recording sets it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use usdtrec_attach::places::Places;
use usdtrec_attach::select::EventSelector;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_attach::select::refusal::Refusal;
use usdtrec_buildid_cache::MappedInode;
use usdtrec_format::schema::Schemas;

/// Adds to planned probes what only the caller knows.
pub type Completion = dyn Fn(&mut [PlannedProbe]) + Send + Sync;

/// What is attached in files that appear while recording.
#[derive(Clone)]
pub struct Following {
    /// Whether no files are followed, and the recorder drops all its capabilities when the probes are attached and verified.
    pub is_off: bool,
    /// The events, as they were selected at first.
    pub events: Vec<EventSelector>,
    /// Names and types of arguments.
    pub schemas: Arc<Schemas>,
    /// Attach even if a check of the file fails, or its pages cannot be kept in the page cache.
    pub force: bool,
    /// When the files that run were read, [ns since boot](Self::now).
    pub read_at: u64,
    /// Those files; `None` if only files at paths were read.
    pub read: Option<Arc<HashSet<MappedInode>>>,
    /// Whether a recording may begin without probes.
    pub waits: bool,
    /// What is attached in files that nobody named, from the selection on.
    pub places: Places,
    /// Probes of such files that were not selected because of what the files are.
    pub refused_files: Vec<Refusal>,
    /// Adds to planned probes what only the caller knows.
    pub complete: Arc<Completion>,
}

/// Nothing is attached.
impl Default for Following {
    fn default() -> Self {
        Self {
            is_off: false,
            events: Vec::new(),
            schemas: Arc::default(),
            force: false,
            read_at: 0,
            read: None,
            waits: false,
            places: Places::default(),
            refused_files: Vec::new(),
            complete: Arc::new(|_| {}),
        }
    }
}

impl Following {
    /// The names of the files that may be selected, if all patterns have a path; `None` for all files. The path of a process may be another one, by
    /// links to directories.
    pub(crate) fn file_names(&self) -> Option<HashSet<OsString>> {
        let name = |event: &EventSelector| Some(event.pattern.path()?.file_name()?.to_owned());
        self.events.iter().map(name).collect()
    }

    /// Whether any event has a filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.events.iter().any(|event| event.filter.is_some())
    }

    /// Time since boot, ns, within the precision of `/proc/PID/stat`.
    #[must_use]
    pub fn now() -> u64 {
        const PRECISION: Duration = Duration::from_millis(20);
        let now = clock_gettime(ClockId::Boottime);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
        now.saturating_sub(PRECISION).as_nanos() as u64
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following")
            .field("is_off", &self.is_off)
            .field("events", &self.events)
            .field("force", &self.force)
            .finish_non_exhaustive()
    }
}
