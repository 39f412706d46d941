//! Things by number, each once.

use std::hash::Hash;

use foldhash::HashMap;

/// Numbers of things, in the order in which they were first seen.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    numbers: HashMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::default(),
            all: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    /// The number of a thing.
    pub(crate) fn number(&mut self, thing: T) -> u32 {
        if let Some(known) = self.numbers.get(&thing) {
            return *known;
        }
        let number = self.all.len() as u32;
        self.all.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }

    /// All things by their numbers.
    pub(crate) fn all(&self) -> &[T] {
        &self.all
    }
}
