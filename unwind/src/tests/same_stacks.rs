//! Stacks that are recognized by the words that were followed.

use super::*;

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
        let before: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let before = StackCopy {
            start: STACK,
            bytes: &before,
        };
        let mut known = KnownStacks::new(Arch::X86_64).unwrap();
        let followed = self.unwinder.followed().unwrap();
        known.put(1, &Self::registers(self.hit), before, followed, ((), 1));
        let hit = Self::registers(hit);
        assert_eq!(known.get(2, &hit, stack), None, "another process");
        known.get(1, &hit, stack).is_some()
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

/// Hits of one function with many stacks: what is known of them is what unwinding finds, whatever came before.
#[test]
fn what_is_known_of_a_stack_is_what_unwinding_finds() {
    let tables = tables(section(&[
        // DW_CFA_def_cfa_offset 32; DW_CFA_offset 6, 2: %rbp is saved
        &[0x0e, 32, 0x86, 2],
        // DW_CFA_def_cfa 6, 16; DW_CFA_offset 6, 2: the frame is where %rbp leads
        &[0x0c, 6, 16, 0x86, 2],
        // DW_CFA_def_cfa_offset 16
        &[0x0e, 16],
        // DW_CFA_undefined 16: no caller
        &[0x07, 16],
    ]));
    let returns = [0x1100, 0x2100, 0x2200, 0x3100, 0x3200, 0x4100, 0x1_0020, 0];
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
    let mut known: KnownStacks<bool, (Vec<StackFrame>, StackEnd)> =
        KnownStacks::new(Arch::X86_64).unwrap();
    let mut recognized = 0;
    for _ in 0..20_000 {
        let words: Vec<u64> = (0..12 + random(2))
            .map(|_| match random(3) {
                0 => STACK + 8 * random(14),
                _ => returns[random(8) as usize],
            })
            .collect();
        let ip = [0x1010, 0x2010, 0x3010, 0x1_0010][random(4) as usize];
        let hit = Unwound::registers([ip, STACK, STACK + 8 * random(6)]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy {
            start: STACK,
            bytes: &bytes,
        };
        let is_maker = random(2) == 0;
        let code = OneFile {
            tables: &tables,
            is_maker,
        };
        let mut frames = Vec::new();
        let end = unwinder.unwind(&hit, stack, code, 100, &mut frames);
        let found = (frames, end);
        match known.get(is_maker, &hit, stack) {
            Some(before) => {
                assert_eq!(*before, found, "{words:x?}");
                recognized += 1;
            }
            None => {
                if let Some(followed) = unwinder.followed() {
                    known.put(is_maker, &hit, stack, followed, (found, 1));
                }
            }
        }
    }
    assert!(recognized > 5000, "{recognized} of 20000");
}

/// Stacks that are not the last one stay known.
#[test]
fn stacks_that_begin_alike_are_all_known() {
    // DW_CFA_def_cfa_offset 16, and no caller
    let tables = tables(section(&[&[0x0e, 16], &[0x07, 16]]));
    let hit = Unwound::registers([0x1010, STACK, 0]);
    let stacks: [[u64; 4]; 4] = [
        [0, 0x1020, 0, 0x2010],
        [0, 0x1020, 0, 0x2020],
        [0, 0x2030, 0, 0],
        [0, 0x1020, 0, 0x2040],
    ];
    let mut known = KnownStacks::new(Arch::X86_64).unwrap();
    let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
    for round in 0..2 {
        for words in &stacks {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let stack = StackCopy {
                start: STACK,
                bytes: &bytes,
            };
            let code = OneFile {
                tables: &tables,
                is_maker: false,
            };
            let before = (round > 0).then_some(*words);
            assert_eq!(known.get((), &hit, stack).copied(), before);
            unwinder.unwind(&hit, stack, code, 100, &mut Vec::new());
            let followed = unwinder.followed().unwrap();
            known.put((), &hit, stack, followed, (*words, 1));
        }
    }
}

/// What is kept is bounded.
#[test]
fn too_many_stacks_are_unwound_anew() {
    let tables = tables(section(&[&[0x0e, 16], &[0x07, 16]]));
    let code = OneFile {
        tables: &tables,
        is_maker: false,
    };
    let hit = Unwound::registers([0x2010, STACK, 0]);
    let stack = StackCopy {
        start: STACK,
        bytes: &[],
    };
    let mut unwinder = Unwinder::new(Arch::X86_64).unwrap();
    unwinder.unwind(&hit, stack, code, 100, &mut Vec::new());
    let followed = unwinder.followed().unwrap();
    let mut known = KnownStacks::new(Arch::X86_64).unwrap();
    for key in 0..3 {
        known.put(key, &hit, stack, followed, (key, 200_000));
    }
    let is_known = [0, 1, 2].map(|key| known.get(key, &hit, stack).is_some());
    assert_eq!(is_known, [false, false, true]);
}
