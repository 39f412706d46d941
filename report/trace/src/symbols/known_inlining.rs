//! What is inlined at places that were asked for, and names of functions by number.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use usdtrec_format::SourceLine;

use crate::process::DsoId;
use crate::symbols::inlined::Inlining;

/// Places that are kept; then all are looked up anew.
const MAX_PLACES: usize = 1 << 18;

/// The functions that are inlined at a place, and the lines there.
#[derive(Debug)]
pub struct FoundInlining {
    /// The innermost first.
    pub calls: Vec<FoundCall>,
    /// The line in the function that is not inlined.
    pub source: Option<SourceLine>,
}

/// A function whose code was inlined.
#[derive(Debug)]
pub struct FoundCall {
    /// Its name.
    pub name: Arc<str>,
    /// The name by number.
    pub(crate) id: NameOfSymbol,
    /// The line in it.
    pub source: Option<SourceLine>,
}

/// What was found, by file and file offset; `None` where nothing is known.
#[derive(Debug, Default)]
pub(crate) struct KnownInlining(Mutex<Places>);

type Places = HashMap<(DsoId, u64), Option<Arc<FoundInlining>>>;

impl FoundInlining {
    /// With the numbers of the names.
    pub(crate) fn new(found: Inlining, names: &mut FoundNames) -> Self {
        let calls = found.calls.into_iter().map(|call| FoundCall {
            id: names.number(&call.name),
            name: call.name,
            source: call.source,
        });
        Self {
            calls: calls.collect(),
            source: found.source,
        }
    }

    /// The line of the innermost function.
    pub fn innermost(&self) -> Option<&SourceLine> {
        match self.calls.first() {
            Some(call) => call.source.as_ref(),
            None => self.source.as_ref(),
        }
    }
}

impl KnownInlining {
    /// What was found at a place; `None` if it was not looked up.
    pub(crate) fn get(&self, file: DsoId, offset: u64) -> Option<Option<Arc<FoundInlining>>> {
        self.places().get(&(file, offset)).cloned()
    }

    /// Keeps what was found at a place.
    pub(crate) fn keep(&self, file: DsoId, offset: u64, found: Option<Arc<FoundInlining>>) {
        let mut places = self.places();
        if places.len() >= MAX_PLACES {
            places.clear();
        }
        places.insert((file, offset), found);
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing in here can be left half-done by a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a function that was found, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameOfSymbol(pub u32);

/// Names of functions that were found, each once.
#[derive(Debug, Default)]
pub(crate) struct FoundNames(IndexSet<Arc<str>, RandomState>);

impl FoundNames {
    /// The number of a name.
    pub(crate) fn number(&mut self, name: &Arc<str>) -> NameOfSymbol {
        NameOfSymbol(self.0.insert_full(Arc::clone(name)).0 as u32)
    }

    /// The name of a number.
    pub(crate) fn name(&self, id: NameOfSymbol) -> Option<Arc<str>> {
        self.0.get_index(id.0 as usize).cloned()
    }
}
