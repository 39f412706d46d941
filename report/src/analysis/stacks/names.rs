//! The functions at all addresses of a trace's stacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use usdtrec_format::{CodeNames, FileCode, NamedPlace};

use crate::error::ReportError;
use crate::events::fold::fold_until;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::trace::process::DsoId;
use crate::trace::session::TraceSession;

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
type CodePlaces = HashSet<(DsoId, u64)>;

impl StackNames {
    /// Finds the functions at all addresses of stacks, and of hits, until `stop` is true.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn find(
        session: &TraceSession,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Self, ReportError> {
        let filter = SampleFilter::new(&EventSelection::default(), session)?;
        let folded = fold_until(
            session,
            &filter,
            &stop,
            CodePlaces::default,
            |places, resolver, target, sample| {
                if places.len() < MOST {
                    resolver.each_place(target, sample, |file, offset| {
                        places.insert((file, offset));
                    });
                }
            },
        );
        let mut files: BTreeMap<DsoId, Vec<u64>> = BTreeMap::new();
        let is_full = |places: &CodePlaces| places.len() >= MOST;
        let full = folded.states.iter().any(is_full);
        let all: CodePlaces = folded.states.into_iter().flatten().collect();
        for (file, offset) in all {
            files.entry(file).or_default().push(offset);
        }
        let mut found = Found::default();
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

    fn number(&mut self, name: &Arc<str>) -> u32 {
        let functions = &mut self.names.functions;
        *self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            functions.push(name.to_string());
            functions.len() as u32 - 1
        })
    }
}
