//! Functions that programs copy into memory that they make executable: no table has them, and they keep no frame pointer. They are recognized by
//! their bytes.

use gimli::BaseAddresses;
use memchr::memmem;
use usdtrec_format::Arch;

use crate::code::Code;
use crate::machine::Machine;
use crate::table::{SectionKind, Table};
use crate::unwind_tables::UnwindTables;

/// A function that is known by its bytes.
#[derive(Debug)]
struct KnownFunction {
    bytes: &'static [u8],
    /// How the frame changes: instructions of an entry of a table (DWARF 5, 6.4.2), after those of the common part.
    instructions: &'static [u8],
}

/// Trampolines of CPython (`Python/asm_trampoline.S`), which has one for each Python function with `-X perf` and `-X perf_jit`. An `endbr64` may
/// precede them.
const X86_64: &[KnownFunction] = &[
    // Python 3.12 to 3.14: sub $8, %rsp; call *%rcx; add $8, %rsp; ret
    KnownFunction {
        bytes: b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3",
        // advance 4; CFA %rsp + 16; advance 6; CFA %rsp + 8
        instructions: &[0x44, 0x0e, 16, 0x46, 0x0e, 8],
    },
    // Later: push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret
    KnownFunction {
        bytes: b"\x55\x48\x89\xe5\xff\xd1\x5d\xc3",
        // advance 1; CFA %rsp + 16; %rbp at CFA - 16; advance 6; CFA %rsp + 8; %rbp unchanged
        instructions: &[0x41, 0x0e, 16, 0x86, 2, 0x46, 0x0e, 8, 0xc6],
    },
];

/// The common part of the entries, as they are in `.debug_frame`: the frame is at `%rsp + 8`, and the return address below.
const COMMON: &[u8] = &[
    0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1,
];

/// What may precede them.
const ENDBR64: &[u8] = b"\xf3\x0f\x1e\xfa";
/// Where the call of each ends, bytes: the return address.
const RETURN: usize = 6;
/// CPython fills pieces of memory of this size with copies (`new_code_arena`, `Python/perf_trampoline.c`).
pub const CPYTHON_ARENA_BYTES: usize = 64 << 10;
/// With `-X perf_jit`, bytes between copies.
const PADDING: usize = 0x100;

/// Bytes between the addresses that the table has for the functions.
const APART: usize = 0x100;

/// Functions that are known by their bytes, with the rules for their callers.
#[derive(Debug)]
pub struct CopiedCode {
    functions: &'static [KnownFunction],
    tables: UnwindTables,
}

/// A function in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedFunction {
    /// Where it begins, bytes from the beginning of the code.
    pub offset: usize,
    /// Index among the known functions.
    known: u8,
}

/// A function in a file, of which CPython makes copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedOriginal {
    /// Length, bytes.
    len: usize,
    function: CopiedFunction,
}

impl CopiedOriginal {
    /// The symbols at the start and at the end of the function, in the file of CPython.
    pub const SYMBOLS: [&'static str; 2] = ["_Py_trampoline_func_start", "_Py_trampoline_func_end"];
}

impl CopiedCode {
    /// The functions of an architecture; `None` if none is known. Those of CPython for arm64 keep frame pointers.
    #[must_use]
    pub fn for_arch(arch: Arch) -> Option<Self> {
        let functions = match arch {
            Arch::X86_64 => X86_64,
            _ => return None,
        };
        let mut section = entry(&[COMMON]);
        for (known, function) in functions.iter().enumerate() {
            let range = [APART * (known + 1), function.bytes.len()];
            let [start, len] = range.map(|number| (number as u64).to_le_bytes());
            section.extend(entry(&[&[0; 4], &start, &len, function.instructions]));
        }
        let table = Table::new(
            SectionKind::DebugFrame,
            arch,
            BaseAddresses::default(),
            section,
        );
        Some(Self {
            functions,
            tables: UnwindTables::from_tables(Machine::for_arch(arch)?, vec![table]),
        })
    }

    /// The functions in code, in ascending order.
    #[must_use]
    pub fn find(&self, code: &[u8]) -> Vec<CopiedFunction> {
        let mut found = Vec::new();
        for (known, function) in (0..).zip(self.functions) {
            let offsets = memmem::find_iter(code, function.bytes);
            found.extend(offsets.map(|offset| CopiedFunction { offset, known }));
        }
        found.sort_unstable_by_key(|function| function.offset);
        found
    }

    /// The function that is all of this code.
    #[must_use]
    pub fn original(&self, code: &[u8]) -> Option<CopiedOriginal> {
        let bytes = code.strip_prefix(ENDBR64).unwrap_or(code);
        let known = self.functions.iter().position(|known| known.bytes == bytes);
        Some(CopiedOriginal {
            len: code.len(),
            function: CopiedFunction {
                offset: code.len() - bytes.len(),
                known: u8::try_from(known?).ok()?,
            },
        })
    }

    /// The code before a return address, in memory that CPython has filled with copies, if a call of a copy ends there. Python 3.12 writes them
    /// one after the other, and later versions 16 bytes apart, or more with `-X perf_jit`.
    #[must_use]
    pub fn copy(&self, original: CopiedOriginal, offset: usize) -> Option<Code<'_>> {
        let CopiedOriginal { len, function } = original;
        let rounded = [len, len + PADDING].map(|len| len.next_multiple_of(16));
        let returns = |apart: usize| {
            let is_whole = offset / apart < CPYTHON_ARENA_BYTES / apart;
            is_whole && offset % apart + 1 == function.offset + RETURN
        };
        let is_call = returns(len) || rounded.into_iter().any(returns);
        let within = RETURN - 1;
        is_call.then(|| self.at(function, within)).flatten()
    }

    /// The code at an offset in a function; `None` if the function is shorter.
    #[must_use]
    pub fn at(&self, function: CopiedFunction, within: usize) -> Option<Code<'_>> {
        let known = usize::from(function.known);
        let len = self.functions.get(known)?.bytes.len();
        (within < len).then(|| Code {
            tables: &self.tables,
            address: (APART * (known + 1) + within) as u64,
        })
    }
}

/// An entry of a section: its length, then the bytes.
fn entry(parts: &[&[u8]]) -> Vec<u8> {
    let bytes = parts.concat();
    let mut entry = (bytes.len() as u32).to_le_bytes().to_vec();
    entry.extend(bytes);
    entry
}
