//! Symbols: from an address in a mapped file to a function's name.

mod demangle;
mod table;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use usdtrec_format::BuildId;

use self::table::SymbolTable;
use crate::process::{Dso, DsoId};

/// Where binaries are kept by build-id besides the build-id cache, when debug packages are installed.
const DEBUG_DIR: &str = "/usr/lib/debug";

/// The symbols of a trace's files, each file read when first asked for.
///
/// A file is taken from the path that the trace names if it has the trace's build-id there, else from the
/// build-id cache, else from the system's debug files. Where the trace names no build-id, the path is believed.
#[derive(Debug)]
pub struct Symbols {
    buildid_dir: Option<PathBuf>,
    files: Vec<Dso>,
    tables: Vec<OnceLock<Option<SymbolTable>>>,
    names: Mutex<FoundNames>,
}

/// The name of a function that was found, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameOfSymbol(pub(crate) u32);

/// Names of functions that were found, each once.
#[derive(Debug, Default)]
struct FoundNames {
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, NameOfSymbol>,
}

/// A place in a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The function's name, demangled, without parameters.
    pub name: Arc<str>,
    /// The name by number: the same name has the same number.
    pub id: NameOfSymbol,
    /// Bytes from its start.
    pub offset: u64,
}

impl Symbols {
    /// Symbols of the mapped files of a trace; `buildid_dir` is the build-id cache (`~/.debug`), if there is one.
    #[must_use]
    pub fn new(buildid_dir: Option<&Path>, files: &[Dso]) -> Self {
        Self {
            buildid_dir: buildid_dir.map(Path::to_owned),
            files: files.to_vec(),
            tables: files.iter().map(|_| OnceLock::new()).collect(),
            names: Mutex::default(),
        }
    }

    /// The symbol at a file offset; `None` if the file cannot be had or has none there.
    #[must_use]
    pub fn find(&self, file: DsoId, offset: u64) -> Option<Symbol> {
        let at = file.0 as usize;
        let table = self
            .tables
            .get(at)?
            .get_or_init(|| self.read(self.files.get(at)?));
        let (name, offset) = table.as_ref()?.find(offset)?;
        let id = self.found().number(&name);
        Some(Symbol { name, id, offset })
    }

    /// A function's name by its number.
    #[must_use]
    pub fn name(&self, id: NameOfSymbol) -> Option<Arc<str>> {
        self.found().names.get(id.0 as usize).cloned()
    }

    fn found(&self) -> MutexGuard<'_, FoundNames> {
        // Nothing in here can be left half-done by a panic elsewhere.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, dso: &Dso) -> Option<SymbolTable> {
        if !dso.path.is_absolute() {
            return None;
        }
        let cached = dso.build_id.into_iter().flat_map(|id| self.copies(id));
        let mut best = None;
        for path in std::iter::once(dso.path.clone()).chain(cached) {
            match SymbolTable::read(&path, dso.build_id) {
                Some(table) if table.is_complete() => return Some(table),
                table => best = best.or(table),
            }
        }
        best
    }

    /// Where a file may be by its build-id.
    fn copies(&self, id: BuildId) -> Vec<PathBuf> {
        let text = id.to_string();
        let (first, rest) = text.split_at(2);
        let place = Path::new(".build-id").join(first);
        let cache = self.buildid_dir.iter().flat_map(|dir| {
            let entry = dir.join(&place).join(rest);
            ["debug", "elf"].map(|name| entry.join(name))
        });
        let system = Path::new(DEBUG_DIR)
            .join(&place)
            .join(format!("{rest}.debug"));
        cache.chain([system]).collect()
    }
}

impl FoundNames {
    fn number(&mut self, name: &Arc<str>) -> NameOfSymbol {
        *self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            self.names.push(Arc::clone(name));
            NameOfSymbol(self.names.len() as u32 - 1)
        })
    }
}
