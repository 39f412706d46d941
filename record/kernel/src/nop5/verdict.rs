//! The verdict on 5-byte nops, also as the line that the process of the trial prints.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// Whether 5-byte nops are safe on this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel does not replace them by calls.
    NoCalls,
    /// A trial found a trap without side effects.
    Sound,
    /// They are not safe, or that is not known.
    Unsound(Nop5Danger),
}

/// Why no probe is attached to 5-byte nops on this kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Nop5Danger {
    /// The kernel replaces the breakpoint by a call.
    #[error(
        "this kernel replaces a breakpoint there by a call: programs that fork after a hit crash, and some kernels crash when the \
         recorder is killed (Linux 6.18 to 7.1)"
    )]
    Call,
    /// The trial found side effects.
    #[error("a test on this kernel failed: {0}")]
    Faults(TrialFaults),
    /// The trial could not be run to its end.
    #[error(
        "cannot test whether this kernel replaces it by a call, which crashes programs that fork: {0}"
    )]
    Untested(TrialError),
}

/// What was wrong in a trial. At least one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrialFaults {
    /// A forked child died at its hit.
    pub child: bool,
    /// Hits were not counted right.
    pub count: bool,
    /// The nop was not restored.
    pub nop: bool,
    /// A child that was forked after the end died.
    pub late_child: bool,
}

impl TrialFaults {
    /// Each fault with its word in the line of the trial and its description.
    const fn all(&self) -> [(bool, &'static str, &'static str); 4] {
        [
            (self.child, "child", "a forked child dies at its hit"),
            (self.count, "count", "hits are not counted right"),
            (self.nop, "nop", "the nop is not restored"),
            (self.late_child, "late-child", "a child dies after the end"),
        ]
    }
}

impl fmt::Display for TrialFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.all().into_iter().filter(|(is_so, ..)| *is_so);
        let found: Vec<&str> = found.map(|(_, _, description)| description).collect();
        f.write_str(&found.join(", "))
    }
}

impl Verdict {
    /// The line that the process of the trial prints.
    pub fn line(&self) -> String {
        match self {
            Self::NoCalls | Self::Sound => "sound".to_owned(),
            Self::Unsound(Nop5Danger::Call) => "call".to_owned(),
            Self::Unsound(Nop5Danger::Faults(faults)) => {
                let found = faults.all().into_iter().filter(|(is_so, ..)| *is_so);
                let words: Vec<&str> = found.map(|(_, word, _)| word).collect();
                format!("faults {}", words.join(" "))
            }
            Self::Unsound(Nop5Danger::Untested(error)) => format!("untested {}", error.words()),
        }
    }

    /// The verdict of a line. Nothing but `sound` means that 5-byte nops are safe.
    pub fn of_line(line: &str) -> Self {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let has = |word| rest.split(' ').any(|found| found == word);
        let faults = TrialFaults {
            child: has("child"),
            count: has("count"),
            nop: has("nop"),
            late_child: has("late-child"),
        };
        match kind {
            "sound" if rest.is_empty() => Self::Sound,
            "call" => Self::Unsound(Nop5Danger::Call),
            "faults" if faults != TrialFaults::default() => {
                Self::Unsound(Nop5Danger::Faults(faults))
            }
            _ => {
                let error = (kind == "untested").then(|| TrialError::of_words(rest));
                let error = error.flatten();
                let error = error.unwrap_or_else(|| TrialError::Line(line.to_owned()));
                Self::Unsound(Nop5Danger::Untested(error))
            }
        }
    }
}

/// Why a trial could not be run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrialError {
    /// A system call failed, with this error number; `None` if the error has no number.
    #[error("{}", system(*.0))]
    System(Option<i32>),
    /// The kernel replaced the nop by this byte, which begins neither a breakpoint nor a call.
    #[error("expected a breakpoint (0xcc), found {0:#x}")]
    Code(u8),
    /// The event has no count.
    #[error("expected a count of hits, found fewer than 8 bytes")]
    NoCount,
    /// sysfs has no number for the uprobe PMU.
    #[error("expected a number in /sys/bus/event_source/devices/uprobe/type")]
    Pmu,
    /// The process of the trial ended with an error.
    #[error("the trial ended with {0}")]
    Ended(ExitStatus),
    /// The process of the trial took longer than this.
    #[error("no outcome after {} s", .0.as_secs())]
    Timeout(Duration),
    /// The process of the trial printed another line.
    #[error("expected the trial's verdict, found {0:?}")]
    Line(String),
}

impl TrialError {
    /// The words for it in the line that the process of the trial prints, which has no words for what happens to the process itself.
    pub fn words(&self) -> String {
        match self {
            Self::System(Some(number)) => format!("system {number}"),
            Self::Code(byte) => format!("code {byte}"),
            Self::NoCount => "count".to_owned(),
            Self::Pmu => "pmu".to_owned(),
            Self::System(None) | Self::Ended(_) | Self::Timeout(_) | Self::Line(_) => {
                "system".to_owned()
            }
        }
    }

    /// The error of these words; `None` for other words.
    pub fn of_words(words: &str) -> Option<Self> {
        let (kind, number) = words.split_once(' ').unwrap_or((words, ""));
        match (kind, number) {
            ("system", "") => Some(Self::System(None)),
            ("system", number) => Some(Self::System(Some(number.parse().ok()?))),
            ("code", byte) => Some(Self::Code(byte.parse().ok()?)),
            ("count", "") => Some(Self::NoCount),
            ("pmu", "") => Some(Self::Pmu),
            _ => None,
        }
    }
}

impl From<io::Error> for TrialError {
    fn from(error: io::Error) -> Self {
        Self::System(error.raw_os_error())
    }
}

fn system(number: Option<i32>) -> String {
    match number {
        Some(number) => io::Error::from_raw_os_error(number).to_string(),
        None => "a system call failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_same_after_its_line() {
        let faults = TrialFaults {
            nop: true,
            late_child: true,
            ..TrialFaults::default()
        };
        for verdict in [
            Verdict::Sound,
            Verdict::Unsound(Nop5Danger::Call),
            Verdict::Unsound(Nop5Danger::Faults(faults)),
            Verdict::Unsound(Nop5Danger::Untested(TrialError::System(Some(2)))),
            Verdict::Unsound(Nop5Danger::Untested(TrialError::System(None))),
            Verdict::Unsound(Nop5Danger::Untested(TrialError::Code(0x90))),
            Verdict::Unsound(Nop5Danger::Untested(TrialError::NoCount)),
            Verdict::Unsound(Nop5Danger::Untested(TrialError::Pmu)),
        ] {
            assert_eq!(Verdict::of_line(&verdict.line()), verdict);
        }
        assert_eq!(
            faults.to_string(),
            "the nop is not restored, a child dies after the end"
        );
    }

    #[test]
    fn other_lines_are_not_sound() {
        for line in [
            "",
            "sound?",
            "sound enough",
            "faults",
            "faults none",
            "untested",
            "untested code x",
        ] {
            let error = TrialError::Line(line.to_owned());
            let verdict = Verdict::Unsound(Nop5Danger::Untested(error));
            assert_eq!(Verdict::of_line(line), verdict);
        }
    }
}
