//! Probes that are not attached, with the reason.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::{CheckError, ElfError};
use usdtrec_format::BuildId;
use usdtrec_format::escape::{escape, shown};

use crate::host::page_reading::NotCached;
use crate::nop5::verdict::Nop5Danger;

/// Why probes are not attached.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// A check of the file or of a site failed.
    #[error(transparent)]
    Check(Arc<CheckError>),
    /// The indexed file cannot be opened.
    #[error(transparent)]
    File(Arc<ElfError>),
    /// The indexed file does not exist any more.
    #[error("the file is no longer there")]
    Gone,
    /// The site is a 5-byte nop, and this kernel handles breakpoints there unsafely.
    #[error(
        "the site is a 5-byte nop (address {pc:#x}), and {danger}\n  \
         build the program with a 1-byte nop there, as sys/sdt.h does, or use another kernel (7.2 or later, or before 6.18)"
    )]
    Nop5 {
        /// Address of the site.
        pc: u64,
        /// Why it is not safe, by a trial on a process of our own.
        danger: Nop5Danger,
    },
    /// The instruction at the site has a prefix at which the kernel plants no probe.
    #[error(
        "the instruction at {pc:#x} has the prefix {prefix:#04x}, and the kernel plants no probe at such instructions, in any process\n  \
         build the program with a 1-byte nop there, as sys/sdt.h does"
    )]
    Prefix {
        /// Address of the site.
        pc: u64,
        /// Prefix: a segment other than `fs` and `gs`, or `lock`.
        prefix: u8,
    },
    /// The site has no file offset.
    #[error("no segment of the file has the site")]
    NoSegment,
    /// The uprobe PMU takes 32 bits of a semaphore's file offset.
    #[error(
        "the semaphore's file offset {0:#x} exceeds 4 GiB, which events of the uprobe PMU cannot have; \
         uprobe_multi links (Linux 6.6 and later) and tracefs events can"
    )]
    SemaphoreOffset(u64),
    /// The file is of another machine.
    #[error("the kernel of this machine plants no probes in programs of that architecture")]
    Architecture,
    /// The digits of a pattern are those of several builds.
    #[error("the build-ids {recorded}, which is recorded, and {found} begin with the digits of {pattern}", pattern = escape(.pattern))]
    SeveralBuilds {
        /// The pattern.
        pattern: String,
        /// The build that is recorded.
        recorded: BuildId,
        /// That of the file.
        found: BuildId,
    },
    /// A page that the kernel reads when it attaches cannot be kept in the page cache.
    #[error(
        "{0}, for which the kernel would wait when it attaches, and each process of this host that forks"
    )]
    NotCached(NotCached),
    /// The probe has no site.
    #[error("the probe has no site")]
    NoSite,
}

impl From<CheckError> for RefusalReason {
    fn from(error: CheckError) -> Self {
        Self::Check(Arc::new(error))
    }
}

impl From<ElfError> for RefusalReason {
    fn from(error: ElfError) -> Self {
        Self::File(Arc::new(error))
    }
}

/// Probes of a file that are not attached for one reason.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// Reason.
    pub reason: RefusalReason,
    /// Events of the probes, without duplicates; at least one.
    pub events: Vec<String>,
}

impl Refusal {
    /// A refusal of one probe.
    pub(crate) fn new(event: String, path: &Path, reason: RefusalReason) -> Self {
        Self {
            path: path.to_owned(),
            reason,
            events: vec![event],
        }
    }

    /// Whether the file was indexed and is not there any more.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.reason {
            RefusalReason::Gone => true,
            RefusalReason::File(error) => {
                matches!(&**error, ElfError::Io(error) if error.kind() == ErrorKind::NotFound)
            }
            _ => false,
        }
    }

    /// Adds this refusal to others, merging it with one of the same file and reason.
    pub(crate) fn add_to(self, all: &mut Vec<Self>) {
        let reason = self.reason.to_string();
        let alike =
            |known: &&mut Self| known.path == self.path && known.reason.to_string() == reason;
        let Some(known) = all.iter_mut().find(alike) else {
            return all.push(self);
        };
        for event in self.events {
            if !known.events.contains(&event) {
                known.events.push(event);
            }
        }
    }
}

/// Messages, one per line.
pub(crate) fn lines(messages: &[impl fmt::Display]) -> String {
    let lines = messages.iter().map(ToString::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

/// A message with at most the first three events.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_LISTED: usize = 3;
        let (path, reason) = (shown(&self.path), &self.reason);
        if let [event] = self.events.as_slice() {
            return write!(f, "not attaching {} in {path}: {reason}", escape(event));
        }
        let named = self.events.iter().take(MAX_LISTED).map(String::as_str);
        let named: Vec<&str> = named.collect();
        let more = if self.events.len() > MAX_LISTED {
            ", …"
        } else {
            ""
        };
        write!(
            f,
            "not attaching {} probes in {path} ({}{more}): {reason}",
            self.events.len(),
            escape(&named.join(", ")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_one_file_and_reason_are_merged() {
        let mut all = Vec::new();
        for (event, reason) in [
            ("a:a", RefusalReason::Gone),
            ("a:b", RefusalReason::Gone),
            ("a:a", RefusalReason::Gone),
            ("a:a", RefusalReason::NoSite),
        ] {
            Refusal::new(event.to_owned(), Path::new("/bin/x"), reason).add_to(&mut all);
        }
        let messages: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "not attaching 2 probes in /bin/x (a:a, a:b): the file is no longer there",
                "not attaching a:a in /bin/x: the probe has no site",
            ]
        );
        let many = Refusal {
            events: (0..12).map(|number| format!("a:{number}")).collect(),
            ..all.remove(0)
        };
        assert_eq!(
            many.to_string(),
            "not attaching 12 probes in /bin/x (a:0, a:1, a:2, …): the file is no longer there"
        );
    }
}
