//! Strings, reasons and stacks by number, so that a group's key has words of one length.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::HashMap;
use usdtrec_format::Missing;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::symbols::NameOfSymbol;
use usdtrec_trace::unwind::stack::StackPart;

use crate::stats::keys::stack::CallStack;
use crate::stats::keys::stacks::Stacks;
use crate::stats::reasons::without_address;
use crate::stats::sketch::content_hash;

/// Groups that are counted one by one, and different strings; samples of others are counted together.
pub(crate) const MAX_GROUPS: usize = 1 << 18;
/// Bytes of different strings.
const MAX_BYTES: usize = 64 << 20;

/// Strings, reasons and stacks with their numbers; the same for all threads.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// Reasons why values are missing, without addresses.
    reasons: RwLock<Vec<String>>,
    strings: RwLock<Strings>,
    stacks: RwLock<Stacks>,
    /// Whether no strings are kept: numbers are hashes.
    hashing: bool,
    /// Whether there were more different strings or stacks than fit.
    overflow: AtomicBool,
}

#[derive(Debug, Default)]
struct Strings {
    numbers: HashMap<Arc<[u8]>, u64>,
    strings: Vec<Arc<[u8]>>,
    /// Bytes of all strings.
    bytes: usize,
}

impl Dictionary {
    /// One that stores nothing: numbers are hashes, the same in every run, and nothing can be looked up.
    pub(crate) fn hashing() -> Self {
        Self {
            hashing: true,
            ..Self::default()
        }
    }

    /// Whether no strings are kept: numbers are hashes.
    pub(crate) const fn is_hashing(&self) -> bool {
        self.hashing
    }

    /// Whether there were more different strings or stacks than fit.
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
    pub(crate) fn symbol(&self, session: &TraceSession, symbol: NameOfSymbol) -> u64 {
        match self.hashing {
            true => content_hash(session.symbols().name(symbol).as_deref()),
            false => u64::from(symbol.0),
        }
    }

    /// The number of a string; `None` if there are too many different ones.
    pub(crate) fn string(&self, string: &[u8]) -> Option<u64> {
        if self.hashing {
            return Some(content_hash(string));
        }
        let known = read(&self.strings).numbers.get(string).copied();
        known.or_else(|| self.new_string(string))
    }

    #[cold]
    fn new_string(&self, string: &[u8]) -> Option<u64> {
        let mut all = write(&self.strings);
        if let Some(&known) = all.numbers.get(string) {
            return Some(known);
        }
        let number = all.strings.len();
        if number >= MAX_GROUPS || all.bytes + string.len() > MAX_BYTES {
            self.overflow.store(true, Relaxed);
            return None;
        }
        let string: Arc<[u8]> = string.into();
        all.bytes += string.len();
        all.strings.push(Arc::clone(&string));
        all.numbers.insert(string, number as u64);
        Some(number as u64)
    }

    /// The number of a stack; `None` if there are too many different ones.
    pub(crate) fn stack(&self, stack: &[StackPart], session: &TraceSession) -> Option<u64> {
        if self.hashing {
            return Some(stack_hash(stack, session));
        }
        let known = read(&self.stacks).known(stack);
        known.or_else(|| self.new_stack(stack))
    }

    #[cold]
    fn new_stack(&self, stack: &[StackPart]) -> Option<u64> {
        let number = write(&self.stacks).number(stack);
        if number.is_none() {
            self.overflow.store(true, Relaxed);
        }
        number
    }

    /// The stack of a number, with its names.
    pub(crate) fn stack_of(&self, number: u64, session: &TraceSession) -> CallStack {
        write(&self.stacks).named(number, session)
    }

    /// The string of a number.
    pub(crate) fn string_of(&self, number: u64) -> Arc<[u8]> {
        let all = read(&self.strings);
        all.strings
            .get(number as usize)
            .cloned()
            .unwrap_or_default()
    }
}

/// A hash of a stack that is the same in every run: functions have numbers in the order in which they are found.
fn stack_hash(stack: &[StackPart], session: &TraceSession) -> u64 {
    let part = |hash: u64, part: &StackPart| match part {
        StackPart::Function {
            file,
            name,
            inlined,
        } => {
            let name = session.symbols().name(*name);
            content_hash((hash, file, name.as_deref(), inlined))
        }
        StackPart::Made { name } => {
            let name = session.symbols().name(*name);
            content_hash((hash, name.as_deref()))
        }
        other => content_hash((hash, other)),
    };
    stack.iter().fold(0, part)
}

/// Nothing in here can be left half-done by a panic elsewhere.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
