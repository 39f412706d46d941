//! The functions of stacks and of sites that a trace names, and their lines: what symbols and debugging information said on the recording host.

use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::{
    BuildId, CodeNames, CodePlace, Definitions, KnownSymbols, LinedFrame, SourceLine, StringInFile,
    TimedPlace,
};

use crate::process::Dso;
use crate::symbols::file_string::FileString;
use crate::symbols::inlined::{InlinedCall, Inlining};
use crate::symbols::perf_map::MadePlace;

/// Functions by file and file offset.
#[derive(Debug, Default)]
pub(crate) struct StoredNames {
    names: Vec<Arc<str>>,
    /// Paths of source files.
    sources: Vec<String>,
    files: HashMap<(PathBuf, Option<BuildId>), StoredFile>,
    /// Of code that processes made at run time.
    made: HashMap<MadePlace, StoredPlace>,
    /// Of such code with times: from when on each function is there, in the order of time.
    timed: HashMap<MadePlace, Vec<(u64, StoredPlace)>>,
}

#[derive(Debug)]
struct StoredFile {
    symbols: KnownSymbols,
    places: HashMap<u64, StoredPlace>,
    lines: HashMap<u64, Vec<LinedFrame>>,
    strings: HashMap<u64, Arc<FileString>>,
}

#[derive(Clone, Copy, Debug)]
struct StoredPlace {
    /// Index of the function's name.
    name: u32,
    /// Bytes from the start of the function.
    within: u64,
}

fn stored_string(string: &StringInFile) -> (u64, Arc<FileString>) {
    let StringInFile { at, bytes, cut } = string;
    let string = FileString {
        bytes: bytes.clone(),
        cut: *cut,
    };
    (*at, Arc::new(string))
}

impl StoredNames {
    /// The names in a trace.
    pub(crate) fn new(found: &CodeNames) -> Self {
        let names = found.functions.iter().map(|name| Arc::from(name.as_str()));
        let files = found.files.iter().map(|file| {
            let places = file.places.iter().map(|place| {
                let (name, within) = (place.function, place.within);
                (place.at, StoredPlace { name, within })
            });
            let lines = file.lines.iter();
            let lines = lines.map(|place| (place.at, place.frames.clone()));
            let stored = StoredFile {
                symbols: file.symbols,
                places: places.collect(),
                lines: lines.collect(),
                strings: file.strings.iter().map(stored_string).collect(),
            };
            ((file.path.clone(), file.build_id), stored)
        });
        let made = found.made.iter().flat_map(|code| {
            code.places.iter().map(|place| {
                let (name, within) = (place.function, place.within);
                let at = MadePlace {
                    pid: code.pid,
                    began: code.began,
                    address: place.at,
                };
                (at, StoredPlace { name, within })
            })
        });
        let mut timed: HashMap<MadePlace, Vec<_>> = HashMap::default();
        for code in &found.made {
            for TimedPlace { since, place } in &code.timed {
                let at = MadePlace {
                    pid: code.pid,
                    began: code.began,
                    address: place.at,
                };
                let (name, within) = (place.function, place.within);
                let stored = (*since, StoredPlace { name, within });
                timed.entry(at).or_default().push(stored);
            }
        }
        for functions in timed.values_mut() {
            functions.sort_by_key(|(since, _)| *since);
        }
        Self {
            timed,
            names: names.collect(),
            sources: found.sources.clone(),
            files: files.collect(),
            made: made.collect(),
        }
    }

    /// The name of the function at a file offset, and the offset in it.
    pub(crate) fn find(&self, dso: &Dso, offset: u64) -> Option<(Arc<str>, u64)> {
        let place = self.file(dso)?.places.get(&offset)?;
        let name = self.names.get(place.name as usize)?;
        Some((Arc::clone(name), place.within))
    }

    /// What is inlined at a file offset.
    pub(crate) fn inlining(&self, dso: &Dso, offset: u64) -> Option<Inlining> {
        let frames = self.file(dso)?.lines.get(&offset)?;
        let (outer, inner) = frames.split_last()?;
        let calls = inner.iter().map(|frame| {
            let name = self.names.get(frame.function? as usize)?;
            Some(InlinedCall {
                name: Arc::clone(name),
                source: self.source(frame),
            })
        });
        Some(Inlining {
            calls: calls.flatten().collect(),
            source: self.source(outer),
        })
    }

    fn source(&self, frame: &LinedFrame) -> Option<SourceLine> {
        let file = self.sources.get(frame.source? as usize)?.clone();
        let line = frame.line;
        Some(SourceLine { file, line })
    }

    /// Whether there are names of code that was made at run time.
    pub(crate) fn has_made(&self) -> bool {
        !self.made.is_empty() || !self.timed.is_empty()
    }

    /// The name of the function that a process made at an address and that is there at a time, and the offset in it.
    pub(crate) fn find_made(&self, at: MadePlace, time: u64) -> Option<(Arc<str>, u64)> {
        let timed = self.timed.get(&at).and_then(|functions| {
            let after = functions.partition_point(|(since, _)| *since <= time);
            functions.get(after.checked_sub(1)?)
        });
        let timed = timed.map(|(_, place)| place);
        let place = timed.or_else(|| self.made.get(&at));
        let place = place.or_else(|| self.made_before(at, time))?;
        let name = self.names.get(place.name as usize)?;
        Some((Arc::clone(name), place.within))
    }

    /// The function of a process that ran already when one of several files began, which does not say when the process began.
    fn made_before(&self, at: MadePlace, time: u64) -> Option<&StoredPlace> {
        let functions = self.timed.get(&MadePlace { began: 0, ..at })?;
        let after = functions.partition_point(|(since, _)| *since <= time);
        let (since, place) = functions.get(after.checked_sub(1)?)?;
        // An earlier process had the same number.
        (at.began <= *since).then_some(place)
    }

    /// When the function that a process made at an address is another one, at the earliest after a time; `u64::MAX` if it stays.
    pub(crate) fn made_until(&self, at: MadePlace, time: u64) -> u64 {
        let places = [at, MadePlace { began: 0, ..at }];
        let known = places.iter().filter_map(|at| self.timed.get(at));
        let changes = known.filter_map(|functions| {
            let after = functions.partition_point(|(since, _)| *since <= time);
            functions.get(after).map(|(since, _)| *since)
        });
        changes.min().unwrap_or(u64::MAX)
    }

    /// Strings of a file, by the offset that they have if all of it is mapped as its code is.
    pub(crate) fn strings(&self, dso: &Dso) -> HashMap<u64, Arc<FileString>> {
        self.file(dso)
            .map(|file| file.strings.clone())
            .unwrap_or_default()
    }

    /// Which symbols of a file the recording host had.
    pub(crate) fn known(&self, dso: &Dso) -> Option<KnownSymbols> {
        self.file(dso).map(|file| file.symbols)
    }

    fn file(&self, dso: &Dso) -> Option<&StoredFile> {
        if self.files.is_empty() {
            return None;
        }
        self.files.get(&(dso.path.clone(), dso.build_id))
    }
}

/// Functions by file and file offset.
#[derive(Debug, Default)]
pub(crate) struct RecordedFunctions {
    files: Vec<FileFunctions>,
}

#[derive(Debug)]
struct FileFunctions {
    path: PathBuf,
    build_id: Option<BuildId>,
    at: HashMap<u64, CodePlace>,
}

impl RecordedFunctions {
    /// The functions in a trace's definitions.
    pub(crate) fn new(definitions: &Definitions) -> Self {
        let files = definitions.files.iter().map(|file| FileFunctions {
            path: file.path.clone(),
            build_id: file.build_id,
            at: HashMap::default(),
        });
        let mut files: Vec<FileFunctions> = files.collect();
        for probe in &definitions.probes {
            let Some(file) = files.get_mut(probe.file) else {
                continue;
            };
            for site in &probe.sites {
                if let Some(offset) = site.site.offset
                    && !site.place.is_unknown()
                {
                    file.at.insert(offset, site.place.clone());
                }
            }
        }
        Self { files }
    }

    /// The function and the line at an offset of a file that processes mapped.
    pub(crate) fn find(&self, dso: &Dso, offset: u64) -> Option<&CodePlace> {
        let is_it = |file: &&FileFunctions| match (file.build_id, dso.build_id) {
            (Some(recorded), Some(mapped)) => recorded == mapped,
            _ => file.path == dso.path,
        };
        let mut files = self.files.iter().filter(is_it);
        files.find_map(|file| file.at.get(&offset))
    }
}
