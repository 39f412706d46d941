//! The tasks for which a recorder starts this program again. They are no verbs: the command line of users knows nothing of them.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use usdtrec_buildid_cache::served::{Handle, Patience, Reader, SERVE_VERB};
use usdtrec_record::{GUARD_VERB, RELEASE_VERB, SYNC_VERB, TRIAL_VERB};

/// A task of a process that a recorder started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// Remove a recorder's tracefs events after it has ended.
    GuardTracefs {
        /// Group of the events.
        group: String,
    },
    /// Close a recorder's descriptors, which can take the kernel seconds.
    ReleaseProbes {
        /// Number of processes that close them at a time.
        at_once: usize,
        /// Number of the descriptor that holds them as well.
        keeper: Option<i32>,
    },
    /// Flush a recorded file to disk with fdatasync, which may block for ever.
    SyncFile,
    /// Test whether breakpoints on 5-byte nops are safe on this kernel.
    TryNop5,
    /// Open and read files whose file systems may not answer.
    ServeFiles,
}

impl Helper {
    /// The task that the arguments of this process name.
    pub(crate) fn from_command_line() -> Option<Self> {
        let words = std::env::args_os().skip(1).map(OsString::into_string);
        let words: Vec<String> = words.collect::<Result<_, _>>().ok()?;
        Self::named(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn named(words: &[&str]) -> Option<Self> {
        Some(match *words {
            [GUARD_VERB, group] => Self::GuardTracefs {
                group: group.to_owned(),
            },
            [RELEASE_VERB, at_once] => Self::ReleaseProbes {
                at_once: at_once.parse().ok()?,
                keeper: None,
            },
            [RELEASE_VERB, at_once, keeper] => Self::ReleaseProbes {
                at_once: at_once.parse().ok()?,
                keeper: Some(keeper.parse().ok()?),
            },
            [SYNC_VERB] => Self::SyncFile,
            [TRIAL_VERB] => Self::TryNop5,
            [SERVE_VERB] => Self::ServeFiles,
            _ => return None,
        })
    }

    /// Does the task.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::GuardTracefs { group } => usdtrec_record::guard(group)?,
            Self::ReleaseProbes { at_once, keeper } => usdtrec_record::release(*at_once, *keeper)?,
            Self::SyncFile => return Ok(ExitCode::from(usdtrec_record::sync_file())),
            Self::TryNop5 => usdtrec_record::trial()?,
            Self::ServeFiles => usdtrec_record::serve_files()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Maximum number of bytes of a file that is copied to be read.
const MAX_COPIED: u64 = 1 << 30;

/// Opens a file that symbols are read from. One that is not known to be local is copied by a helper.
pub(crate) fn open_file(path: &Path) -> Option<File> {
    let handle = Handle::of_path(path, Reader::of_unknown(Patience::Short)).ok()?;
    handle.open().ok()?.local_copy(MAX_COPIED).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_by_all_of_their_words() {
        assert_eq!(
            Helper::named(&[RELEASE_VERB, "4", "7"]),
            Some(Helper::ReleaseProbes {
                at_once: 4,
                keeper: Some(7)
            })
        );
        assert_eq!(Helper::named(&[SYNC_VERB]), Some(Helper::SyncFile));
        for words in [
            &[][..],
            &["record"],
            &[GUARD_VERB],
            &[RELEASE_VERB, "many"],
            &[SYNC_VERB, "--help"],
        ] {
            assert_eq!(Helper::named(words), None, "{words:?}");
        }
    }
}
