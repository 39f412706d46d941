//! Names of functions that were found, by number.

use std::sync::Arc;

use foldhash::HashMap;

/// The name of a function that was found, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameOfSymbol(pub u32);

/// Names of functions that were found, each once.
#[derive(Debug, Default)]
pub(crate) struct FoundNames {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameOfSymbol>,
}

impl FoundNames {
    /// The number of a name.
    pub(crate) fn number(&mut self, name: &Arc<str>) -> NameOfSymbol {
        *self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            self.names.push(Arc::clone(name));
            NameOfSymbol(self.names.len() as u32 - 1)
        })
    }

    /// The name of a number.
    pub(crate) fn name(&self, id: NameOfSymbol) -> Option<Arc<str>> {
        self.names.get(id.0 as usize).cloned()
    }
}
