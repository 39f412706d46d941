//! Triggers: hits, spans, signals and requests that have a recording write its last seconds to a file, or end.
//!
//! Hits are looked at when they have been read from the rings: the programs at the probes are those of any recording.

pub(super) mod command;
pub(super) mod pace;
mod peer;
pub(super) mod requests;
mod socket_folder;
mod span_matcher;
pub(super) mod watch;
