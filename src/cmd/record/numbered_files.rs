//! The files of a recording that writes several.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::mutex::locked;

/// Paths of several numbered files that are kept, the newest last, shared with the thread that creates them.
#[derive(Clone, Default)]
pub(super) struct NumberedFiles(Arc<Mutex<Vec<PathBuf>>>);

impl NumberedFiles {
    /// Adds a file.
    pub(super) fn add(&self, path: PathBuf) {
        locked(&self.0).push(path);
    }

    /// Forgets a file.
    pub(super) fn forget(&self, path: &Path) {
        locked(&self.0).retain(|known| known != path);
    }

    /// The path of the newest; `None` without `--switch-output`.
    pub(super) fn last(&self) -> Option<PathBuf> {
        locked(&self.0).last().cloned()
    }

    /// All files, the newest first.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        locked(&self.0).iter().rev().cloned().collect()
    }
}
