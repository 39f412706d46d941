//! Trampolines of runtimes, whose code is copied.

use super::*;

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
