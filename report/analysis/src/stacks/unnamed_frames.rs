//! Frames that have no name, summed up by file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use usdtrec_format::KnownSymbols;
use usdtrec_trace::process::DsoId;
use usdtrec_trace::session::TraceSession;

use crate::stacks::path::{StackTable, Step};
use crate::stats::keys::stack::FrameName;

/// Frames without a name.
#[derive(Debug, Default)]
pub struct UnnamedFrames {
    /// All frames of all hits, named or not.
    pub all: u64,
    /// By file, the most frames first.
    pub files: Vec<UnnamedFile>,
    /// Files whose debugging information is too long to read, so that frames of inlined functions are missing, sorted.
    pub too_long: Vec<Box<Path>>,
    /// Files whose debugging information has tables that are too long to read, so that frames of inlined functions or lines are missing, sorted.
    pub long_tables: Vec<Box<Path>>,
}

/// The frames without a name of one file.
#[derive(Debug)]
pub struct UnnamedFile {
    /// Number of frames.
    pub frames: u64,
    /// Why they have no name.
    pub reason: UnnamedReason,
}

/// Why frames have no names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnnamedReason {
    /// The file has symbols for other programs alone, or none.
    Stripped(Box<Path>),
    /// The file is not there, not the recorded one, or not readable.
    NotRead(Box<Path>),
    /// The file has symbols, but none there.
    NoSymbol(Box<Path>),
    /// Memory that is no file: code that was made at run time.
    NoFile(Box<Path>),
    /// No file is known to be mapped there.
    Unmapped,
}

impl UnnamedFrames {
    /// Counts the frames without names of stacks.
    pub(crate) fn count(tables: &[StackTable], session: &TraceSession) -> Self {
        let mut all = 0_u64;
        let mut files: BTreeMap<Option<&Path>, u64> = BTreeMap::new();
        for path in tables.iter().flat_map(|table| &table.paths) {
            for step in &path.steps {
                let Step::Frame(frame) = step else {
                    continue;
                };
                all = all.saturating_add(path.hits);
                let file = match frame {
                    FrameName::Function { .. } | FrameName::Script { .. } => continue,
                    FrameName::Offset { file, .. } => Some(&**file),
                    FrameName::Address(_) => None,
                };
                let frames = files.entry(file).or_default();
                *frames = frames.saturating_add(path.hits);
            }
        }
        let files = files.into_iter().map(|(file, frames)| UnnamedFile {
            frames,
            reason: UnnamedReason::for_file(file, session),
        });
        let mut files: Vec<UnnamedFile> = files.collect();
        files.sort_by(|a, b| (b.frames, &a.reason).cmp(&(a.frames, &b.reason)));
        Self {
            all,
            files,
            too_long: paths(session, |file| session.symbols().has_too_long_info(file)),
            long_tables: paths(session, |file| session.symbols().has_long_tables(file)),
        }
    }
}

/// The paths of files of a trace that are meant.
fn paths(session: &TraceSession, is_meant: impl Fn(DsoId) -> bool) -> Vec<Box<Path>> {
    let files = session.mappings().files().iter().enumerate();
    let meant = files.filter(|(at, _)| is_meant(DsoId(*at as u32)));
    let sorted: BTreeSet<Box<Path>> = meant.map(|(_, dso)| dso.path.as_path().into()).collect();
    sorted.into_iter().collect()
}

impl UnnamedReason {
    fn for_file(file: Option<&Path>, session: &TraceSession) -> Self {
        let Some(path) = file else {
            return Self::Unmapped;
        };
        let known: Box<Path> = path.into();
        let is_file =
            path.is_absolute() && !path.starts_with("/anon") && !path.starts_with("/memfd:");
        if !is_file || path.as_os_str() == "//anon" {
            return Self::NoFile(known);
        }
        let files = session.mappings().files().iter().enumerate();
        let mut same = files.filter(|(_, dso)| dso.path == path);
        let symbols = same
            .next()
            .map(|(at, _)| session.symbols().known(DsoId(at as u32)));
        match symbols.unwrap_or(KnownSymbols::NotRead) {
            KnownSymbols::NotRead => Self::NotRead(known),
            KnownSymbols::OfOthers => Self::Stripped(known),
            KnownSymbols::All => Self::NoSymbol(known),
        }
    }
}
