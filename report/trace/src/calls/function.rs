//! Functions of scripts by number.

use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use foldhash::quality::FixedState;

/// Different functions at most; further ones have no names.
const MAX_FUNCTIONS: usize = 1 << 18;
/// Bytes of all names and paths at most.
const MAX_BYTES: usize = 64 << 20;

/// The number of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionNumber(u32);

impl FunctionNumber {
    /// All functions beyond those that are kept.
    const OTHERS: Self = Self(u32::MAX);
}

/// A function as the arguments of a hit say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FunctionText {
    pub(crate) name: Vec<u8>,
    /// Its file; empty if it has none.
    pub(crate) file: Vec<u8>,
    /// Whether a part of it is not known.
    pub(crate) partial: bool,
}

/// A function of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFunction {
    /// Its name with that of its class. What of it is not known is `?`.
    pub name: Arc<str>,
    /// Its file; `None` if that is not known, or the function is not in the script.
    pub file: Option<Arc<Path>>,
    /// Whether a part of it is not known.
    pub(crate) partial: bool,
    /// Hash; the same in every run.
    pub(crate) hash: u64,
}

/// Functions, each once.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    numbers: HashMap<FunctionText, FunctionNumber>,
    functions: Vec<Arc<ScriptFunction>>,
    /// Bytes of all names and paths.
    bytes: usize,
}

impl Functions {
    pub(crate) fn known(&self, text: &FunctionText) -> Option<FunctionNumber> {
        self.numbers.get(text).copied()
    }

    pub(crate) fn number(&mut self, text: &FunctionText) -> FunctionNumber {
        if let Some(known) = self.known(text) {
            return known;
        }
        let bytes = text.name.len() + text.file.len();
        if self.functions.len() >= MAX_FUNCTIONS || self.bytes + bytes > MAX_BYTES {
            return FunctionNumber::OTHERS;
        }
        self.bytes += bytes;
        let number = FunctionNumber(self.functions.len() as u32);
        let file = (!text.file.is_empty()).then(|| Path::new(OsStr::from_bytes(&text.file)));
        self.functions.push(Arc::new(ScriptFunction {
            name: String::from_utf8_lossy(&text.name).into(),
            file: file.map(Into::into),
            partial: text.partial,
            hash: hash(text),
        }));
        self.numbers.insert(text.clone(), number);
        number
    }

    pub(crate) fn get(&self, number: FunctionNumber) -> Arc<ScriptFunction> {
        let known = self.functions.get(number.0 as usize).cloned();
        known.unwrap_or_else(|| {
            Arc::new(ScriptFunction {
                name: "[other functions]".into(),
                file: None,
                partial: true,
                hash: u64::MAX,
            })
        })
    }
}

/// A hash that is the same in every run.
fn hash(text: &FunctionText) -> u64 {
    FixedState::with_seed(0x6675_6e63).hash_one(text)
}
