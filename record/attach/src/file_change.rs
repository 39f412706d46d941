//! What other processes do to files of a recording.

use std::fmt;
use std::path::{Path, PathBuf};

use usdtrec_format::escape::shown;

/// What another process did to a file while it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It was made shorter.
    Truncated {
        /// The file.
        path: PathBuf,
        /// The size that was found, bytes.
        left: u64,
        /// The size that had been written, bytes.
        written: u64,
    },
    /// Other bytes are in it than were written.
    Overwritten {
        /// The file.
        path: PathBuf,
    },
    /// Another process had it open for writing, and only a part of it could be compared with what was written.
    Unchecked {
        /// The file.
        path: PathBuf,
        /// So much is as it was written, bytes.
        checked: u64,
        /// The size that had been written, bytes.
        written: u64,
    },
    /// It has no name any more.
    Deleted {
        /// The name that it had.
        path: PathBuf,
    },
    /// It has another name.
    Renamed {
        /// The name that it had.
        path: PathBuf,
        /// The name that it has, if that is known.
        to: Option<PathBuf>,
    },
}

impl FileChange {
    /// Whether what was written is gone, or nobody knows where it is.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::Renamed { to: Some(_), .. } | Self::Unchecked { .. }
        )
    }

    /// The name that the file had.
    pub fn path(&self) -> &Path {
        let (Self::Truncated { path, .. }
        | Self::Overwritten { path }
        | Self::Unchecked { path, .. }
        | Self::Deleted { path }
        | Self::Renamed { path, .. }) = self;
        path
    }

    /// Where a file is after changes of several files.
    #[must_use]
    pub fn place(changes: &[Self], path: &Path) -> PathBuf {
        let absolute = std::path::absolute(path).ok();
        let place = changes.iter().find_map(|change| match change {
            Self::Renamed {
                path: from,
                to: Some(to),
            } if Some(from) == absolute.as_ref() => Some(to.clone()),
            _ => None,
        });
        place.unwrap_or_else(|| path.to_owned())
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHEN: &str = "while it was written";
        match self {
            Self::Truncated {
                path,
                left,
                written,
            } => write!(
                f,
                "{} was truncated to {left} of {written} bytes {WHEN}: events that were recorded before are not in it",
                shown(path)
            ),
            Self::Overwritten { path } => write!(
                f,
                "{} was overwritten {WHEN}: events that were recorded before may not be in it",
                shown(path)
            ),
            Self::Unchecked {
                path,
                checked,
                written,
            } => write!(
                f,
                "another process had {} open for writing {WHEN}: {checked} of {written} bytes were compared, and are unchanged",
                shown(path)
            ),
            Self::Deleted { path } => write!(
                f,
                "{} was deleted or replaced {WHEN}: the recording is lost",
                shown(path)
            ),
            Self::Renamed { path, to: Some(to) } => write!(
                f,
                "{} was renamed {WHEN}: the recording is in {}",
                shown(path),
                shown(to)
            ),
            Self::Renamed { path, to: None } => write!(
                f,
                "{} was replaced {WHEN}: the recording has another name, which is not known",
                shown(path)
            ),
        }
    }
}
