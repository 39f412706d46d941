//! Probes that are not attached, with the reason.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::{CheckError, ElfError};
use usdtrec_buildid_cache::suggest;
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::trace::LimitExceeded;
use usdtrec_format::{Binary, BuildId, Pattern};
use usdtrec_kernel::host::page_reading::NotCached;
use usdtrec_kernel::nop5::Nop5Danger;

use crate::places::Exceeded;

/// Maximum number of reasons of one file that are distinguished. Any file can have as many as it has sites.
const MAX_REASONS: usize = 8;
/// Maximum number of bytes of a name that messages show.
pub const NAME_BYTES: usize = 200;

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
    /// The instruction at the site has a prefix to which the kernel attaches no probe.
    #[error(
        "the instruction at {pc:#x} has the prefix {prefix:#04x}, and the kernel attaches no probe to such instructions, in any process\n  \
         build the program with a 1-byte nop there, as sys/sdt.h does"
    )]
    Prefix {
        /// Address of the site.
        pc: u64,
        /// Prefix: a segment other than `fs` and `gs`, or `lock`.
        prefix: u8,
    },
    /// The program copies its code when it starts.
    #[error(
        "the program copies its code to huge pages when it starts (BOLT's hugify, by the symbol {}); with breakpoints in the copy it would end by SIGTRAP",
        escape(.symbol)
    )]
    CopiesCode {
        /// The symbol that says so.
        symbol: String,
    },
    /// The site has no file offset.
    #[error("no segment of the file has the site")]
    NoSegment,
    /// The uprobe PMU takes 32 bits of a semaphore's file offset.
    #[error(
        "the semaphore's file offset {0:#x} exceeds 4 GiB, which events of the uprobe PMU do not support; \
         uprobe_multi links (Linux 6.6 and later) and tracefs events do"
    )]
    SemaphoreOffset(u64),
    /// The file is of another machine.
    #[error("this kernel attaches no probes to programs of that architecture")]
    Architecture,
    /// The digits of a pattern are those of several builds.
    #[error("the build-ids {recorded}, which is recorded, and {found} begin with the digits of {pattern}", pattern = escape(.pattern))]
    SeveralBuilds {
        /// The pattern.
        pattern: String,
        /// The build that is recorded.
        recorded: Box<BuildId>,
        /// The build-id of the file.
        found: Box<BuildId>,
    },
    /// A trace cannot have its events.
    #[error("{0}")]
    NoRoom(LimitExceeded),
    /// A page that the kernel reads when it attaches cannot be kept in the page cache.
    #[error("{0}: attaching would wait for it, and so would each process of this host that forks")]
    NotCached(NotCached),
    /// The probe has no site.
    #[error("the probe has no site")]
    NoSite,
    /// The name of the event does not fit into the records of a trace.
    #[error(
        "the event's name has {bytes} bytes (expected at most {most}, which fit into a record of the trace)"
    )]
    LongName {
        /// Length of the name, bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The format of the event, for stock perf, does not fit into a record of a trace.
    #[error(
        "the names and types of the event's arguments take about {bytes} bytes (expected at most {most}, which fit into a record of the trace)"
    )]
    LongFormat {
        /// Length of the format, bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// Too many probes are at one instruction.
    #[error(
        "more than {most} selected probes are at the instruction at {pc:#x}, and each hit would be an event of each"
    )]
    SharedInstruction {
        /// Address of the instruction.
        pc: u64,
        /// The most.
        most: usize,
    },
    /// The file has more selected probes than one may have that was not named.
    #[error(
        "the file has {has} selected {what} (expected at most {most}, unless the pattern has its path)"
    )]
    LargeFile {
        /// How many it has.
        has: usize,
        /// Of what.
        what: &'static str,
        /// The most.
        most: usize,
    },
    /// The file has more notes than are read of one that was not named.
    #[error(
        "its notes have {bytes} bytes (expected at most {most}, unless the pattern has the file's path)"
    )]
    LargeNotes {
        /// Size of its notes, bytes.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// Too many sites would be attached for the processes that map the file.
    #[error("{0}")]
    Places(Exceeded),
    /// The event cannot be recorded as it was asked for.
    #[error("{0}")]
    Unfit(String),
    /// Further reasons of a file that are not distinguished.
    #[error("for reasons like those of other probes of the file")]
    Others,
}

impl RefusalReason {
    /// Whether it is about the whole file, of which not all probes may be known.
    pub const fn is_of_file(&self) -> bool {
        matches!(
            self,
            Self::LargeFile { .. } | Self::LargeNotes { .. } | Self::Places(_)
        )
    }
}

/// The beginning of a text that a file has chosen.
pub fn shortened(name: &str, most: usize) -> Cow<'_, str> {
    match name.len() <= most {
        true => name.into(),
        false => {
            let mut ends = (0..=most).rev();
            let end = ends.find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            format!("{}…", &name[..end]).into()
        }
    }
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
    pub fn new(event: String, path: &Path, reason: RefusalReason) -> Self {
        Self {
            path: path.to_owned(),
            reason,
            events: vec![event],
        }
    }

    /// Whether the file was indexed and is not there any more, or is another one now.
    pub fn is_stale(&self) -> bool {
        match &self.reason {
            RefusalReason::Gone => true,
            RefusalReason::Check(error) => matches!(**error, CheckError::Changed { .. }),
            RefusalReason::File(error) => {
                matches!(&**error, ElfError::Io(error) if error.kind() == ErrorKind::NotFound)
            }
            _ => false,
        }
    }
}

/// Refusals, each of one file and reason.
#[derive(Debug, Default)]
pub struct Refusals {
    all: Vec<Refusal>,
    /// Indexes of the refusals by the reasons, of each file.
    reasons: HashMap<PathBuf, HashMap<String, usize>>,
    /// Index and event of all.
    events: HashSet<(usize, String)>,
}

impl Refusals {
    /// Adds a refusal, merging it with one of the same file and reason.
    pub fn add(&mut self, refusal: Refusal) {
        let Refusal {
            path,
            reason,
            events,
        } = refusal;
        let mut text = reason.to_string();
        let reasons = self.reasons.entry(path.clone()).or_default();
        let is_one_more = !reasons.contains_key(&text) && reasons.len() >= MAX_REASONS;
        let reason = if is_one_more {
            text = RefusalReason::Others.to_string();
            RefusalReason::Others
        } else {
            reason
        };
        let next = self.all.len();
        let at = *reasons.entry(text).or_insert(next);
        if at == next {
            self.all.push(Refusal {
                path,
                reason,
                events: Vec::new(),
            });
        }
        for event in events {
            if self.events.insert((at, event.clone())) {
                self.all[at].events.push(event);
            }
        }
    }

    /// All refusals.
    pub fn into_vec(self) -> Vec<Refusal> {
        self.all
    }
}

impl FromIterator<Refusal> for Refusals {
    fn from_iter<I: IntoIterator<Item = Refusal>>(refusals: I) -> Self {
        let mut all = Self::default();
        refusals.into_iter().for_each(|refusal| all.add(refusal));
        all
    }
}

/// Messages, one per line.
pub fn lines(messages: &[impl fmt::Display]) -> String {
    const MAX_LINES: usize = 24;
    let lines = messages.iter().map(ToString::to_string).take(MAX_LINES);
    let mut lines: Vec<String> = lines.collect();
    if let more @ 1.. = messages.len().saturating_sub(MAX_LINES) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// A message with at most the first three events.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_LISTED: usize = 3;
        let (path, reason) = (shown(&self.path), &self.reason);
        if let [event] = self.events.as_slice() {
            let event = shortened(event, NAME_BYTES);
            return write!(f, "not attaching {} in {path}: {reason}", escape(&event));
        }
        let named = self.events.iter().take(MAX_LISTED);
        let named: Vec<Cow<'_, str>> = named.map(|event| shortened(event, NAME_BYTES)).collect();
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

/// A pattern that selects no probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProbe {
    /// The pattern without its path.
    pub pattern: String,
    /// Where probes were looked for.
    pub searched: Searched,
    /// Events with similar names, at most three, the most similar one first.
    pub closest: Vec<String>,
}

/// Where probes were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched {
    /// In one file.
    File(PathBuf),
    /// In the indexed files.
    Index,
    /// In the files that the processes of this host run, and in the indexed files.
    Host,
    /// In the files that traced processes map, and in the indexed files.
    Processes(Vec<u32>),
}

impl NoProbe {
    /// The error for a pattern, with similar names in the files that were searched.
    pub fn new<'a>(
        pattern: &Pattern,
        processes: &[u32],
        is_host: bool,
        binaries: impl Iterator<Item = &'a Binary>,
    ) -> Self {
        Self {
            pattern: pattern.text().to_owned(),
            searched: match (pattern.path(), processes) {
                (Some(path), _) => Searched::File(Path::to_owned(path)),
                (None, []) if is_host => Searched::Host,
                (None, []) => Searched::Index,
                (None, processes) => Searched::Processes(processes.to_vec()),
            },
            closest: suggest(binaries, pattern, 3),
        }
    }
}

impl NoProbe {
    /// A message that a file with probes that match is waited for.
    #[must_use]
    pub fn waiting(&self) -> String {
        let probes = format!("probes that match '{}'", self.pattern);
        let message = match &self.searched {
            Searched::Processes(pids) if pids.len() == 1 => {
                format!("process {} maps no file with {probes} now", pids[0])
            }
            Searched::Processes(_) => format!("the traced processes map no file with {probes} now"),
            Searched::Index => format!("the command's program has no {probes}"),
            Searched::Host | Searched::File(_) => {
                format!("no process maps a file with {probes} now")
            }
        };
        let closest = match &*self.closest {
            [] => String::new(),
            closest => format!("\n  closest: {}", closest.join(", ")),
        };
        format!("{message}: waiting{closest}")
    }
}

impl std::error::Error for NoProbe {}

impl fmt::Display for NoProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.pattern;
        match &self.searched {
            Searched::File(path) => write!(f, "{} has no probe {text}", shown(path))?,
            Searched::Index => write!(f, "no indexed binary has a probe {text}")?,
            Searched::Host => write!(
                f,
                "no process runs a file with a probe {text} now, and no indexed binary has one"
            )?,
            Searched::Processes(pids) => {
                match pids.as_slice() {
                    [pid] => write!(f, "process {pid} maps")?,
                    _ => f.write_str("the traced processes map")?,
                }
                write!(
                    f,
                    " no file with a probe {text} now, and no indexed binary has one"
                )?;
            }
        }
        if !self.closest.is_empty() {
            write!(f, "\n  closest: {}", self.closest.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_one_file_and_reason_are_merged() {
        let mut all = Refusals::default();
        for (event, reason) in [
            ("a:a", RefusalReason::Gone),
            ("a:b", RefusalReason::Gone),
            ("a:a", RefusalReason::Gone),
            ("a:a", RefusalReason::NoSite),
        ] {
            all.add(Refusal::new(event.to_owned(), Path::new("/bin/x"), reason));
        }
        let mut all = all.into_vec();
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

    /// A file may have a reason for each of its sites, and names of any length.
    #[test]
    fn the_reasons_of_a_file_are_bounded() {
        let mut all = Refusals::default();
        for site in 0..10_000 {
            let reason = RefusalReason::Prefix {
                pc: site,
                prefix: 0x2e,
            };
            let event = format!("a:{}{site}", "x".repeat(9000));
            all.add(Refusal::new(event, Path::new("/bin/x"), reason));
        }
        let all = all.into_vec();
        assert_eq!(all.len(), MAX_REASONS + 1);
        assert_eq!(
            all.iter().map(|one| one.events.len()).sum::<usize>(),
            10_000
        );
        let last = all.last().unwrap().to_string();
        assert!(last.len() < 1000, "{last}");
        assert!(
            last.ends_with("for reasons like those of other probes of the file"),
            "{last}"
        );
    }
}
