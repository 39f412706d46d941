//! Where the threads of a process have a thread-local variable.

use std::collections::HashMap;

use usdtrec_attach::engine::{ModuleBlock, VariableLocation};
use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::{
    Loader, LoaderSlot, LoaderSlotKind, ObjectFile, ThreadLocal, ThreadLocals,
};
use usdtrec_buildid_cache::process::{mapped_handle, open_mapped};
use usdtrec_buildid_cache::served::{FileStat, Patience};
use usdtrec_format::{Arch, ThreadContext};

use crate::verify::ProcessMemory;

/// Maximum number of files that are kept; then the memory is started anew.
const MAX_FILES: usize = 1 << 16;

/// Maximum number of mappings of code of a process that are looked at.
const MAX_MAPPINGS: usize = 4096;

/// Fixed distances in a descriptor's argument are less than this on arm64, where both they and addresses are positive: nothing can be mapped below
/// (`vm.mmap_min_addr`).
const MAX_DESCRIPTOR_DISTANCE: i64 = 1 << 16;
/// Maximum distance of a variable from the thread pointer, or from the start of its block, bytes. What a loader has not written yet is 0, an addend,
/// or an address.
const MAX_DISTANCE: i64 = 1 << 30;
/// Maximum number of a module.
const MAX_MODULE: u64 = 4096;

/// Finds the variable in processes.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    files: HashMap<FileVersion, ThreadLocals>,
}

/// A file as it was when it was last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    /// s, ns.
    changed: [i64; 2],
}

/// What was found in a process.
#[derive(Debug)]
pub(crate) enum VariableSearch {
    /// It has no such variable, or has ended.
    Nothing,
    /// It has the variable, and the loader has not written yet where.
    NotYet,
    /// Where it has the variable.
    Variable(FoundVariable),
}

/// Where a process has the variable, and the mapping of the file that says so.
#[derive(Debug)]
pub(crate) struct FoundVariable {
    pub(crate) location: VariableLocation,
    mapping: FileMapping,
}

impl FoundVariable {
    /// Whether the process still has the mapping: it executes the program that it did.
    pub(crate) fn is_mapped(&self, pid: i32) -> bool {
        let memory = ProcessMemory::open(pid);
        memory.is_ok_and(|memory| memory.files().any(|map| map == self.mapping))
    }
}

impl Finder {
    /// Looks for the variable in a process: in the order of addresses, the first file that leads to it.
    pub(crate) fn find(&mut self, pid: i32) -> VariableSearch {
        const EXECUTABLE: usize = 2;
        let Ok(memory) = ProcessMemory::open(pid) else {
            return VariableSearch::Nothing;
        };
        let mut loader = None;
        let mut with_variable: Vec<(FileMapping, ThreadLocal)> = Vec::new();
        let code = memory.files().filter(|map| map.permissions[EXECUTABLE]);
        for mapping in code.take(MAX_MAPPINGS) {
            let Some(locals) = self.locals(pid, &mapping) else {
                continue;
            };
            loader = loader.or(locals.loader);
            with_variable.extend(locals.variable.map(|variable| (mapping, variable)));
        }
        let mut outcome = VariableSearch::Nothing;
        for (mapping, variable) in with_variable {
            let object = MappedObject {
                pid,
                memory: &memory,
                mapping: &mapping,
                loader,
            };
            match object.location(variable) {
                Some(location) => {
                    return VariableSearch::Variable(FoundVariable { location, mapping });
                }
                None => outcome = VariableSearch::NotYet,
            }
        }
        outcome
    }

    /// What a file says; `None` if it cannot be opened.
    fn locals(&mut self, pid: i32, mapping: &FileMapping) -> Option<ThreadLocals> {
        let handle = mapped_handle(u32::try_from(pid).ok()?, mapping).ok()?;
        let version = FileVersion::of_stat(handle.stat());
        if let Some(known) = self.files.get(&version) {
            return Some(*known);
        }
        if self.files.len() >= MAX_FILES {
            self.files.clear();
        }
        let read = match ObjectFile::from_handle(handle, mapping.path.clone()) {
            // It is tried again.
            Err(error) if error.is_timeout() => return None,
            read => read.ok(),
        };
        let read = read.and_then(|object| object.thread_locals(ThreadContext::VARIABLE).ok());
        // Nothing is in a file that is no ELF file, or damaged.
        let locals = read.unwrap_or_default();
        self.files.insert(version, locals);
        Some(locals)
    }
}

impl FileVersion {
    const fn of_stat(stat: &FileStat) -> Self {
        Self {
            device: stat.id.device,
            inode: stat.id.inode,
            size: stat.len,
            changed: stat.changed,
        }
    }
}

/// A file with the variable in a process.
struct MappedObject<'a> {
    pid: i32,
    memory: &'a ProcessMemory,
    mapping: &'a FileMapping,
    loader: Option<Loader>,
}

impl MappedObject<'_> {
    /// Where the variable is; `None` if that is not known yet.
    fn location(&self, variable: ThreadLocal) -> Option<VariableLocation> {
        match variable {
            ThreadLocal::AtDistance(offset) => at_distance(offset),
            ThreadLocal::AtSlot(LoaderSlot {
                kind,
                address,
                addend,
            }) => {
                let address = self.load_bias()?.wrapping_add(address);
                let first = self.word(address)?;
                let second = || self.word(address.wrapping_add(8));
                let offset = |found: u64| found.cast_signed().wrapping_add(addend);
                match kind {
                    LoaderSlotKind::Distance => at_distance(offset(first)),
                    LoaderSlotKind::Module => self.in_block(first, addend),
                    LoaderSlotKind::ModuleAndOffset => self.in_block(first, offset(second()?)),
                    LoaderSlotKind::Descriptor => {
                        let argument = second()?;
                        if is_distance(argument.cast_signed()) {
                            return at_distance(offset(argument));
                        }
                        let module = self.word(argument)?;
                        let within = self.word(argument.wrapping_add(8))?;
                        self.in_block(module, offset(within))
                    }
                }
            }
        }
    }

    fn load_bias(&self) -> Option<u64> {
        let pid = u32::try_from(self.pid).ok()?;
        let object = open_mapped(pid, self.mapping, Patience::Usual).ok()?;
        let page = rustix::param::page_size() as u64;
        object.load_bias(self.mapping.range.start, self.mapping.offset, page)
    }

    /// At an offset from the start of a module's block.
    fn in_block(&self, module: u64, offset: i64) -> Option<VariableLocation> {
        if !(1..=MAX_MODULE).contains(&module) || !(0..MAX_DISTANCE).contains(&offset) {
            return None;
        }
        // Entries of glibc are two words (`dtv_t`), and the length is in front of the first one, which is no module's. musl has the length in
        // the first one. The pointer to them is in glibc's `tcbhead_t`, which begins at the thread pointer, and in musl's `struct pthread`, which
        // begins there on x86-64, and ends there on arm64.
        let is_above = blocks_are_above();
        let block = match self.loader? {
            Loader::Glibc => ModuleBlock {
                vector: if is_above { 0 } else { 8 },
                module,
                entry: 16 * module,
                length: -16,
            },
            Loader::Musl => ModuleBlock {
                vector: if is_above { -8 } else { 8 },
                module,
                entry: 8 * module,
                length: 0,
            },
        };
        Some(VariableLocation {
            offset,
            block: Some(block),
        })
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.memory.word(address, true).ok().flatten()
    }
}

/// At a distance from the thread pointer.
fn at_distance(offset: i64) -> Option<VariableLocation> {
    let is_possible = match blocks_are_above() {
        // After two words of the C library.
        true => (16..MAX_DISTANCE).contains(&offset),
        false => (-MAX_DISTANCE..0).contains(&offset),
    };
    is_possible.then_some(VariableLocation {
        offset,
        block: None,
    })
}

/// Whether the argument of a descriptor is a distance from the thread pointer, and no address.
fn is_distance(argument: i64) -> bool {
    match blocks_are_above() {
        true => (0..MAX_DESCRIPTOR_DISTANCE).contains(&argument),
        false => argument <= 0,
    }
}

/// Whether blocks at fixed distances are above the thread pointer (arm64), and not below it (x86-64).
fn blocks_are_above() -> bool {
    Arch::host() == Some(Arch::Aarch64)
}
