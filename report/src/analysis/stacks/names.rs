//! The functions at all addresses of a trace's stacks.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use usdtrec_format::{CodeNames, FileCode, MadeCode, NamedPlace};

use crate::error::ReportError;
use crate::events::fold::fold_until;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::trace::process::DsoId;
use crate::trace::session::TraceSession;
use crate::trace::symbols::perf_map::{MadePlace, MappedFunction, functions};

/// Places of code whose names are found; stacks with more are no stacks of a program.
const MOST: usize = 1 << 20;

/// The functions in the stacks of a trace, as far as there was time to find them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackNames {
    /// The functions.
    pub names: CodeNames,
    /// Whether functions are missing, because `stop` ended the search or there are more than a million places.
    pub incomplete: bool,
}

/// A place in a file that is mapped.
#[derive(Default)]
struct CodePlaces {
    files: HashSet<(DsoId, u64)>,
    /// Where code may be that was made at run time.
    made: HashSet<MadePlace>,
}

impl CodePlaces {
    fn is_full(&self) -> bool {
        self.files.len() + self.made.len() >= MOST
    }
}

/// Opens the perf map of a process of this host by its pid; `None` if it has none that can be trusted.
pub type OpenPerfMap<'m> = dyn Fn(i32) -> Option<Box<dyn BufRead>> + 'm;

impl StackNames {
    /// Finds the functions at all addresses of stacks, and of hits, until `stop` is true. What processes made at run time has the names that their perf maps say,
    /// which `open_map` opens.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn find(
        session: &TraceSession,
        open_map: &OpenPerfMap<'_>,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Self, ReportError> {
        let filter = SampleFilter::new(&EventSelection::default(), session)?;
        let folded = fold_until(
            session,
            &filter,
            &stop,
            CodePlaces::default,
            |places, resolver, target, sample| {
                if !places.is_full() {
                    let CodePlaces { files, made } = places;
                    resolver.each_place(
                        target,
                        sample,
                        |file, offset| {
                            files.insert((file, offset));
                        },
                        |place| {
                            made.insert(place);
                        },
                    );
                }
            },
        );
        let mut files: BTreeMap<DsoId, Vec<u64>> = BTreeMap::new();
        let mut made: BTreeMap<(i32, u64), Vec<u64>> = BTreeMap::new();
        let full = folded.states.iter().any(CodePlaces::is_full);
        let mut all = CodePlaces::default();
        for places in folded.states {
            all.files.extend(places.files);
            all.made.extend(places.made);
        }
        for (file, offset) in all.files {
            files.entry(file).or_default().push(offset);
        }
        for place in all.made {
            let of_program = made.entry((place.pid, place.began)).or_default();
            of_program.push(place.address);
        }
        let mut found = Found::default();
        // Maps vanish, files mostly do not: maps come first.
        let mut newest: BTreeMap<i32, u64> = BTreeMap::new();
        for &(pid, began) in made.keys() {
            newest.insert(pid, began);
        }
        for ((pid, began), mut addresses) in made {
            // A map is that of the last program of its pid.
            if stop() || newest.get(&pid) != Some(&began) {
                continue;
            }
            addresses.sort_unstable();
            if let Some(map) = open_map(pid) {
                // What cannot be read has no names.
                let functions = functions(map, &addresses, &stop).unwrap_or_default();
                found.add_made(MadeBy { pid, began }, &addresses, &functions);
            }
        }
        for (file, mut offsets) in files {
            if stop() {
                break;
            }
            offsets.sort_unstable();
            found.add(session, file, &offsets);
        }
        Ok(Self {
            names: found.names,
            incomplete: full || stop(),
        })
    }
}

/// A program that made code at run time.
#[derive(Clone, Copy)]
struct MadeBy {
    pid: i32,
    /// ns.
    began: u64,
}

/// Functions found so far.
#[derive(Default)]
struct Found {
    names: CodeNames,
    numbers: HashMap<Arc<str>, u32>,
}

impl Found {
    fn add(&mut self, session: &TraceSession, file: DsoId, offsets: &[u64]) {
        let Some(dso) = session.mappings().file(file) else {
            return;
        };
        let symbols = session.symbols();
        let places = offsets.iter().filter_map(|&at| {
            let symbol = symbols.find(file, at)?;
            Some(NamedPlace {
                at,
                function: self.number(&symbol.name),
                within: symbol.offset,
            })
        });
        let places = places.collect();
        self.names.files.push(FileCode {
            path: dso.path.clone(),
            build_id: dso.build_id,
            symbols: symbols.known(file),
            places,
        });
    }

    /// Adds functions that a process made at run time, by their addresses.
    fn add_made(
        &mut self,
        by: MadeBy,
        addresses: &[u64],
        functions: &HashMap<u64, MappedFunction>,
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
        if !places.is_empty() {
            self.names.made.push(MadeCode { pid, began, places });
        }
    }

    fn number(&mut self, name: &Arc<str>) -> u32 {
        let functions = &mut self.names.functions;
        *self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            functions.push(name.to_string());
            functions.len() as u32 - 1
        })
    }
}
