//! The files that recorded processes have mapped, with their unwind tables, and the mapping of an address.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_buildid_cache::elf::ObjectFile;

use super::tables::{DescriptorRoom, FileElsewhere, MappedFile, RecordedMapping};
use crate::limits::{MAX_MAPPED_FILES, MAX_TABLE_BYTES};
use crate::process_table::ProcessTable;

/// The files of a process table.
#[derive(Debug)]
pub(super) struct UnwoundFiles {
    /// By their numbers in the table.
    files: HashMap<u64, MappedFile>,
    /// Number of the last one.
    last: Option<u64>,
    room: Rc<DescriptorRoom>,
    /// Open files: those with recorded probes.
    open: Vec<Arc<ObjectFile>>,
}

/// The mapping at an address of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundMapping<'m> {
    pub(super) file: &'m MappedFile,
    /// File offset of the address.
    pub(super) offset: u64,
    pub(super) is_executable: bool,
    pub(super) place: RecordedMapping,
}

impl UnwoundFiles {
    pub(super) fn new() -> Self {
        Self {
            files: HashMap::default(),
            last: None,
            room: Rc::new(DescriptorRoom::new()),
            open: Vec::new(),
        }
    }

    /// Adds files whose tables can be read whatever becomes of their paths and processes.
    pub(super) fn add_open(&mut self, open: Vec<Arc<ObjectFile>>) {
        for file in self.files.values_mut() {
            if file.open.is_none() {
                file.open = open.iter().find(|open| file.is_of(open)).cloned();
            }
        }
        self.open.extend(open);
    }

    /// Takes the files that are new in the table.
    pub(super) fn learn(&mut self, table: &ProcessTable) {
        let mut last = self.last;
        for known in table.files_after(self.last) {
            let mut file = MappedFile::new(&known.path, known.identity, &self.room);
            file.open = self.open.iter().find(|open| file.is_of(open)).cloned();
            self.files.insert(known.number, file);
            last = last.max(Some(known.number));
        }
        self.last = last;
        if self.files.len() >= 2 * MAX_MAPPED_FILES {
            let numbers = table.file_numbers();
            self.files
                .retain(|number, file| numbers.contains(number) || file.elsewhere().is_some());
        }
    }

    /// The files that were read and are not those at their paths.
    pub(super) fn elsewhere(&self) -> Vec<FileElsewhere> {
        let files = self.files.values();
        files.filter_map(MappedFile::elsewhere).cloned().collect()
    }

    /// The mapping at an address of a process at a time.
    pub(super) fn find(
        &self,
        table: &ProcessTable,
        pid: i32,
        address: u64,
        time: u64,
    ) -> Option<FoundMapping<'_>> {
        let mapping = table.at(pid, time)?.mapping(address, time)?;
        let start = mapping.range.start;
        Some(FoundMapping {
            file: self.files.get(&mapping.file.number)?,
            offset: mapping.offset.wrapping_add(address - start),
            is_executable: mapping.is_executable,
            place: RecordedMapping {
                pid,
                start,
                end: mapping.range.end,
                since: mapping.since,
            },
        })
    }

    /// Forgets tables that take too much memory: they are read again when they are needed.
    pub(super) fn trim(&mut self) {
        if self.files.values().map(MappedFile::size).sum::<usize>() > MAX_TABLE_BYTES {
            self.files.values_mut().for_each(MappedFile::forget);
        }
    }
}
