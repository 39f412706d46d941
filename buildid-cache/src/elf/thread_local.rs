//! Where a process has a thread-local variable that a file exports (x86-64; "ELF Handling For Thread-Local Storage", and RFC "Thread-Local
//! Storage Descriptors for IA32 and AMD64/EM64T").
//!
//! A program has its variables at a fixed distance from the thread pointer, which is known from the file (local exec). All other code finds them
//! by what the loader writes to a slot in the file's data, which a relocation names: the distance (initial exec), a descriptor, or the number of a
//! module and an offset (general dynamic).

use usdtrec_format::Arch;

use super::error::ElfError;
use super::object_file::ObjectFile;

/// Maximum size of a table that is read, bytes.
const TABLE_LIMIT: u64 = 16 << 20;

const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 24;
const DYNAMIC_BYTES: usize = 16;
/// `STT_TLS`.
const THREAD_LOCAL: u8 = 6;
/// `R_X86_64_DTPMOD64`: a module, followed by an offset in its block.
const MODULE: u32 = 16;
/// `R_X86_64_TPOFF64`: the distance from the thread pointer.
const DISTANCE: u32 = 18;
/// `R_X86_64_TLSDESC`.
const DESCRIPTOR: u32 = 36;
/// `DT_FLAGS_1`, and `DF_1_PIE` in it.
const FLAGS_1: u64 = 0x6fff_fffb;
const PIE: u64 = 0x0800_0000;

/// A function of the dynamic loader, and variables and functions that tell loaders from each other.
const GET_ADDRESS: &[u8] = b"__tls_get_addr";
const OF_GLIBC: &[u8] = b"_rtld_global";
const OF_MUSL: &[u8] = b"__libc_start_main";

/// What a file says of thread-local storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLocals {
    /// How processes that map the file find the variable; `None` if it has none of this name, or no code that finds it.
    pub variable: Option<ThreadLocal>,
    /// The C library whose dynamic loader the file is; `None` if it is none that is known.
    pub loader: Option<Loader>,
}

/// A dynamic loader, which allocates thread-local storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// That of the GNU C library.
    Glibc,
    /// musl.
    Musl,
}

/// How a thread-local variable is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadLocal {
    /// At this distance from the thread pointer, bytes.
    AtDistance(i64),
    /// By what the loader writes to a slot.
    AtSlot(LoaderSlot),
}

/// A word of a file's data to which the loader writes what leads to a thread-local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderSlot {
    /// What it writes.
    pub kind: LoaderSlotKind,
    /// Link-time address.
    pub address: u64,
    /// What is added to the distance or the offset that is found, bytes.
    pub addend: i64,
}

/// What a loader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoaderSlotKind {
    /// The distance from the thread pointer.
    Distance,
    /// The address of a function, and its argument.
    Descriptor,
    /// The number of a module and an offset.
    ModuleAndOffset,
    /// The number of a module; the addend is the offset.
    Module,
}

/// The symbol of the variable.
#[derive(Clone, Copy)]
struct Variable {
    number: u64,
    value: u64,
    is_defined: bool,
}

impl ObjectFile {
    /// What the file says of the thread-local variable of this name, which is in its `.dynsym`, and of the loader.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn thread_locals(&self, name: &str) -> Result<ThreadLocals, ElfError> {
        let mut found = ThreadLocals::default();
        if self.arch() != Some(Arch::X86_64) || !self.is_class64() {
            return Ok(found);
        }
        let (Some(symbols), Some(names)) = (self.section(".dynsym"), self.section(".dynstr"))
        else {
            return Ok(found);
        };
        let symbols = self.content(symbols, TABLE_LIMIT)?;
        let names = self.content(names, TABLE_LIMIT)?;
        let mut variable = None;
        let [mut gets_address, mut is_glibc, mut is_musl] = [false; 3];
        for (number, symbol) in (0..).zip(symbols.chunks_exact(SYMBOL_BYTES)) {
            let is = |wanted| is_called(symbol, &names, wanted);
            let is_defined = half(symbol, 6).is_some_and(|section| section != 0);
            let kind = symbol.get(4).map(|info| info & 15);
            gets_address |= is_defined && is(GET_ADDRESS);
            is_glibc |= is_defined && is(OF_GLIBC);
            is_musl |= is_defined && is(OF_MUSL);
            if kind == Some(THREAD_LOCAL) && is(name.as_bytes()) {
                variable = Some(Variable {
                    number,
                    value: word(symbol, 8).unwrap_or(0),
                    is_defined,
                });
            }
        }
        found.loader = match gets_address {
            true if is_glibc => Some(Loader::Glibc),
            true if is_musl => Some(Loader::Musl),
            _ => None,
        };
        if let Some(variable) = variable {
            let slot = self.loader_slot(variable)?.map(ThreadLocal::AtSlot);
            found.variable = slot.or_else(|| self.distance(variable));
        }
        Ok(found)
    }

    /// The slot that leads to the variable, best by its own relocation.
    fn loader_slot(&self, variable: Variable) -> Result<Option<LoaderSlot>, ElfError> {
        let mut of_module = None;
        for name in [".rela.dyn", ".rela.plt"] {
            let Some(section) = self.section(name) else {
                continue;
            };
            let content = self.content(section, TABLE_LIMIT)?;
            for relocation in content.chunks_exact(RELOCATION_BYTES) {
                let [Some(address), Some(info), Some(addend)] =
                    [0, 8, 16].map(|at| word(relocation, at))
                else {
                    continue;
                };
                // Of a symbol that no other file can hide, there are relocations without a symbol.
                let is_own = info >> 32 == variable.number;
                let is_of_module = info >> 32 == 0 && variable.is_defined;
                let beyond = match is_own {
                    true => 0,
                    false => variable.value.wrapping_sub(addend).cast_signed(),
                };
                let (kind, addend) = match info as u32 {
                    DISTANCE => (LoaderSlotKind::Distance, beyond),
                    DESCRIPTOR => (LoaderSlotKind::Descriptor, beyond),
                    MODULE if is_own => (LoaderSlotKind::ModuleAndOffset, 0),
                    MODULE => (LoaderSlotKind::Module, variable.value.cast_signed()),
                    _ => continue,
                };
                let slot = LoaderSlot {
                    kind,
                    address,
                    addend,
                };
                if is_own {
                    return Ok(Some(slot));
                }
                if is_of_module {
                    of_module = of_module.or(Some(slot));
                }
            }
        }
        Ok(of_module)
    }

    /// The distance of a program's own variable from the thread pointer: the block of the program ends there.
    fn distance(&self, variable: Variable) -> Option<ThreadLocal> {
        let segment = self.headers().thread_local?;
        if !variable.is_defined || !self.is_program() {
            return None;
        }
        let mask = segment.align.max(1).wrapping_sub(1);
        let above = segment
            .address
            .wrapping_add(segment.memory_size)
            .wrapping_neg();
        let block = segment.memory_size.wrapping_add(above & mask);
        let distance = variable.value.wrapping_sub(block).cast_signed();
        Some(ThreadLocal::AtDistance(distance))
    }

    /// Whether it is a program, and not a library.
    fn is_program(&self) -> bool {
        if self.headers().is_program {
            return true;
        }
        let [_, _, (offset, len)] = self.headers().tables;
        let dynamic = self.bytes_at(offset, len).unwrap_or_default();
        let mut entries = dynamic.chunks_exact(DYNAMIC_BYTES);
        entries.any(|entry| {
            let is_pie = |flags| flags & PIE != 0;
            word(entry, 0) == Some(FLAGS_1) && word(entry, 8).is_some_and(is_pie)
        })
    }
}

/// Whether a symbol has this name. The end of the name is not searched for: the names of a hostile file may be long.
fn is_called(symbol: &[u8], names: &[u8], wanted: &[u8]) -> bool {
    let at = symbol.first_chunk().map(|at| u32::from_le_bytes(*at));
    let rest = at.and_then(|at| names.get(at as usize..));
    let after = rest.and_then(|rest| rest.strip_prefix(wanted));
    after.is_some_and(|after| after.first() == Some(&0))
}

fn word(entry: &[u8], at: usize) -> Option<u64> {
    let bytes = entry.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

fn half(entry: &[u8], at: usize) -> Option<u16> {
    let bytes = entry.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// What the compiler and the linker make of the variable, in each access model.
    #[test]
    fn each_access_model_leads_to_the_variable() {
        const CODE: &str = "__thread int before = 1; __thread void *wanted; \
                            void *get(void) { return wanted; } int main(void) { return before; }\n";
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.c"), CODE).unwrap();
        let found = |name: &str, options: &[&str]| {
            let mut compiler = Command::new("cc");
            compiler.args(["-O1", "-o"]).arg(path(name)).args(options);
            let built = compiler.arg(path("a.c")).status();
            built.is_ok_and(|status| status.success()).then(|| {
                let file = ObjectFile::open(&path(name)).unwrap();
                assert_eq!(file.thread_locals("before_").unwrap().variable, None);
                file.thread_locals("wanted").unwrap().variable.unwrap()
            })
        };
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        for options in [&["-rdynamic", "-no-pie"], &["-rdynamic", "-pie"]] {
            // Without a compiler, end-to-end tests have such programs.
            let Some(local) = found("program", options) else {
                return;
            };
            assert!(
                matches!(local, ThreadLocal::AtDistance(-64..=-8)),
                "{local:?}"
            );
        }
        for (option, kind) in [
            (
                "-ftls-model=global-dynamic",
                LoaderSlotKind::ModuleAndOffset,
            ),
            ("-mtls-dialect=gnu2", LoaderSlotKind::Descriptor),
            ("-ftls-model=initial-exec", LoaderSlotKind::Distance),
        ] {
            let local = found("library.so", &["-shared", "-fPIC", option]);
            let Some(ThreadLocal::AtSlot(slot)) = local else {
                panic!("{option}: {local:?}");
            };
            assert_eq!((slot.kind, slot.addend), (kind, 0), "{option}");
        }
    }
}
