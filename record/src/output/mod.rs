//! The files of a recording, and how they are written.

pub(super) mod added_events;
pub(super) mod files;
pub(super) mod sync;
pub(super) mod watched_file;
pub(super) mod writer;
