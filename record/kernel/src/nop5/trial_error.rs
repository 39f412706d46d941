//! Why a trial could not be run to its end.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

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
