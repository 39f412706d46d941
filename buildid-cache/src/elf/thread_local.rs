//! Where a process has a thread-local variable that a file exports (x86-64 and arm64; "ELF Handling For Thread-Local Storage", RFC "Thread-Local
//! Storage Descriptors for IA32 and AMD64/EM64T", and "ELF for the Arm 64-bit Architecture").
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
/// Words of the C library at the thread pointer of arm64, bytes: blocks are above them.
const RESERVED: u64 = 16;
/// `DT_FLAGS_1`, and `DF_1_PIE` in it.
const FLAGS_1: u64 = 0x6fff_fffb;
const PIE: u64 = 0x0800_0000;

/// A function of the dynamic loader, and variables and functions that distinguish loaders.
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
    /// The loader of the GNU C library.
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

/// How an architecture has thread-local storage.
#[derive(Clone, Copy)]
struct Storage {
    /// Type of the relocation of a module, followed by an offset in its block.
    module: u32,
    /// Type of the relocation of the distance from the thread pointer.
    distance: u32,
    /// Type of the relocation of a descriptor.
    descriptor: u32,
    /// Whether the block of the program is above the thread pointer, and not below it.
    is_above: bool,
}

impl Storage {
    /// `R_X86_64_DTPMOD64`, `R_X86_64_TPOFF64`, `R_X86_64_TLSDESC`.
    const X86_64: Self = Self {
        module: 16,
        distance: 18,
        descriptor: 36,
        is_above: false,
    };
    /// `R_AARCH64_TLS_DTPMOD64`, `R_AARCH64_TLS_TPREL64`, `R_AARCH64_TLSDESC`.
    const AARCH64: Self = Self {
        module: 1028,
        distance: 1030,
        descriptor: 1031,
        is_above: true,
    };

    /// The storage of a file; `None` for architectures whose storage is not known.
    fn of_file(file: &ObjectFile) -> Option<Self> {
        match file.arch()? {
            Arch::X86_64 if file.is_class64() => Some(Self::X86_64),
            Arch::Aarch64 => Some(Self::AARCH64),
            _ => None,
        }
    }
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
        let (Some(storage), Some(symbols), Some(names)) = (
            Storage::of_file(self),
            self.section(".dynsym"),
            self.section(".dynstr"),
        ) else {
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
            let slot = self.loader_slot(variable, storage)?;
            found.variable = match slot {
                Some(slot) => Some(ThreadLocal::AtSlot(slot)),
                None => self.distance(variable, storage),
            };
        }
        Ok(found)
    }

    /// The slot that leads to the variable, best by its own relocation.
    fn loader_slot(
        &self,
        variable: Variable,
        storage: Storage,
    ) -> Result<Option<LoaderSlot>, ElfError> {
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
                    kind if kind == storage.distance => (LoaderSlotKind::Distance, beyond),
                    kind if kind == storage.descriptor => (LoaderSlotKind::Descriptor, beyond),
                    kind if kind != storage.module => continue,
                    _ if is_own => (LoaderSlotKind::ModuleAndOffset, 0),
                    _ => (LoaderSlotKind::Module, variable.value.cast_signed()),
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

    /// The distance of a program's own variable from the thread pointer: the block of the program ends there, or begins after what is reserved there.
    fn distance(&self, variable: Variable, storage: Storage) -> Option<ThreadLocal> {
        let segment = self.headers().thread_local?;
        if !variable.is_defined || !self.is_program() {
            return None;
        }
        let mask = segment.align.max(1).wrapping_sub(1);
        let block = if storage.is_above {
            // It is aligned as the segment is, whose address may not be a multiple of the alignment.
            RESERVED.wrapping_add(segment.address.wrapping_sub(RESERVED) & mask)
        } else {
            let end = segment.address.wrapping_add(segment.memory_size);
            let size = segment.memory_size.wrapping_add(end.wrapping_neg() & mask);
            size.wrapping_neg()
        };
        let distance = variable.value.wrapping_add(block).cast_signed();
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
            let is_foreign = options.contains(&"-nostdlib");
            let mut compiler = Command::new(if is_foreign { "clang" } else { "cc" });
            compiler.args(["-O1", "-o"]).arg(path(name)).args(options);
            let built = compiler.arg(path("a.c")).status();
            built.is_ok_and(|status| status.success()).then(|| {
                let file = ObjectFile::open(&path(name)).unwrap();
                assert_eq!(file.thread_locals("before_").unwrap().variable, None);
                file.thread_locals("wanted").unwrap().variable.unwrap()
            })
        };
        let descriptors = LoaderSlotKind::Descriptor;
        let libraries = |models: &[(&str, LoaderSlotKind)], for_arch: &[&str]| {
            for &(option, kind) in models {
                let options = [&["-shared", "-fPIC", option], for_arch].concat();
                let local = found("library.so", &options);
                let Some(ThreadLocal::AtSlot(slot)) = local else {
                    panic!("{option}: {local:?}");
                };
                assert_eq!((slot.kind, slot.addend), (kind, 0), "{option}");
            }
        };
        // Two words of the C library, and the variable before it.
        let arm64 = [
            "--target=aarch64-linux-gnu",
            "-fuse-ld=lld",
            "-nostdlib",
            "-Wl,-e,main,--export-dynamic",
        ];
        for kind in ["-no-pie", "-pie"] {
            // Without a compiler, end-to-end tests have such programs.
            if let Some(local) = found("program", &[&arm64[..], &[kind]].concat()) {
                assert_eq!(local, ThreadLocal::AtDistance(24));
                let distance = ("-ftls-model=initial-exec", LoaderSlotKind::Distance);
                let dynamic = ("-ftls-model=global-dynamic", descriptors);
                libraries(&[distance, dynamic], &arm64);
            }
        }
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        for options in [&["-rdynamic", "-no-pie"], &["-rdynamic", "-pie"]] {
            let Some(local) = found("program", options) else {
                return;
            };
            assert!(
                matches!(local, ThreadLocal::AtDistance(-64..=-8)),
                "{local:?}"
            );
        }
        let models = [
            (
                "-ftls-model=global-dynamic",
                LoaderSlotKind::ModuleAndOffset,
            ),
            ("-mtls-dialect=gnu2", descriptors),
            ("-ftls-model=initial-exec", LoaderSlotKind::Distance),
        ];
        libraries(&models, &[]);
    }
}
