//! Things that threads borrow and give back, so that each is made only as often as it is needed at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool of reusable things.
#[derive(Debug)]
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> Pool<T> {
    /// Takes one out; `None` if all are in use.
    pub fn take(&self) -> Option<T> {
        self.things().pop()
    }

    /// Gives one back.
    pub fn put(&self, thing: T) {
        self.things().push(thing);
    }

    /// Takes all out.
    pub fn take_all(&self) -> Vec<T> {
        std::mem::take(&mut self.things())
    }

    fn things(&self) -> MutexGuard<'_, Vec<T>> {
        // Nothing in here can be left half-done by a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
