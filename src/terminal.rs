//! Messages on stderr, exit statuses, and closed pipes, which are a normal end.

use std::fmt;
use std::io::{self, Write, stderr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use rustix::fs::fstat;
use usdtrec_format::PatternError;
use usdtrec_format::escape::{escape, shown};
#[cfg(feature = "record")]
use usdtrec_record::RecordError;

use crate::advice::explained;

/// Prints a message on stderr, of something that is missing or other than what was asked for.
pub(crate) fn say(message: impl fmt::Display) {
    print(Severity::Warning, message);
}

/// Prints a message on stderr, of what has begun or is done.
pub(crate) fn inform(message: impl fmt::Display) {
    print(Severity::Info, message);
}

/// Prints a message on stderr. All diagnostics use this function. Errors (a closed terminal) are ignored.
///
/// Names in a message can come from untrusted programs, files and traces: control characters, right-to-left overrides and invisible
/// characters are escaped. Lines after the first are indented, so that a name with a newline cannot imitate a message.
fn print(severity: Severity, message: impl fmt::Display) {
    let printed = printable(&message.to_string(), &severity.prefix());
    let _ = io::stderr().write_all(printed.as_bytes());
}

/// The lines of a message as [`print()`] prints them, each with a prefix.
fn printable(message: &str, prefix: &str) -> String {
    const INDENT: &str = "  ";
    let mut out = String::with_capacity(message.len() + 1);
    for (number, line) in message.split('\n').enumerate() {
        if number > 0 && line.is_empty() {
            continue;
        }
        out.push_str(prefix);
        if number > 0 && !line.starts_with(INDENT) {
            out.push_str(INDENT);
        }
        out.push_str(&escape(line));
        out.push('\n');
    }
    out
}

/// A usage error: exit status 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Usage(pub(crate) String);

impl Usage {
    /// Refuses options unless they are right.
    pub(crate) fn ensure(are_right: bool, message: impl Into<String>) -> Result<(), Self> {
        match are_right {
            true => Ok(()),
            false => Err(Self(message.into())),
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Prints an error with its causes. Returns the exit status: 0 for a closed pipe, 2 for a usage error, else 1.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    print(
        Severity::Error,
        format_args!("usdtrec: {}", explained(error.as_ref())),
    );
    if error.chain().any(is_usage) {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    #[cfg(feature = "record")]
    if let Some(RecordError::Usage(_)) = cause.downcast_ref() {
        return true;
    }
    cause.is::<Usage>() || cause.is::<PatternError>()
}

/// Whether the error is a closed pipe: the reader of the output ended, which is a normal end.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a warning about a file on stderr.
pub(crate) fn warn(path: &Path, error: &dyn fmt::Display) {
    say(format_args!("usdtrec: {}: {error}", shown(path)));
}

/// As syslog(3) numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// The command fails.
    Error = 3,
    /// Something is missing, or is not as it was asked for.
    Warning = 4,
    /// What has begun or is done.
    Info = 6,
}

impl Severity {
    /// What begins each line of a message on stderr, if that is the journal (sd-daemon(3)); else nothing.
    fn prefix(self) -> String {
        static IS_JOURNAL: LazyLock<bool> = LazyLock::new(is_journal);
        match *IS_JOURNAL {
            true => format!("<{}>", self as u8),
            false => String::new(),
        }
    }
}

/// Whether stderr is the stream of which `$JOURNAL_STREAM` has device and inode (systemd.exec(5)). A process that was started with stderr elsewhere has
/// the variable, too.
fn is_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM");
    let found = fstat(stderr()).map(|found| format!("{}:{}", found.st_dev, found.st_ino));
    named.is_ok_and(|named| found.is_ok_and(|found| found == named))
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn no_name_moves_the_cursor_or_begins_a_message() {
        assert_eq!(
            printable(
                "usdtrec: a\x1b[2J\x07\u{9b}m\u{202e}\r\nusdtrec: forged\n  advice",
                "<4>"
            ),
            concat!(
                r"<4>usdtrec: a\x1b[2J\x07\u{9b}m\u{202e}\r",
                "\n<4>  usdtrec: forged\n<4>  advice\n"
            )
        );
    }
}
