//! How important a message is, for the journal of systemd.

use std::io::stderr;
use std::sync::LazyLock;

use rustix::fs::fstat;

/// As syslog(3) numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The command fails.
    Error = 3,
    /// Something is missing, or is not as it was asked for.
    Warning = 4,
    /// What has begun or is done.
    Info = 6,
}

impl Severity {
    /// What begins each line of a message on stderr, if that is the journal (sd-daemon(3)); else nothing.
    pub(crate) fn prefix(self) -> String {
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
