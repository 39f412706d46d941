//! A file that appeared, whose probes are part of the recording.

use std::ops::Range;

use super::search::SelectedFile;

/// A file whose probes are part of the recording.
#[derive(Debug)]
pub(super) struct AddedFile {
    pub(super) file: SelectedFile,
    /// Indexes of its probes.
    pub(super) probes: Range<usize>,
    /// Whether they are attached in all processes of the file, although only some are recorded.
    pub(super) is_everywhere: bool,
    /// When they were attached, ns of the trace's clock.
    pub(super) planted_at: u64,
}
