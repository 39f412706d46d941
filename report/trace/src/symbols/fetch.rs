//! Debugging information that this host lacks.

use std::fmt::Debug;
use std::path::PathBuf;

use usdtrec_format::BuildId;

/// Fetches files that this host lacks.
pub trait FetchDebug: Debug + Send + Sync {
    /// The file with the debugging information and the symbols of a program with this build-id, which is on this host then; `None` if there is none.
    fn debug_info(&self, id: BuildId) -> Option<PathBuf>;
}
