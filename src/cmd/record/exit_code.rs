//! The exit status of a recording.

use std::process::{ExitCode, ExitStatus};

/// The exit status: the command's, as with perf; 0 without a command.
pub(in crate::cmd) fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        // Sent by `end_command` if the recording ends before the command.
        (None, Some(libc::SIGTERM)) => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    };
    status.map_or(ExitCode::SUCCESS, |status| ExitCode::from(code(status)))
}
