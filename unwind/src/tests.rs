//! Stacks that are unwound by tables written here: what compilers do not write.

use gimli::BaseAddresses;
use usdtrec_format::Arch;

use crate::code::{Code, MappedCode, ProcessCode};
use crate::copied_code::CopiedCode;
use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::StackCopy;
use crate::stack_end::StackEnd;
use crate::table::{SectionKind, Table};
use crate::unwind_tables::UnwindTables;
use crate::unwinder::{StackFrame, Unwinder};

/// Columns of x86-64.
const FP: u16 = 6;
const SP: u16 = 7;
const IP: u16 = 16;
/// Where the copies of stacks begin.
const STACK: u64 = 0x7000_0000;

/// An entry of a section: its length, and after that the bytes.
fn entry(bytes: &[u8]) -> Vec<u8> {
    let mut entry = (bytes.len() as u32).to_le_bytes().to_vec();
    entry.extend(bytes);
    entry
}

/// A common part whose rules are those after a call: the frame is at `%rsp + 8`, and the return address below.
fn common(augmentation: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 1];
    bytes.extend(augmentation);
    bytes.extend([0, 1, 0x78, 16]);
    // DW_CFA_def_cfa 7, 8; DW_CFA_offset 16, 1
    bytes.extend([0x0c, 7, 8, 0x90, 1]);
    entry(&bytes)
}

/// The entry for 4,096 bytes of code from `start`, of the common part that is at the beginning of the section.
fn function(at: usize, start: u64, instructions: &[u8]) -> Vec<u8> {
    let mut bytes = (at as u32 + 4).to_le_bytes().to_vec();
    bytes.extend(start.to_le_bytes());
    bytes.extend(0x1000_u64.to_le_bytes());
    bytes.extend(instructions);
    entry(&bytes)
}

/// A section with a common part and functions at 0x1000, 0x2000, ... that have these instructions.
fn section(functions: &[&[u8]]) -> Vec<u8> {
    let mut bytes = common(b"");
    for (at, instructions) in functions.iter().enumerate() {
        let start = 0x1000 * (at as u64 + 1);
        bytes.extend(function(bytes.len(), start, instructions));
    }
    bytes
}

fn tables(section: Vec<u8>) -> UnwindTables {
    let kind = SectionKind::EhFrame;
    let table = Table::new(kind, Arch::X86_64, BaseAddresses::default(), section);
    UnwindTables::from_tables(Machine::for_arch(Arch::X86_64).unwrap(), vec![table])
        .with_signal_return(0xf000)
}

/// A process with a file at all addresses but these: from 0x10000 on it has made code, and from 0x20000 on nothing.
#[derive(Clone, Copy)]
struct OneFile<'t> {
    tables: &'t UnwindTables,
    is_maker: bool,
}

impl<'t> ProcessCode<'t> for OneFile<'t> {
    fn at(&mut self, address: u64) -> Option<MappedCode<'t>> {
        let tables = self.tables;
        match address {
            0..0x1_0000 => Some(MappedCode::File(Code { tables, address })),
            0x1_0000..0x2_0000 => Some(MappedCode::Made),
            _ => None,
        }
    }

    fn is_maker(&mut self) -> bool {
        self.is_maker
    }
}

/// Unwinds a stack of words from a hit at an address.
fn unwind(section: Vec<u8>, ip: u64, words: &[u64], limit: usize) -> (Vec<u64>, StackEnd) {
    let tables = tables(section);
    let code = OneFile {
        tables: &tables,
        is_maker: false,
    };
    unwind_process(code, Registers::default(), ip, words, limit)
}

/// Unwinds a stack of words in a process from a hit at an address, where the other registers are these.
fn unwind_process(
    code: OneFile<'_>,
    mut hit: Registers,
    ip: u64,
    words: &[u64],
    limit: usize,
) -> (Vec<u64>, StackEnd) {
    hit.set(IP, Some(ip));
    hit.set(SP, Some(STACK));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackCopy {
        start: STACK,
        bytes: &bytes,
    };
    let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
    let mut frames = Vec::new();
    let end = unwinder.unwind(&hit, stack, code, limit, &mut frames);
    (frames.into_iter().map(StackFrame::code).collect(), end)
}

#[test]
fn a_stack_ends_with_the_function_that_has_no_caller() {
    // DW_CFA_undefined 16
    let functions: &[&[u8]] = &[&[], &[0x07, 16]];
    let stack = [0x1010, 0x1020, 0x2010, 0x1030];
    let found = unwind(section(functions), 0x1005, &stack, 100);
    assert_eq!(
        found,
        (vec![0x1005, 0x100f, 0x101f, 0x200f], StackEnd::Outermost)
    );
    let found = unwind(section(functions), 0x1005, &[0x1010, 0], 100);
    assert_eq!(found, (vec![0x1005, 0x100f], StackEnd::Outermost));
}

#[test]
fn a_cut_stack_says_why() {
    let cut = |functions: &[&[u8]], stack: &[u64]| {
        let (frames, end) = unwind(section(functions), 0x1005, stack, 3);
        (frames.len(), end)
    };
    assert_eq!(cut(&[&[]], &[0x1010; 9]), (3, StackEnd::Limit));
    assert_eq!(cut(&[&[]], &[0x1010]), (2, StackEnd::CopyEnds));
    assert_eq!(cut(&[&[]], &[0x9000; 9]), (2, StackEnd::NoEntry));
    // The caller of what is called at the beginning of a function is the function before it.
    assert_eq!(cut(&[&[]], &[0x1000; 9]), (2, StackEnd::NoEntry));
    // DW_CFA_def_cfa 3, 0
    let unknown = StackEnd::UnknownRegister(3);
    assert_eq!(cut(&[&[0x0c, 3, 0]], &[]), (1, unknown));
    // DW_CFA_def_cfa_offset 0: the return address is below the stack pointer.
    let below = StackEnd::NotCopied(STACK - 8);
    assert_eq!(cut(&[&[0x0e, 0]], &[]), (1, below));
    // An instruction that there is not.
    assert_eq!(cut(&[&[0x3f]], &[]), (1, StackEnd::BadEntry));
    // DW_CFA_restore_state without DW_CFA_remember_state
    assert_eq!(cut(&[&[0x0b]], &[]), (1, StackEnd::BadEntry));
    // DW_CFA_same_value 16: the return address is no register.
    assert_eq!(cut(&[&[0x08, 16]], &[0; 9]), (1, StackEnd::BadEntry));
}

#[test]
fn a_stack_that_leads_nowhere_ends() {
    // DW_CFA_def_cfa_offset 0; DW_CFA_val_expression 16, DW_OP_breg16 +1: the caller has the same frame.
    let same = [0x0e, 0, 0x16, 16, 2, 0x80, 1];
    let (frames, end) = unwind(section(&[&same]), 0x1005, &[], 1 << 20);
    assert_eq!((frames.len(), end), (2, StackEnd::NotAbove));
    // The frame of a signal handler may be anywhere. DW_CFA_val_expression 7, DW_OP_breg7 0; 16, DW_OP_breg16 0
    let mut signals = common(b"S");
    signals.extend(function(
        signals.len(),
        0x1000,
        &[0x16, 7, 2, 0x77, 0, 0x16, 16, 2, 0x80, 0],
    ));
    let (frames, end) = unwind(signals, 0x1005, &[], 100);
    assert_eq!(end, StackEnd::Limit);
    assert_eq!(frames, [0x1005; 100], "no return addresses");
}

#[test]
fn the_registers_that_a_signal_interrupted_are_those_that_the_kernel_saved() {
    let mut stack = [0; 40];
    stack[0] = 0xf000;
    // The stack pointer of the code at 0xf000 is that of the next word.
    stack[1 + 160 / 8] = STACK + 8 * 30;
    stack[1 + 168 / 8] = 0x1005;
    stack[30] = 0x1010;
    let found = unwind(section(&[&[]]), 0x1050, &stack, 100);
    let frames = vec![0x1050, 0xefff, 0x1005, 0x100f];
    assert_eq!(found, (frames, StackEnd::Outermost));
    assert_eq!(
        unwind(section(&[&[]]), 0x1050, &stack[..20], 100),
        (vec![0x1050, 0xefff], StackEnd::CopyEnds)
    );
}

#[test]
fn a_call_of_address_0_that_a_signal_interrupted_is_no_outermost_frame() {
    let mut stack = [0; 40];
    stack[0] = 0xf000;
    stack[1 + 160 / 8] = STACK + 8 * 30;
    stack[30] = 0x1010;
    let (frames, end) = unwind(section(&[&[]]), 0x1050, &stack, 100);
    assert_eq!(frames, [0x1050, 0xefff, 0]);
    assert_eq!(end, StackEnd::NoEntry);
    // A return address of 0 is.
    stack[1 + 168 / 8] = 0x1005;
    stack[30] = 0;
    let (frames, end) = unwind(section(&[&[]]), 0x1050, &stack, 100);
    assert_eq!(frames, [0x1050, 0xefff, 0x1005]);
    assert_eq!(end, StackEnd::Outermost);
}

/// The kernel saves which stack handlers of signals have. What it interrupted may be above or below that.
#[test]
fn a_signal_that_has_a_stack_of_its_own_is_the_reason_of_a_cut() {
    let mut stack = [0; 40];
    stack[0] = 0xf000;
    stack[1 + 16 / 8] = STACK - 0x1000;
    stack[1 + 168 / 8] = 0x1005;
    let frames = vec![0x1050, 0xefff, 0x1005];
    for (interrupted, size, end) in [
        (STACK + 0x10_0000, 0x2000, StackEnd::OtherStack),
        (STACK - 0x2000, 0x2000, StackEnd::OtherStack),
        // Both have the same one, or the handler has not this one.
        (STACK + 8 * 40, 0x2000, StackEnd::CopyEnds),
        (STACK + 0x10_0000, 0x800, StackEnd::CopyEnds),
        (STACK + 0x10_0000, 0, StackEnd::CopyEnds),
    ] {
        stack[1 + 32 / 8] = size;
        stack[1 + 160 / 8] = interrupted;
        let found = unwind(section(&[&[]]), 0x1050, &stack, 100);
        assert_eq!(found, (frames.clone(), end), "{interrupted:#x} {size:#x}");
    }
    // It may have been copied with the other one.
    stack[1 + 32 / 8] = 0x1000 + 8 * 30;
    stack[1 + 160 / 8] = STACK + 8 * 31;
    stack[31] = 0x1010;
    let found = unwind(section(&[&[]]), 0x1050, &stack, 100);
    let frames = [frames, vec![0x100f]].concat();
    assert_eq!(found, (frames, StackEnd::Outermost));
}

#[test]
fn a_hundred_thousand_frames_are_found() {
    let stack = vec![0x1010; 100_000];
    let (frames, end) = unwind(section(&[&[]]), 0x1005, &stack, 1 << 20);
    assert_eq!((frames.len(), end), (100_001, StackEnd::CopyEnds));
}

#[test]
fn expressions_and_entries_have_limits() {
    let end = |instructions: &[u8]| unwind(section(&[instructions]), 0x1005, &[0; 8], 9).1;
    // DW_CFA_def_cfa_expression, DW_OP_skip -3
    assert_eq!(end(&[0x0f, 3, 0x2f, 0xfd, 0xff]), StackEnd::BadExpression);
    // DW_CFA_expression 16, DW_OP_lit1, DW_OP_bra -4
    let endless = [0x10, 16, 4, 0x31, 0x28, 0xfc, 0xff];
    assert_eq!(end(&endless), StackEnd::BadExpression);
    // Registers that nothing needs do not end a stack.
    let unused = [0x10, 3, 4, 0x31, 0x28, 0xfc, 0xff];
    assert_eq!(end(&unused), StackEnd::Outermost);
    assert_eq!(end(&[0; 8 << 10]), StackEnd::LongEntry);
    assert_eq!(end(&[0; 8000]), StackEnd::Outermost);
    // DW_CFA_remember_state has a limit, too.
    assert_eq!(end(&[0x0a; 8000]), StackEnd::BadEntry);
}

/// Instructions that copy as many rules as possible as often as possible.
fn copying(bytes: usize) -> Vec<u8> {
    // DW_CFA_same_value for 100 registers; DW_CFA_remember_state, DW_CFA_restore_state
    let mut instructions: Vec<u8> = (0..100)
        .flat_map(|register| [0x08, 20 + register])
        .collect();
    instructions.extend(std::iter::repeat_n([0x0a, 0x0b], bytes / 2).flatten());
    instructions
}

#[test]
fn the_work_of_an_entry_and_of_a_stack_has_limits() {
    let end = |instructions: &[u8]| unwind(section(&[instructions]), 0x1005, &[0; 8], 9).1;
    assert_eq!(end(&copying(150)), StackEnd::Outermost);
    assert_eq!(end(&copying(7000)), StackEnd::LongEntry);
    // Registers beyond those that tables have are rules, too.
    let far: Vec<u8> = (0..60)
        .flat_map(|at| [0x08, 5 | 0x80, 2 + 2 * at])
        .collect();
    let far = [far, [0x0a, 0x0b].repeat(3000)].concat();
    assert_eq!(end(&far), StackEnd::LongEntry);
    // 15,000 for each address of the function; a recursion has the same one.
    let costly = section(&[&copying(150)]);
    let (frames, end) = unwind(costly.clone(), 0x1005, &[0x1010; 100], 50);
    assert_eq!((frames.len(), end), (50, StackEnd::Limit));
    let stack: Vec<u64> = (0x1010..0x1100).collect();
    let (frames, end) = unwind(costly, 0x1005, &stack, 50);
    assert_eq!((frames.len(), end), (3, StackEnd::TooMuchWork));
    // DW_CFA_expression, DW_OP_lit0, for 16 registers
    let expressions: Vec<u8> = (17..33)
        .flat_map(|register| [0x10, register, 1, 0x30])
        .collect();
    let many = unwind(section(&[&expressions]), 0x1005, &[0x1010; 100], 90);
    assert_eq!(many.1, StackEnd::TooMuchWork);
    assert_eq!(many.0.len(), 17);
}

#[test]
fn lengths_and_offsets_are_not_believed() {
    let whole = section(&[&[], &[]]);
    let end = |section: Vec<u8>| unwind(section, 0x1005, &[0; 8], 9).1;
    let changed = |at: usize, bytes: &[u8]| {
        let mut section = whole.clone();
        section[at..at + bytes.len()].copy_from_slice(bytes);
        end(section)
    };
    let first = common(b"").len();
    assert_eq!(end(whole.clone()), StackEnd::Outermost);
    for len in 0..whole.len() {
        let cut = end(whole[..len].to_vec());
        let expected = match len < first + 24 {
            true => StackEnd::NoEntry,
            false => StackEnd::Outermost,
        };
        assert_eq!(cut, expected, "{len}");
    }
    // The first function's length, of 32 and of 64 bits; where its common part is.
    for len in [
        [0xff, 0xff, 0xff, 0x7f],
        [0xff; 4],
        [0xf0, 0xff, 0xff, 0xff],
    ] {
        assert_eq!(changed(first, &len), StackEnd::NoEntry);
    }
    for offset in [0, 1, 5, 0x100, 0xffff_ffff_u32] {
        assert_eq!(
            changed(first + 4, &offset.to_le_bytes()),
            StackEnd::NoEntry,
            "{offset}"
        );
    }
    // A common part that is longer than any.
    let mut long = vec![0; 600];
    long[4..16].copy_from_slice(&[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0]);
    let mut section = entry(&long);
    section.extend(function(section.len(), 0x1000, &[]));
    assert_eq!(end(section), StackEnd::NoEntry);
}

/// Unwinds a stack of a process that makes code or not, where the frame pointer of the hit is this word of the stack.
fn by_pointer(is_maker: bool, ip: u64, fp: u64, words: &[u64]) -> (Vec<u64>, StackEnd) {
    let tables = tables(section(&[&[]]));
    let code = OneFile {
        tables: &tables,
        is_maker,
    };
    let mut hit = Registers::default();
    hit.set(FP, Some(STACK + 8 * fp));
    unwind_process(code, hit, ip, words, 100)
}

#[test]
fn code_without_a_file_has_frame_pointers() {
    let words = [
        0x1_0010,
        0x9999,
        STACK + 8 * 5,
        0x1_0020,
        0x9999,
        0,
        0x1010,
        0,
    ];
    let found = by_pointer(false, 0x1005, 2, &words);
    let frames = vec![0x1005, 0x1_000f, 0x1_001f, 0x100f];
    assert_eq!(found, (frames, StackEnd::Outermost));
    // The outermost function may be such code, too.
    let found = by_pointer(false, 0x1005, 1, &[0x1_0010, 0, 0]);
    assert_eq!(found, (vec![0x1005, 0x1_000f], StackEnd::Outermost));
}

#[test]
fn a_frame_pointer_that_is_none_cuts_the_stack() {
    let end = |fp, words: &[u64]| {
        let (frames, end) = by_pointer(false, 0x1005, fp, words);
        assert_eq!(frames, [0x1005, 0x1_000f], "{fp:#x}");
        end
    };
    // Below the frame, between words, or far above it.
    let words = [0x1_0010, 0, 0x1010, 0];
    assert_eq!(end(0, &words), StackEnd::NoFrame);
    assert_eq!(end(1 << 20, &words), StackEnd::NoFrame);
    assert_eq!(end(3, &words), StackEnd::CopyEnds);
    // What it leads to is no code.
    assert_eq!(end(1, &[0x1_0010, 0, 0x2_0010]), StackEnd::NoFrame);
    let tables = tables(section(&[&[]]));
    let code = OneFile {
        tables: &tables,
        is_maker: false,
    };
    for (fp, expected) in [
        (Some(STACK + 9), StackEnd::NoFrame),
        (Some(u64::MAX), StackEnd::NoFrame),
        (None, StackEnd::UnknownRegister(FP)),
    ] {
        let mut hit = Registers::default();
        hit.set(FP, fp);
        let found = unwind_process(code, hit, 0x1005, &words, 100);
        assert_eq!(found.1, expected, "{fp:x?}");
    }
}

#[test]
fn functions_of_a_runtime_have_frame_pointers() {
    let words = [0x9010, 0, 0x1010, 0];
    let frames = [0x1005, 0x900f, 0x100f];
    let cut = (frames[..2].to_vec(), StackEnd::NoEntry);
    assert_eq!(by_pointer(false, 0x1005, 1, &words), cut);
    let found = by_pointer(true, 0x1005, 1, &words);
    assert_eq!(found, (frames.to_vec(), StackEnd::Outermost));
    assert_eq!(by_pointer(true, 0x1005, 0, &words), cut);
    // Functions that have entries are unwound by them.
    let found = by_pointer(true, 0x1005, 2, &[0x1010, 0x1020, 0, 0x1030, 0]);
    let frames = vec![0x1005, 0x100f, 0x101f];
    assert_eq!(found, (frames, StackEnd::Outermost));
}

/// A process with a file below 0x10000 and, from there on, memory with this code.
struct Copied<'t> {
    tables: &'t UnwindTables,
    known: &'t CopiedCode,
    memory: &'t [u8],
}

impl<'t> ProcessCode<'t> for Copied<'t> {
    fn at(&mut self, address: u64) -> Option<MappedCode<'t>> {
        let tables = self.tables;
        let Some(at) = address.checked_sub(0x1_0000) else {
            return Some(MappedCode::File(Code { tables, address }));
        };
        let found = self.known.find(self.memory);
        let mut codes = found.into_iter().filter_map(|function| {
            self.known
                .at(function, (at as usize).checked_sub(function.offset)?)
        });
        Some(codes.next().map_or(MappedCode::Made, MappedCode::File))
    }

    fn is_maker(&mut self) -> bool {
        true
    }
}

/// The trampolines of CPython 3.12 to 3.14, with and without `endbr64`, and of later ones.
#[test]
fn trampolines_of_cpython_have_their_caller_above() {
    const SUB: &[u8] = b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3";
    const PUSH: &[u8] = b"\x55\x48\x89\xe5\xff\xd1\x5d\xc3";
    const ENDBR64: &[u8] = b"\xf3\x0f\x1e\xfa";
    let mut memory = vec![0; 0x40];
    memory[..11].copy_from_slice(SUB);
    memory[0x10..0x1f].copy_from_slice(&[ENDBR64, SUB].concat());
    memory[0x20..0x28].copy_from_slice(PUSH);
    memory[0x30..0x3a].copy_from_slice(&SUB[..10]);
    let tables = tables(section(&[&[]]));
    let known = CopiedCode::for_arch(Arch::X86_64).unwrap();
    let unwound = |ip: u64, words: &[u64]| {
        let mut hit = Registers::default();
        hit.set(IP, Some(ip));
        hit.set(SP, Some(STACK));
        // It points nowhere: nothing here is a frame pointer.
        hit.set(FP, Some(7));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy {
            start: STACK,
            bytes: &bytes,
        };
        let code = Copied {
            tables: &tables,
            known: &known,
            memory: &memory,
        };
        let mut frames = Vec::new();
        let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
        let end = unwinder.unwind(&hit, stack, code, 100, &mut frames);
        (frames.into_iter().map(StackFrame::code).collect(), end)
    };
    let words = [
        0x1_0006, 0x9999, 0x1010, 0x1_001a, 0x9999, 0x1010, 0x1_0026, 0x9999, 0x1010, 0,
    ];
    let frames = vec![0x1005, 0x1_0005, 0x100f, 0x1_0019, 0x100f, 0x1_0025, 0x100f];
    assert_eq!(unwound(0x1005, &words), (frames, StackEnd::Outermost));
    // A signal may interrupt each of their instructions.
    for (ip, words) in [
        (0x1_0000, &[0x1010, 0][..]),
        (0x1_0004, &[0x9999, 0x1010, 0]),
        (0x1_0006, &[0x9999, 0x1010, 0]),
        (0x1_000a, &[0x1010, 0]),
        (0x1_0020, &[0x1010, 0]),
        (0x1_0021, &[0x9999, 0x1010, 0]),
        (0x1_0026, &[0x9999, 0x1010, 0]),
        (0x1_0027, &[0x1010, 0]),
    ] {
        let frames = vec![ip, 0x100f];
        assert_eq!(unwound(ip, words), (frames, StackEnd::Outermost), "{ip:#x}");
    }
    // Where the copies of a function are, by its bytes: one after the other, 16 bytes apart, with padding.
    let original = known.original(&[ENDBR64, SUB].concat()).unwrap();
    let is_call = |offset: usize| known.copy(original, offset).is_some();
    assert!(is_call(9) && is_call(15 + 9) && is_call(16 + 9) && is_call(272 + 9));
    assert!(!is_call(0) && !is_call(8) && !is_call(10) && !is_call(15 + 8));
    // The last one would not be whole.
    assert!(is_call(4368 * 15 + 9) && is_call(4095 * 16 + 9) && !is_call(4369 * 15 + 9));
    assert_eq!(known.original(&SUB[..10]), None);
    assert!(known.original(PUSH).is_some());
    // Other code needs a frame pointer.
    let cut = (vec![0x1005, 0x1_0035], StackEnd::NoFrame);
    assert_eq!(unwound(0x1005, &[0x1_0036, 0x9999, 0x1010, 0]), cut);
    assert!(CopiedCode::for_arch(Arch::Aarch64).is_none());
}

/// The trampolines of CPython for arm64 (stp x29, x30, [sp, -16]!; mov x29, sp; blr x3; ...) keep frame records.
#[test]
fn trampolines_of_cpython_for_arm64_have_frame_pointers() {
    let mut section = vec![0, 0, 0, 0, 1, 0, 1, 0x78, 30];
    // DW_CFA_def_cfa 31, 16; DW_CFA_offset 29, 2; DW_CFA_offset 30, 1
    section.extend([0x0c, 31, 16, 0x80 | 29, 2, 0x80 | 30, 1]);
    let mut section = entry(&section);
    section.extend(function(section.len(), 0x1000, &[]));
    let table = Table::new(
        SectionKind::EhFrame,
        Arch::Aarch64,
        BaseAddresses::default(),
        section,
    );
    let machine = Machine::for_arch(Arch::Aarch64).unwrap();
    let tables = UnwindTables::from_tables(machine, vec![table]);
    let mut hit = Registers::default();
    hit.set(machine.ip, Some(0x1004));
    hit.set(machine.sp, Some(STACK));
    hit.set(machine.fp, Some(STACK));
    // The return address of the trampoline has an authentication code.
    let signed = 0x1010 | 0x25 << 48;
    let words = [STACK + 16, 0x1_0010, STACK + 32, signed, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackCopy {
        start: STACK,
        bytes: &bytes,
    };
    let code = OneFile {
        tables: &tables,
        is_maker: true,
    };
    let mut frames = Vec::new();
    let mut unwinder = Unwinder::new(Arch::Aarch64).unwrap();
    let end = unwinder.unwind(&hit, stack, code, 100, &mut frames);
    let frames: Vec<u64> = frames.into_iter().map(StackFrame::code).collect();
    assert_eq!(
        (frames, end),
        (vec![0x1004, 0x1_000f, 0x100f], StackEnd::Outermost)
    );
}

/// A stack that was unwound.
struct Unwound<'w> {
    unwinder: Unwinder,
    frames: usize,
    end: StackEnd,
    hit: [u64; 3],
    words: &'w [u64],
}

impl<'w> Unwound<'w> {
    /// Unwinds a stack from this program counter, stack pointer and frame pointer.
    fn unwind(code: OneFile<'_>, hit: [u64; 3], words: &'w [u64]) -> Self {
        let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
        let mut frames = Vec::new();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy {
            start: STACK,
            bytes: &bytes,
        };
        let end = unwinder.unwind(&Self::registers(hit), stack, code, 100, &mut frames);
        Self {
            unwinder,
            frames: frames.len(),
            end,
            hit,
            words,
        }
    }

    fn registers([ip, sp, fp]: [u64; 3]) -> Registers {
        let mut hit = Registers::default();
        hit.set(IP, Some(ip));
        hit.set(SP, Some(sp));
        hit.set(FP, Some(fp));
        hit
    }

    /// Whether a stack with other words, and a hit with other registers, is the same.
    fn is_same(&self, changed: &[(usize, u64)], hit: [u64; 3]) -> bool {
        let mut words = self.words.to_vec();
        for (at, word) in changed {
            words[*at] = *word;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy {
            start: hit[1],
            bytes: &bytes,
        };
        let followed = self.unwinder.followed().unwrap();
        self.unwinder
            .is_same(followed, &Self::registers(hit), stack)
    }

    /// Checks which words may change.
    fn depends_on(&self, words: &[usize]) {
        for at in 0..self.words.len() {
            let changed = (at, self.words[at].wrapping_add(8));
            assert_eq!(
                self.is_same(&[changed], self.hit),
                !words.contains(&at),
                "word {at}"
            );
        }
        let [ip, sp, fp] = self.hit;
        assert!(!self.is_same(&[], [ip, sp + 8, fp]));
        assert!(!self.is_same(&[], [ip + 1, sp, fp]));
    }
}

/// Of the words of a stack, the return addresses and the frame pointers that are used decide about the callers, the rest does not.
#[test]
fn the_same_stack_is_recognized_by_the_words_that_were_followed() {
    let tables = tables(section(&[
        // DW_CFA_def_cfa_offset 32; DW_CFA_offset 6, 2; DW_CFA_offset 3, 3: %rbp and %rbx are saved
        &[0x0e, 32, 0x86, 2, 0x83, 3],
        // DW_CFA_def_cfa 6, 16; DW_CFA_offset 6, 2: the frame is where %rbp leads
        &[0x0c, 6, 16, 0x86, 2],
        // DW_CFA_undefined 16: no caller
        &[0x07, 16],
    ]));
    let code = || OneFile {
        tables: &tables,
        is_maker: false,
    };
    let words = [11, 22, STACK + 48, 0x2100, 0, 0, 55, 0x3100, 0];
    let hit = [0x1010, STACK, 1];
    let whole = Unwound::unwind(code(), hit, &words);
    assert_eq!((whole.frames, whole.end), (3, StackEnd::Outermost));
    whole.depends_on(&[2, 3, 7]);
    // The function of the hit has saved it.
    assert!(whole.is_same(&[], [0x1010, STACK, 2]));
    // One that is cut is recognized, too, in a copy of the same length.
    let cut = Unwound::unwind(code(), hit, &words[..6]);
    assert_eq!((cut.frames, cut.end), (2, StackEnd::CopyEnds));
    cut.depends_on(&[2, 3]);
}

/// The callers of code without a table are found by the frame pointer, of the hit or as it was saved.
#[test]
fn the_same_stack_of_made_code_is_recognized() {
    // DW_CFA_undefined 16: no caller
    let tables = tables(section(&[&[0x07, 16]]));
    let code = OneFile {
        tables: &tables,
        is_maker: true,
    };
    let words = [11, STACK + 32, 0x1_0020, 33, 0, 0x1100];
    let hit = [0x1_0010, STACK, STACK + 8];
    let made = Unwound::unwind(code, hit, &words);
    assert_eq!((made.frames, made.end), (3, StackEnd::Outermost));
    made.depends_on(&[1, 2, 5]);
    assert!(!made.is_same(&[], [0x1_0010, STACK, STACK + 16]));
}
