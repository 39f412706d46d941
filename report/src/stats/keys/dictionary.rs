//! Texts and reasons by number, so that a group's key has words of one length.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::HashMap;
use usdtrec_format::Missing;

use crate::stats::reasons::without_address;
use crate::stats::sketch::content_hash;
use crate::trace::symbols::Symbol;

/// Groups that are counted one by one, and different texts; samples of others are counted together.
pub(crate) const MOST_GROUPS: usize = 1 << 18;
/// Bytes of different texts.
const MOST_BYTES: usize = 64 << 20;

/// Texts and reasons with their numbers; the same for all threads.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// Reasons why values are missing, without addresses.
    reasons: RwLock<Vec<String>>,
    texts: RwLock<Texts>,
    /// Whether texts and reasons are not kept: their numbers are hashes.
    hashing: bool,
    /// Whether there were more different texts than fit.
    overflow: AtomicBool,
}

#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<Arc<[u8]>, u64>,
    texts: Vec<Arc<[u8]>>,
    /// Bytes of all texts.
    bytes: usize,
}

impl Dictionary {
    /// One that stores nothing: texts and reasons are the same hashes in every run, and cannot be looked up.
    pub(crate) fn hashing() -> Self {
        Self {
            hashing: true,
            ..Self::default()
        }
    }

    /// Whether there were more different texts than fit.
    pub(crate) fn is_overflown(&self) -> bool {
        self.overflow.load(Relaxed)
    }

    /// The number of a reason, in which addresses do not count.
    #[cold]
    pub(crate) fn reason(&self, missing: &Missing) -> u64 {
        let words = without_address(missing);
        if self.hashing {
            return content_hash(words);
        }
        let place = |reasons: &[String]| reasons.iter().position(|known| *known == words);
        let known = place(&read(&self.reasons));
        if let Some(known) = known {
            return known as u64;
        }
        let mut reasons = write(&self.reasons);
        if let Some(known) = place(&reasons) {
            return known as u64;
        }
        reasons.push(words);
        reasons.len() as u64 - 1
    }

    /// The reason of a number.
    pub(crate) fn reason_of(&self, number: u64) -> String {
        let reasons = read(&self.reasons);
        reasons.get(number as usize).cloned().unwrap_or_default()
    }

    /// The word of a symbol: its number, or where nothing is kept, the hash of its name.
    pub(crate) fn symbol(&self, symbol: &Symbol) -> u64 {
        match self.hashing {
            true => content_hash(&*symbol.name),
            false => u64::from(symbol.id.0),
        }
    }

    /// The number of a text; `None` if there are too many different ones.
    pub(crate) fn text(&self, text: &[u8]) -> Option<u64> {
        if self.hashing {
            return Some(content_hash(text));
        }
        let known = read(&self.texts).numbers.get(text).copied();
        known.or_else(|| self.new_text(text))
    }

    #[cold]
    fn new_text(&self, text: &[u8]) -> Option<u64> {
        let mut all = write(&self.texts);
        if let Some(&known) = all.numbers.get(text) {
            return Some(known);
        }
        let number = all.texts.len();
        if number >= MOST_GROUPS || all.bytes + text.len() > MOST_BYTES {
            self.overflow.store(true, Relaxed);
            return None;
        }
        let text: Arc<[u8]> = text.into();
        all.bytes += text.len();
        all.texts.push(Arc::clone(&text));
        all.numbers.insert(text, number as u64);
        Some(number as u64)
    }

    /// The text of a number.
    pub(crate) fn text_of(&self, number: u64) -> Arc<[u8]> {
        let all = read(&self.texts);
        all.texts.get(number as usize).cloned().unwrap_or_default()
    }
}

/// Nothing in here can be left half-done by a panic elsewhere.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
