//! The files of a trace that is made of several: where damage is, and what is between them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use usdtrec_format::escape::shown;
use usdtrec_format::trace::{Damage, ProbeDifference, TimeRange, Trace};

/// The files that a trace is made of, in the order of their times; none of a single file.
#[derive(Clone, Debug, Default)]
pub struct JoinedFiles(Arc<[JoinedFile]>);

/// One of them.
#[derive(Clone, Debug)]
pub struct JoinedFile {
    /// Its path.
    pub path: PathBuf,
    /// Offset of its first byte in the concatenation of all files.
    pub start: u64,
    /// The time before it in which nothing was recorded, ns of the trace's clock; `None` if there is none, or it is not known.
    pub gap: Option<TimeRange>,
    /// Which probes it has that not all files before it have.
    pub probes: ProbeDifference,
}

/// Damage, and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedDamage {
    /// `None` of a trace that is a single file.
    pub file: Option<PathBuf>,
    /// The damage, at its offset in the file.
    pub damage: Damage,
}

impl JoinedFiles {
    pub(crate) fn of_trace(trace: &Trace) -> Self {
        let files = trace.parts().iter().map(|part| JoinedFile {
            path: part.path().to_owned(),
            start: part.bytes().start,
            gap: part.gap(),
            probes: part.probes().clone(),
        });
        Self(files.collect())
    }

    /// Each file.
    pub fn iter(&self) -> impl Iterator<Item = &JoinedFile> + Clone {
        self.0.iter()
    }

    /// The times between files in which nothing was recorded.
    pub fn gaps(&self) -> impl Iterator<Item = TimeRange> + Clone {
        self.iter().filter_map(|file| file.gap)
    }

    /// How much of a time nothing was recorded in, because it is between files, ns.
    pub fn unrecorded(&self, time: TimeRange) -> u64 {
        let parts = self.gaps().map(|gap| {
            let last = gap.last.min(time.last);
            last.saturating_sub(gap.first.max(time.first))
        });
        parts.fold(0, u64::saturating_add)
    }

    /// The path of the file with an offset.
    fn file_at(&self, offset: u64) -> Option<&JoinedFile> {
        let after = self.0.partition_point(|file| file.start <= offset);
        self.0.get(after.checked_sub(1)?)
    }

    /// Damage with its file.
    pub fn place(&self, damage: &Damage) -> PlacedDamage {
        let file = self.file_at(damage.offset);
        let start = file.map_or(0, |file| file.start);
        PlacedDamage {
            file: file.map(|file| file.path.clone()),
            damage: Damage::new(damage.offset - start, damage.kind.clone()),
        }
    }
}

impl JoinedFile {
    /// The file before it.
    pub fn before<'f>(&self, files: &'f JoinedFiles) -> Option<&'f Path> {
        let at = files.0.partition_point(|file| file.start < self.start);
        Some(&files.0.get(at.checked_sub(1)?)?.path)
    }
}

impl fmt::Display for PlacedDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", shown(file))?;
        }
        self.damage.fmt(f)
    }
}
