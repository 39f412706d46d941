//! Triggers: hits, spans, signals and requests that have a recording write its last seconds to a file, or end.
//!
//! Hits are looked at when they have been read from the rings: the programs at the probes are those of any recording.

mod command;
mod options;
mod pace;
mod requests;
mod socket_folder;
mod span_matcher;
mod watch;

pub(crate) use self::command::RunningCommands;
pub use self::command::{CommandFault, TriggerCommand};
pub use self::options::{Trigger, TriggerOptions, TriggerSubject};
pub(crate) use self::pace::{DueTrigger, TriggerPace};
pub use self::requests::{DumpError, Dumped, RunningRecorder, RunningRecorders};
pub(crate) use self::requests::{DumpRequest, DumpRequests, dead_sockets};
pub(crate) use self::watch::TriggerWatch;
