//! Which process had which file mapped where.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use usdtrec_format::BuildId;

use crate::process::interner::{Region, StringId, StringPool};
use crate::process::log::{KERNEL, ProcessLog};
use crate::process::mappers::{FileBuildId, MappedFile, RecordedFiles};
use crate::process::spaces::{FilePart, Spaces};
use crate::process::{Dso, DsoId, Mapping};

/// The mappings of a trace's processes, and the files that they mapped.
#[derive(Debug, Default)]
pub struct Mappings {
    spaces: Spaces,
    dsos: Vec<Dso>,
    /// The number of each of them.
    numbers: HashMap<Dso, DsoId>,
    recorded: Arc<RecordedFiles>,
}

/// The files of a log that came already.
type Known = HashMap<LoggedFile, DsoId>;

/// A file as a log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LoggedFile {
    path: StringId,
    build_id: Option<StringId>,
    is_data: bool,
}

impl LoggedFile {
    const fn from_region(region: &Region) -> Self {
        Self {
            path: region.path,
            build_id: region.build_id,
            is_data: region.is_data,
        }
    }
}

impl Mappings {
    /// No mapping yet; files without build-ids have those of `recorded`.
    pub(crate) fn with_recorded(recorded: Arc<RecordedFiles>) -> Self {
        Self {
            recorded,
            ..Self::default()
        }
    }

    /// Takes other recorded files, for files that are mapped from now on.
    pub(crate) fn set_recorded(&mut self, recorded: Arc<RecordedFiles>) {
        self.recorded = recorded;
    }

    /// Puts the mappings of the log of a whole trace in order. `build_ids` are those of files that the trace names elsewhere, by path, for
    /// mappings that carry none.
    #[must_use]
    pub fn new(log: ProcessLog, build_ids: &[FileBuildId<'_>]) -> Self {
        Self::with_recorded(Arc::new(RecordedFiles::new(&[], build_ids))).settle(log)
    }

    /// With all of the log of a whole trace.
    pub(crate) fn settle(mut self, log: ProcessLog) -> Self {
        let mut known = Known::default();
        let regions = log.regions.iter();
        let parts = regions.map(|region| self.part(region, &log.strings, &mut known));
        let parts: Vec<FilePart> = parts.collect();
        self.spaces = Spaces::settle(log.placings, parts);
        self
    }

    /// Adds what happened in a stream after all that is known.
    pub(crate) fn learn(&mut self, log: ProcessLog) {
        let mut placings = log.placings;
        placings.sort_by_key(|placing| placing.time);
        let mut known = Known::default();
        for placing in placings {
            let region = placing.change.region();
            let region = region.and_then(|region| log.regions.get(region));
            let part = region.map(|region| self.part(region, &log.strings, &mut known));
            self.spaces.place(&placing, part.as_ref());
        }
    }

    fn part(&mut self, region: &Region, strings: &StringPool, known: &mut Known) -> FilePart {
        FilePart {
            len: region.len,
            offset: region.offset,
            dso: self.dso(LoggedFile::from_region(region), strings, known),
        }
    }

    fn dso(&mut self, file: LoggedFile, strings: &StringPool, known: &mut Known) -> DsoId {
        if let Some(id) = known.get(&file) {
            return *id;
        }
        let path = strings.get(file.path);
        let build_id = file
            .build_id
            .and_then(|id| BuildId::new(strings.get(id)).ok());
        let build_id = self.recorded.build_id(MappedFile { path, build_id });
        let path = Path::new(OsStr::from_bytes(path)).to_owned();
        let dsos = &mut self.dsos;
        let id = *self
            .numbers
            .entry(Dso {
                path,
                build_id,
                is_data: file.is_data,
            })
            .or_insert_with_key(|dso| {
                dsos.push(dso.clone());
                DsoId(dsos.len() as u32 - 1)
            });
        known.insert(file, id);
        id
    }

    /// Forgets what is of no use for samples of a stream after a time, and gives the old numbers of the files, in the new order.
    pub(crate) fn forget_before(&mut self, time: u64, living: &HashSet<i32>) -> Vec<DsoId> {
        self.spaces.forget_before(time, living);
        self.keep_files()
    }

    /// Address spaces and mappings of a stream that are known.
    pub(crate) fn len(&self) -> usize {
        self.spaces.len()
    }

    /// Keeps the files of mappings alone.
    fn keep_files(&mut self) -> Vec<DsoId> {
        let all = std::mem::take(&mut self.dsos);
        let mut numbers: HashMap<DsoId, DsoId> = HashMap::default();
        let mut old = Vec::new();
        for id in self.spaces.files_mut() {
            *id = *numbers.entry(*id).or_insert_with(|| {
                old.push(*id);
                DsoId(old.len() as u32 - 1)
            });
        }
        let kept = old.iter().filter_map(|id| all.get(id.0 as usize));
        self.dsos = kept.cloned().collect();
        let numbered = self.dsos.iter().cloned().zip((0..).map(DsoId));
        self.numbers = numbered.collect();
        old
    }

    /// What a process has mapped at an address at a time.
    #[must_use]
    pub fn mapping(&self, pid: i32, address: u64, time: u64) -> Option<Mapping> {
        self.spaces.find(pid, address, time)
    }

    /// What the kernel has at an address.
    #[must_use]
    pub fn kernel_mapping(&self, address: u64) -> Option<Mapping> {
        self.spaces.find(KERNEL, address, u64::MAX)
    }

    /// The first time after `time` at which the mappings of a process change; `u64::MAX` if they do not.
    #[must_use]
    pub fn mappings_until(&self, pid: i32, time: u64) -> u64 {
        self.spaces.stable_until(pid, time)
    }

    /// Whether a process has executable memory of no file at a time, where programs make code.
    pub(crate) fn is_maker(&self, pid: i32, time: u64) -> bool {
        let made = |mapping: Mapping| {
            let is_made = self.file(mapping.dso).is_some_and(Dso::is_for_code);
            is_made.then_some(())
        };
        self.spaces.find_mapped(pid, time, made).is_some()
    }

    /// What `find` finds in the mappings of a process at a time, the last one first.
    pub(crate) fn find_mapped<T>(
        &self,
        pid: i32,
        time: u64,
        find: impl Fn(Mapping) -> Option<T>,
    ) -> Option<T> {
        self.spaces.find_mapped(pid, time, find)
    }

    /// When the program that a process runs at a time began, by fork or execve, ns; 0 if that is not known.
    pub(crate) fn began(&self, pid: i32, time: u64) -> u64 {
        self.spaces.began(pid, time)
    }

    /// A mapped file.
    #[must_use]
    pub fn file(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.get(id.0 as usize)
    }

    /// All mapped files.
    #[must_use]
    pub fn files(&self) -> &[Dso] {
        &self.dsos
    }
}
