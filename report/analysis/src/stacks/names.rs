//! The functions and lines at all addresses of a trace's stacks.
//!
//! When recording has ended and the probes are removed, the recorder reads its trace again, looks up each different
//! location of a stack in a file by this module, and appends the names to the trace (`format/src/trace/code_names.rs`).
//! So recording takes no longer, the trace is complete without them, and it does not matter which engine recorded it.
//! What the trace says takes precedence over files of the reading host, which may name what it does not say. Inlined
//! calls and lines are stored after all names, because they take more time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use usdtrec_format::{
    CodeNames, FileCode, KnownSymbols, LinedFrame, LinedPlace, MadeCode, NamedPlace, SourceLine,
    StringInFile, TimedPlace,
};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::fold::fold_until;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::process::DsoId;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::StackPlace;
use usdtrec_trace::symbols::file_string::FileString;
use usdtrec_trace::symbols::jit_dump::{self, DumpedFunction};
use usdtrec_trace::symbols::known_inlining::FoundInlining;
use usdtrec_trace::symbols::perf_map::{MadePlace, MappedFunction, functions};

/// Places of code whose names are found; stacks with more are no stacks of a program.
const MAX_PLACES: usize = 1 << 20;
/// Frames of inlined functions, and lines, that are found.
const MAX_FRAMES: usize = 1 << 20;

/// Strings that are found.
const MAX_STRINGS: usize = 1 << 14;

/// The functions in the stacks of a trace, and their lines, and strings in files at which arguments point, as far as there was time to find them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackNames {
    /// The functions and lines.
    pub names: CodeNames,
    /// Whether some are missing, because `stop` ended the search or there are more than a million places or frames.
    pub incomplete: bool,
}

/// Places in stacks.
#[derive(Default)]
struct CodePlaces {
    /// Places in files that are mapped, with the number of stacks that they are in.
    files: HashMap<StackPlace, u64>,
    /// Where code may be that was made at run time, with the last time at which it ran, ns.
    made: HashMap<MadePlace, u64>,
    /// Strings by file and place.
    strings: HashMap<(DsoId, u64), Arc<FileString>>,
}

impl CodePlaces {
    fn is_full(&self) -> bool {
        self.files.len() + self.made.len() >= MAX_PLACES
    }
}

/// Files in which processes of this host name the code that they made at run time. A program is what a process, by its pid, ran at a time, ns of the trace's clock.
pub trait MadeNames {
    /// Opens the perf map of a program, from its beginning; `None` if it has none that can be trusted.
    fn perf_map(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>>;
    /// Opens its jitdump.
    fn jit_dump(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>>;
}

impl StackNames {
    /// Finds strings in files that were not read at hits, and if `with_stacks`, the functions at all addresses of stacks, and of hits, and what is inlined there, until `stop` is true: first all functions, then what is
    /// inlined; of both, those first that are in the most stacks. What processes made at run time has the names that `made` says.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn find(
        session: &TraceSession,
        made_names: &dyn MadeNames,
        with_stacks: bool,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Self, ReportError> {
        let may_lack_strings = session.may_lack_strings();
        if !with_stacks && !may_lack_strings {
            return Ok(Self::default());
        }
        let filter = SampleFilter::new(&EventSelection::default(), session)?;
        let folded = fold_until(
            session,
            &filter,
            &stop,
            CodePlaces::default,
            |places, resolver, target, sample| {
                let is_full = places.is_full();
                let CodePlaces {
                    files,
                    made,
                    strings,
                } = places;
                if may_lack_strings && let Some(site) = session.site_of(target, sample) {
                    resolver.each_string(site, sample, |place| {
                        let key = (place.file, place.at);
                        if strings.len() < MAX_STRINGS && !strings.contains_key(&key) {
                            strings.insert(key, Arc::clone(&place.string));
                        }
                    });
                }
                if !with_stacks {
                    return;
                }
                resolver.each_place(
                    target,
                    sample,
                    |place| match is_full {
                        true => {
                            files.entry(place).and_modify(|hits| *hits += 1);
                        }
                        false => *files.entry(place).or_default() += 1,
                    },
                    |place| {
                        if !is_full {
                            let last = made.entry(place).or_default();
                            *last = sample.time.max(*last);
                        }
                    },
                );
            },
        );
        let mut made: BTreeMap<(i32, u64), MadeByProgram> = BTreeMap::new();
        let full = folded.states.iter().any(CodePlaces::is_full);
        let mut all = CodePlaces::default();
        let mut found = Found::default();
        for places in folded.states {
            found.add_strings(places.strings);
            for (place, hits) in places.files {
                *all.files.entry(place).or_default() += hits;
            }
            for (place, time) in places.made {
                let by = made.entry((place.pid, place.began)).or_default();
                by.last = by.last.max(time);
                by.addresses.push(place.address);
            }
        }
        // Maps vanish, files mostly do not: maps come first.
        for ((pid, began), mut by) in made {
            if stop() {
                break;
            }
            by.addresses.sort_unstable();
            by.addresses.dedup();
            // What cannot be read has no names.
            let dump = || made_names.jit_dump(pid, by.last);
            let dumped = jit_dump::functions(dump, &by.addresses, &stop).unwrap_or_default();
            let map = made_names.perf_map(pid, by.last);
            let mapped = map.map(|map| functions(map, &by.addresses, &stop));
            let mapped = mapped.and_then(Result::ok).unwrap_or_default();
            found.add_made(MadeBy { pid, began }, &by.addresses, &mapped, &dumped);
        }
        let places = most_frequent(all.files);
        let named = found.add_functions(session, &places, &stop);
        let lined = found.add_lines(session, &places, &stop);
        Ok(Self {
            names: found.names(session),
            incomplete: full || !named || !lined || stop(),
        })
    }
}

/// Code that a program made at run time.
#[derive(Default)]
struct MadeByProgram {
    addresses: Vec<u64>,
    /// When it last ran, ns.
    last: u64,
}

/// A program that made code at run time.
#[derive(Clone, Copy)]
struct MadeBy {
    pid: i32,
    /// ns.
    began: u64,
}

/// The places that are in the most stacks first; those in as many in the order of files and offsets.
fn most_frequent(places: HashMap<StackPlace, u64>) -> Vec<StackPlace> {
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_unstable_by_key(|(place, hits)| (Reverse(*hits), *place));
    places.into_iter().map(|(place, _)| place).collect()
}

/// Functions and lines found so far.
#[derive(Default)]
struct Found {
    names: CodeNames,
    functions: IndexSet<Arc<str>, RandomState>,
    sources: IndexSet<String, RandomState>,
    files: BTreeMap<DsoId, FileFound>,
    /// Frames of all places with lines.
    frames: usize,
}

/// What was found of a file.
#[derive(Default)]
struct FileFound {
    /// By file offset.
    places: BTreeMap<u64, NamedPlace>,
    /// By file offset.
    lines: BTreeMap<u64, LinedPlace>,
    /// By place.
    strings: BTreeMap<u64, Arc<FileString>>,
}

impl Found {
    fn add_strings(&mut self, strings: HashMap<(DsoId, u64), Arc<FileString>>) {
        for ((file, at), string) in strings {
            self.files
                .entry(file)
                .or_default()
                .strings
                .insert(at, string);
        }
    }

    /// Adds the functions at places; returns whether there was time for all.
    fn add_functions(
        &mut self,
        session: &TraceSession,
        places: &[StackPlace],
        stop: impl Fn() -> bool,
    ) -> bool {
        for place in places {
            if stop() {
                return false;
            }
            let file = self.files.entry(place.file).or_default();
            let at = place.instruction;
            if file.places.contains_key(&at) {
                continue;
            }
            if let Some(symbol) = session.symbols().find(place.file, at) {
                let (function, within) = (self.number(&symbol.name), symbol.offset);
                let named = NamedPlace {
                    at,
                    function,
                    within,
                };
                let file = self.files.entry(place.file).or_default();
                file.places.insert(at, named);
            }
        }
        true
    }

    /// Adds what is inlined at places, and the lines; returns whether there was time and room for all.
    fn add_lines(
        &mut self,
        session: &TraceSession,
        places: &[StackPlace],
        stop: impl Fn() -> bool,
    ) -> bool {
        for place in places {
            if stop() || self.frames > MAX_FRAMES {
                return false;
            }
            let at = place.instruction;
            let file = self.files.entry(place.file).or_default();
            if file.lines.contains_key(&at) {
                continue;
            }
            if let Some(inlining) = session.symbols().inlining(place.file, at) {
                let frames = self.lined(&inlining);
                self.frames += frames.len();
                let file = self.files.entry(place.file).or_default();
                file.lines.insert(at, LinedPlace { at, frames });
            }
        }
        true
    }

    fn lined(&mut self, inlining: &FoundInlining) -> Vec<LinedFrame> {
        let mut frames = Vec::new();
        for call in &inlining.calls {
            let function = Some(self.number(&call.name));
            frames.push(self.frame(function, call.source.as_ref()));
        }
        frames.push(self.frame(None, inlining.source.as_ref()));
        frames
    }

    fn frame(&mut self, function: Option<u32>, source: Option<&SourceLine>) -> LinedFrame {
        let line = source.map_or(0, |source| source.line);
        let source = source.map(|SourceLine { file, .. }| {
            let known = self.sources.get_index_of(file);
            known.unwrap_or_else(|| self.sources.insert_full(file.clone()).0) as u32
        });
        LinedFrame {
            function,
            source,
            line,
        }
    }

    /// All that was found.
    fn names(self, session: &TraceSession) -> CodeNames {
        let mut names = self.names;
        names.functions = self.functions.iter().map(|name| name.to_string()).collect();
        names.sources = self.sources.into_iter().collect();
        for (id, file) in self.files {
            if let Some(dso) = session.mappings().file(id) {
                // Its symbols are not looked up.
                let is_of_strings = file.places.is_empty() && !file.strings.is_empty();
                let strings = file.strings.into_iter().map(|(at, string)| StringInFile {
                    at,
                    bytes: string.bytes.clone(),
                    cut: string.cut,
                });
                names.files.push(FileCode {
                    path: dso.path.clone(),
                    build_id: dso.build_id,
                    symbols: match is_of_strings {
                        true => KnownSymbols::NotRead,
                        false => session.symbols().known(id),
                    },
                    strings: strings.collect(),
                    places: file.places.into_values().collect(),
                    lines: file.lines.into_values().collect(),
                });
            }
        }
        names
    }

    /// Adds functions that a process made at run time, by their addresses.
    fn add_made(
        &mut self,
        by: MadeBy,
        addresses: &[u64],
        functions: &HashMap<u64, MappedFunction>,
        dumped: &[DumpedFunction],
    ) {
        let MadeBy { pid, began } = by;
        let places = addresses.iter().filter_map(|&at| {
            let function = functions.get(&at)?;
            Some(NamedPlace {
                at,
                function: self.number(&Arc::from(function.name.as_str())),
                within: function.within,
            })
        });
        let places: Vec<NamedPlace> = places.collect();
        let timed = dumped.iter().map(|function| TimedPlace {
            since: function.since,
            place: NamedPlace {
                at: function.address,
                function: self.number(&function.name),
                within: function.within,
            },
        });
        let timed: Vec<TimedPlace> = timed.collect();
        if !places.is_empty() || !timed.is_empty() {
            self.names.made.push(MadeCode {
                pid,
                began,
                places,
                timed,
            });
        }
    }

    fn number(&mut self, name: &Arc<str>) -> u32 {
        self.functions.insert_full(Arc::clone(name)).0 as u32
    }
}
