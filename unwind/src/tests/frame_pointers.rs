//! Code whose callers frame pointers lead to.

use super::*;

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
