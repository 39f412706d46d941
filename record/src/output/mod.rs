//! The files of a recording, and how they are written.

pub(super) mod added_events;
pub(super) mod event_names;
pub(super) mod files;
mod foreign_writes;
pub(super) mod outlet;
pub(super) mod sync;
pub(super) mod threads;
pub(super) mod watched_file;
pub(super) mod writer;
