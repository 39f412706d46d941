//! What a recording says of the semaphores that it incremented itself.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use usdtrec_format::escape::shown;

/// Maximum number of processes that are named.
pub(super) const NAMED: usize = 6;

/// A process that ran for a while before its semaphores were incremented: hits of that time are missing, and not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemaphoreGap {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// The file.
    pub file: PathBuf,
    /// Time from the mapping of the file's code until its semaphores were incremented, ns. The program began to run in this time.
    pub ns: u64,
}

/// A semaphore that is not 0 after the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSemaphore {
    /// Process id.
    pub pid: u32,
    /// The file.
    pub file: PathBuf,
    /// Link-time address of the semaphore.
    pub address: u64,
    /// Its value.
    pub value: u16,
}

/// What became of the semaphores that the kernel counts wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SemaphoreOutcome {
    /// Number of times that the semaphores of a file were incremented in a process.
    pub raised: u64,
    /// Number of these after the process had begun to run with the file.
    pub late: u64,
    /// The processes with the longest gaps, the longest first; at most 6.
    pub gaps: Vec<SemaphoreGap>,
    /// Number of processes that mapped such a file and whose semaphores were not incremented, because they ended before, or could not be
    /// read.
    pub unreached: u64,
    /// Semaphores that are not 0 after the recording; at most 6.
    pub left: Vec<LeftSemaphore>,
}

impl SemaphoreOutcome {
    /// Adds an increment, with its gap.
    pub(super) fn add(&mut self, gap: Option<SemaphoreGap>) {
        self.raised += 1;
        let Some(gap) = gap else { return };
        self.late += 1;
        let at = self.gaps.partition_point(|known| known.ns >= gap.ns);
        self.gaps.insert(at, gap);
        self.gaps.truncate(NAMED);
    }

    /// Messages, each without a trailing period; empty if nothing is missing.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        if !self.gaps.is_empty() {
            let gaps: Vec<String> = self.gaps.iter().map(ToString::to_string).collect();
            let more = match self.late.saturating_sub(gaps.len() as u64) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            messages.push(format!(
                "the kernel cannot count the semaphores of files whose segments share pages (lld, mold), so that they were incremented by \
                 usdtrec; hits before that are missing: {}{more}",
                gaps.join(", ")
            ));
        }
        if self.unreached > 0 {
            messages.push(format!(
                "{} ended, or could not be read, before the semaphores of a file of lld or mold were incremented: hits there are missing, and \
                 not counted as lost",
                match self.unreached {
                    1 => "a process".to_owned(),
                    number => format!("{number} processes"),
                }
            ));
        }
        messages.extend(self.left.iter().map(ToString::to_string));
        messages
    }
}

impl fmt::Display for SemaphoreGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            comm,
            file,
            ns,
        } = self;
        write!(
            f,
            "process {pid} ({}), {}, {:.2} ms",
            comm.escape_debug(),
            shown(file),
            Duration::from_nanos(*ns).as_secs_f64() * 1e3
        )
    }
}

impl fmt::Display for LeftSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            file,
            address,
            value,
        } = self;
        write!(
            f,
            "the semaphore at {address:#x} of {} is still {value} in process {pid}: another tracer uses it, or it could not be decremented",
            shown(file)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gaps_are_named() {
        let mut outcome = SemaphoreOutcome::default();
        assert!(outcome.messages().is_empty());
        outcome.add(None);
        for ns in [3, 1, 9, 2, 7, 5, 8] {
            outcome.add(Some(SemaphoreGap {
                pid: ns as u32,
                comm: "a\nb".to_owned(),
                file: PathBuf::from("/f"),
                ns: ns * 1_000_000,
            }));
        }
        assert_eq!((outcome.raised, outcome.late), (8, 7));
        let pids: Vec<u32> = outcome.gaps.iter().map(|gap| gap.pid).collect();
        assert_eq!(pids, [9, 8, 7, 5, 3, 2]);
        let messages = outcome.messages();
        assert!(
            messages[0].ends_with("process 2 (a\\nb), /f, 2.00 ms, and 1 more"),
            "{messages:?}"
        );
    }
}
