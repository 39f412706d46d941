//! Stacks that are unwound by tables written here: what compilers do not write.

mod frame_pointers;
mod same_stacks;
mod trampolines;

use gimli::BaseAddresses;
use usdtrec_format::Arch;

use crate::code::{Code, MappedCode, ProcessCode};
use crate::copied_code::CopiedCode;
use crate::known_stacks::KnownStacks;
use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, StackEnd};
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
