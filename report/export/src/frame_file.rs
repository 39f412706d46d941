//! The file of a frame.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use usdtrec_analysis::stacks::path::Step;
use usdtrec_analysis::stats::keys::stack::FrameName;
use usdtrec_format::escape::escape_bytes;

/// The file that a step of a stack is in; `None` if it is in none that is known.
pub(crate) fn file_of(step: &Step) -> Option<&Path> {
    match step {
        Step::Frame(FrameName::Function { file, .. } | FrameName::Offset { file, .. }) => {
            Some(file)
        }
        Step::Frame(FrameName::Script { file, .. }) => file.as_deref(),
        _ => None,
    }
}

/// A path as text, escaped if it is not UTF-8.
pub(crate) fn path_text(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) => text.into(),
        None => escape_bytes(path.as_os_str().as_bytes()),
    }
}
