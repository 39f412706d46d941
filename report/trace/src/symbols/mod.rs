//! Symbols: from an address in a mapped file to a function's name.

pub(crate) mod candidates;
pub(crate) mod demangle;
pub mod file_string;
pub mod image;
pub mod inlined;
pub(crate) mod inlined_calls;
pub mod jit_dump;
pub mod known_inlining;
pub(crate) mod name_table;
pub(crate) mod per_file;
pub mod perf_map;
pub mod search;
pub(crate) mod stored;
pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use usdtrec_dwarf::NoDwarf;
use usdtrec_format::trace::Trace;
use usdtrec_format::{BuildId, FunctionPlace, KnownSymbols};
use usdtrec_unwind::Segments;

use crate::process::{Dso, DsoId, Mapping};
use crate::symbols::file_string::{FileString, FileStrings, ReadOnlyData};
use crate::symbols::image::{Binary, Image};
use crate::symbols::inlined::{InlineInfo, Inlining};
pub use crate::symbols::known_inlining::NameOfSymbol;
use crate::symbols::known_inlining::{FoundInlining, FoundNames, KnownInlining};
use crate::symbols::per_file::PerFile;
use crate::symbols::perf_map::MadePlace;
use crate::symbols::search::{DebugBinary, FetchDebug, FileView};
use crate::symbols::stored::{RecordedFunctions, StoredNames};
use crate::symbols::table::SymbolTable;

/// The symbols of a trace's files, each file read when first requested.
///
/// A file is taken from the path that the trace names if it has the trace's build-id there, else from the
/// build-id cache. Symbols that it does not have are taken from its separate file. Where the trace names no build-id, the file at the path is used.
/// The functions that the trace itself names take precedence. Without a symbol, what the trace says of its sites is taken.
#[derive(Debug)]
pub struct Symbols {
    buildid_dir: Option<PathBuf>,
    code: PerFile<Option<Code>>,
    views: Vec<FileView>,
    fetch: Option<Arc<dyn FetchDebug>>,
    recorded: RecordedFunctions,
    stored: StoredNames,
    /// Debugging information.
    info: PerFile<Result<InlineInfo, NoDwarf>>,
    inlining: KnownInlining,
    /// Strings in parts that programs cannot write.
    strings: PerFile<FileStrings>,
    names: Mutex<FoundNames>,
}

/// The code of one file.
#[derive(Debug)]
struct Code {
    symbols: SymbolTable,
    /// Of the program itself, also if only its debug information is there.
    segments: Segments,
    /// Whether the symbols are all that the file was linked with.
    complete: bool,
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
            code: PerFile::new(files),
            views: Vec::new(),
            fetch: None,
            recorded: RecordedFunctions::default(),
            stored: StoredNames::default(),
            info: PerFile::new(files),
            inlining: KnownInlining::default(),
            strings: PerFile::new(files),
            names: Mutex::default(),
        }
    }

    /// Takes the functions that a trace names before those of files, and the functions of its sites where no symbol is found.
    pub(crate) fn with_recorded(mut self, trace: &Trace) -> Self {
        self.set_recorded(trace);
        self.stored = trace.code_names().map(StoredNames::new).unwrap_or_default();
        self
    }

    /// Takes the functions of a trace's sites.
    pub(crate) fn set_recorded(&mut self, trace: &Trace) {
        let definitions = trace.info().definitions.as_ref();
        self.recorded = definitions.map(RecordedFunctions::new).unwrap_or_default();
    }

    /// Takes these files instead of those at their paths.
    pub(crate) fn with_views(self, views: &[FileView]) -> Self {
        Self {
            views: views.to_vec(),
            ..self
        }
    }

    /// Fetches what is neither on this host nor in the trace.
    pub(crate) fn with_fetch(self, fetch: Option<Arc<dyn FetchDebug>>) -> Self {
        Self { fetch, ..self }
    }

    /// A file with debugging information that this host lacks.
    fn fetched(&self, id: Option<BuildId>) -> Option<PathBuf> {
        self.fetch.as_ref()?.debug_info(id?)
    }

    /// Appends files to those that are known.
    pub(crate) fn extend(&mut self, files: &[Dso]) {
        self.code.extend(files);
        self.info.extend(files);
        self.strings.extend(files);
    }

    /// Keeps these files alone, in this order, and forgets which names were found: numbers of both are others then.
    pub(crate) fn keep(&mut self, files: &[DsoId]) {
        self.code.keep(files);
        self.info.keep(files);
        self.strings.keep(files);
        self.inlining = KnownInlining::default();
        self.names = Mutex::default();
    }

    /// The symbol at a file offset; `None` if the file cannot be read or has no symbol there, and the trace does not say it, either.
    #[must_use]
    pub fn find(&self, file: DsoId, offset: u64) -> Option<Symbol> {
        let stored = self.code.file(file);
        let stored = stored.and_then(|dso| {
            let named = |offset| self.stored.find(dso, offset);
            named(offset).or_else(|| before(named(offset.checked_add(1)?)?))
        });
        let (name, offset) = stored
            .or_else(|| self.of_file(file, offset))
            .or_else(|| self.of_trace(file, offset))?;
        let id = self.found().number(&name);
        Some(Symbol { name, id, offset })
    }

    /// The string of at most `limit` bytes at an address of a process that has this mapping of a file, in a part of the file that the process
    /// cannot write; `None` if there is no such part or the trace and this host do not have it.
    pub(crate) fn string(
        &self,
        mapping: Mapping,
        address: u64,
        limit: u16,
    ) -> Option<Arc<FileString>> {
        let strings = self.strings.get(mapping.dso, |dso| FileStrings {
            stored: self.stored.strings(dso),
            data: self.read_only(dso),
        });
        strings?.find(mapping, address, limit)
    }

    fn read_only(&self, dso: &Dso) -> Option<ReadOnlyData> {
        // Without a build-id, nothing says that the file is the one that was mapped.
        let id = dso.build_id?;
        let view = self.views.iter().find(|view| view.is_of(dso));
        let of_view = view.and_then(|view| Binary::open(&view.at));
        let of_view = of_view.filter(|binary| binary.parse(Some(id)).is_some());
        let program = of_view.or_else(|| search::program(self.buildid_dir.as_deref(), dso))?;
        ReadOnlyData::from_binary(program)
    }

    /// Whether there are names of code that was made at run time.
    pub(crate) fn has_made(&self) -> bool {
        self.stored.has_made()
    }

    /// When the function that a process made at an address is another one, at the earliest after a time; `u64::MAX` if it stays.
    pub(crate) fn made_until(&self, at: MadePlace, time: u64) -> u64 {
        self.stored.made_until(at, time)
    }

    /// The function that a process made at an address and that is there at a time; `None` if the trace does not say it.
    pub(crate) fn made(&self, at: MadePlace, time: u64) -> Option<Symbol> {
        let after = || MadePlace {
            address: at.address.wrapping_add(1),
            ..at
        };
        let named = self.stored.find_made(at, time);
        let (name, offset) = named.or_else(|| before(self.stored.find_made(after(), time)?))?;
        let id = self.found().number(&name);
        Some(Symbol { name, id, offset })
    }

    /// The function's name and the offset in it, by the file's symbols.
    fn of_file(&self, file: DsoId, offset: u64) -> Option<(Arc<str>, u64)> {
        let code = self.code.get(file, |dso| self.read(dso))?.as_ref()?;
        code.symbols.find(code.segments.address(offset)?)
    }

    /// The functions that are inlined at a file offset, and the lines there; `None` if nothing is known.
    pub fn inlining(&self, file: DsoId, offset: u64) -> Option<Arc<FoundInlining>> {
        let known = self.inlining.get(file, offset);
        known.unwrap_or_else(|| {
            let dso = self.code.file(file);
            let stored = dso.and_then(|dso| self.stored.inlining(dso, offset));
            let found = stored.or_else(|| self.inlining_of_file(file, offset));
            let found = found.or_else(|| self.line_of_trace(file, offset));
            let found = found.map(|found| Arc::new(FoundInlining::new(found, &mut self.found())));
            self.inlining.keep(file, offset, found.clone());
            found
        })
    }

    fn inlining_of_file(&self, file: DsoId, offset: u64) -> Option<Inlining> {
        let code = self.code.get(file, |dso| self.read(dso))?.as_ref()?;
        let info = self.info.get(file, |dso| self.read_info(dso))?;
        let info = info.as_ref().ok()?;
        let found = info.at(code.segments.address(offset)?);
        (!found.is_unknown()).then_some(found)
    }

    /// The line that the recording host's debugging information said of a site.
    fn line_of_trace(&self, file: DsoId, offset: u64) -> Option<Inlining> {
        let place = self.recorded.find(self.code.file(file)?, offset)?;
        Some(Inlining {
            calls: Vec::new(),
            source: Some(place.source.clone()?),
        })
    }

    /// Whether the inlined functions of a file were asked for, and its debugging information was too long to read.
    pub fn has_too_long_info(&self, file: DsoId) -> bool {
        matches!(self.info.known(file), Some(Err(NoDwarf::TooLong)))
    }

    /// Whether inlined functions or lines of a file are missing, because a table of its debugging information is longer than is read.
    pub fn has_long_tables(&self, file: DsoId) -> bool {
        let info = self.info.known(file);
        info.is_some_and(|info| info.as_ref().is_ok_and(InlineInfo::has_long_tables))
    }

    fn read_info(&self, dso: &Dso) -> Result<InlineInfo, NoDwarf> {
        let view = self.views.iter().find(|view| view.is_of(dso));
        let view = view.map(|view| view.at.as_path());
        let found = DebugBinary::find(self.buildid_dir.as_deref(), dso, view).or_else(|| {
            let fetched = self.fetched(dso.build_id)?;
            DebugBinary::open(fetched, dso.build_id)
        });
        InlineInfo::read(&found.ok_or(NoDwarf::Absent)?)
    }

    /// The function's name and the offset in it, as the recording host's symbols said.
    fn of_trace(&self, file: DsoId, offset: u64) -> Option<(Arc<str>, u64)> {
        let place = self.recorded.find(self.code.file(file)?, offset)?;
        let function = place.function.as_ref()?;
        Some((Arc::from(function.name.as_str()), function.offset))
    }

    /// Which symbols of a file are known.
    pub fn known(&self, file: DsoId) -> KnownSymbols {
        let here = match self.code.get(file, |dso| self.read(dso)) {
            Some(Some(code)) if code.complete => KnownSymbols::All,
            Some(Some(_)) => KnownSymbols::OfOthers,
            _ => KnownSymbols::NotRead,
        };
        let stored = self.code.file(file).and_then(|dso| self.stored.known(dso));
        stored.map_or(here, |stored| stored.max(here))
    }

    /// A function's name by its number.
    #[must_use]
    pub fn name(&self, id: NameOfSymbol) -> Option<Arc<str>> {
        self.found().name(id)
    }

    fn found(&self) -> MutexGuard<'_, FoundNames> {
        // Nothing in here can be left half-done by a panic elsewhere.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, dso: &Dso) -> Option<Code> {
        if !dso.path.is_absolute() {
            return None;
        }
        let dir = self.buildid_dir.as_deref();
        let view = self.views.iter().find(|view| view.is_of(dso));
        let program = view
            .and_then(|view| Image::read(&view.at, dso.build_id))
            .or_else(|| Image::from_binary(&search::program(dir, dso)?, dso.build_id));
        let segments = program.as_ref().map(|program| program.segments.clone());
        let complete = program.as_ref().is_some_and(|program| program.complete);
        let debug = (!complete).then(|| search::separate(dir, dso, program.as_ref()));
        let debug = debug.flatten().or_else(|| {
            let id = dso.build_id.filter(|_| !complete);
            let fetched = Image::read(&self.fetched(id)?, id)?;
            fetched.complete.then_some(fetched)
        });
        let image = debug.or(program)?;
        Some(Code {
            symbols: image.symbols,
            segments: segments.unwrap_or(image.segments),
            complete: image.complete,
        })
    }
}

/// The place before one in the same function: older recordings name the addresses after calls.
fn before((name, offset): (Arc<str>, u64)) -> Option<(Arc<str>, u64)> {
    Some((name, offset.checked_sub(1)?))
}

/// The symbols of one file, which are read when first requested, from where [`Symbols`] takes those of a trace's files.
#[derive(Debug)]
pub struct FileSymbols(Symbols);

impl FileSymbols {
    /// Symbols of the file at a path, if it has this build-id; `buildid_dir` is the build-id cache (`~/.debug`), if there is one.
    #[must_use]
    pub fn new(buildid_dir: Option<&Path>, path: PathBuf, build_id: Option<BuildId>) -> Self {
        Self(Symbols::new(
            buildid_dir,
            &[Dso {
                path,
                build_id,
                is_data: false,
            }],
        ))
    }

    /// The function at a file offset; `None` if the file cannot be read or has no symbol there.
    #[must_use]
    pub fn function(&self, offset: u64) -> Option<FunctionPlace> {
        let symbol = self.0.find(DsoId(0), offset)?;
        Some(FunctionPlace {
            name: symbol.name.to_string(),
            offset: symbol.offset,
        })
    }
}
