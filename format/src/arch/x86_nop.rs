//! Instructions of x86 that do nothing, and prefixes to which the kernel attaches no probes.
//!
//! Encodings: Intel's manual, volume 2, chapter 2 and NOP, PAUSE, ENDBR64, LEA, MOV, XCHG.

/// Maximum length of an instruction, bytes.
const MAX_INSTRUCTION_BYTES: usize = 15;

const OPERAND_SIZE: u8 = 0x66;
const ADDRESS_SIZE: u8 = 0x67;
const LOCK: u8 = 0xf0;
const REPEAT: u8 = 0xf3;

/// The prefixes of an instruction.
struct Prefixes<'c> {
    /// The prefixes that are not REX.
    legacy: &'c [u8],
    /// The REX prefix; 0 without one.
    rex: u8,
    /// What follows them.
    rest: &'c [u8],
}

impl<'c> Prefixes<'c> {
    fn from_code(code: &'c [u8], class64: bool) -> Self {
        let is_legacy = |byte: &u8| {
            matches!(
                *byte,
                0x26 | 0x2e
                    | 0x36
                    | 0x3e
                    | 0x64
                    | 0x65
                    | OPERAND_SIZE
                    | ADDRESS_SIZE
                    | LOCK
                    | 0xf2
                    | REPEAT
            )
        };
        let code = code.get(..MAX_INSTRUCTION_BYTES).unwrap_or(code);
        let count = code.iter().take_while(|byte| is_legacy(byte)).count();
        let (legacy, rest) = code.split_at(count);
        match rest {
            [rex @ 0x40..=0x4f, rest @ ..] if class64 => Self {
                legacy,
                rex: *rex,
                rest,
            },
            _ => Self {
                legacy,
                rex: 0,
                rest,
            },
        }
    }

    fn has(&self, prefix: u8) -> bool {
        self.legacy.contains(&prefix)
    }
}

/// A prefix of the first instruction to which the kernel attaches no probe: a segment other than `fs` and `gs`, or `lock`
/// (`is_prefix_bad`, `arch/x86/kernel/uprobes.c`, the same from Linux 3.5 to 7.1). The kernel knows four different prefixes of an
/// instruction (`insn_get_prefixes`, `arch/x86/lib/insn.c`).
pub(super) fn unplanted_prefix(code: &[u8], class64: bool) -> Option<u8> {
    let mut known = Vec::with_capacity(4);
    for prefix in Prefixes::from_code(code, class64).legacy {
        if known.contains(prefix) {
            continue;
        }
        if known.len() == 4 {
            break;
        }
        known.push(*prefix);
    }
    let is_unplanted = |byte: &u8| matches!(*byte, 0x26 | 0x2e | 0x36 | 0x3e | LOCK);
    known.into_iter().find(is_unplanted)
}

/// Whether the first instruction does nothing, whatever its prefixes: `nop` in any length, `pause`, `endbr64`, and moves of a register to
/// itself that change no bit of it.
pub(super) fn is_nop(code: &[u8], class64: bool) -> bool {
    let prefixes = Prefixes::from_code(code, class64);
    match *prefixes.rest {
        // With this bit of REX it is `xchg %r8,%rax`.
        [0x90, ..] => prefixes.rex & 1 == 0,
        [0x0f, 0x1f, ref rest @ ..] => {
            // 16-bit addresses have other operands.
            let is_wide = class64 || !prefixes.has(ADDRESS_SIZE);
            operand_len(rest, is_wide).is_some_and(|len| len <= rest.len())
        }
        // `endbr64`, `endbr32`
        [0x0f, 0x1e, 0xfa | 0xfb, ..] => prefixes.has(REPEAT),
        // `mov`, `xchg`
        [0x89 | 0x8b | 0x87, operand @ 0xc0..=0xff, ..] => {
            let is_same = operand >> 3 & 7 == operand & 7;
            // REX has the highest bits of both.
            is_same
                && prefixes.rex >> 2 & 1 == prefixes.rex & 1
                && keeps_register(&prefixes, class64)
        }
        [0x8d, ref rest @ ..] => {
            !prefixes.has(ADDRESS_SIZE)
                && keeps_register(&prefixes, class64)
                && loads_itself(rest, prefixes.rex)
        }
        _ => false,
    }
}

/// Whether writing a register with its own value changes nothing: 32-bit operands of 64-bit code clear the upper half.
fn keeps_register(prefixes: &Prefixes<'_>, class64: bool) -> bool {
    !class64 || prefixes.rex & 8 != 0 || prefixes.has(OPERAND_SIZE)
}

/// Whether the operands of a `lea` are a register, and memory at that register without a displacement.
fn loads_itself(operands: &[u8], rex: u8) -> bool {
    let [operand, ..] = *operands else {
        return false;
    };
    let (mode, to) = (operand >> 6, operand >> 3 & 7 | rex << 1 & 8);
    let displacement = match (mode, operand & 7) {
        (3, _) | (0, 5) => return false,
        (_, 4) => {
            let [_, sib, ref displacement @ ..] = *operands else {
                return false;
            };
            let (index, base) = (sib >> 3 & 7 | rex << 2 & 8, sib & 7 | rex << 3 & 8);
            // 4 is no index.
            if index != 4 || base != to || mode == 0 && base & 7 == 5 {
                return false;
            }
            displacement
        }
        (_, base) if base | rex << 3 & 8 == to => &operands[1..],
        _ => return false,
    };
    let len = [0, 1, 4][usize::from(mode)];
    displacement
        .get(..len)
        .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

/// Length of an operand in memory or a register, with what follows its first byte; `None` at the end of the code.
fn operand_len(code: &[u8], is_wide: bool) -> Option<usize> {
    let operand = *code.first()?;
    let (mode, base) = (operand >> 6, operand & 7);
    if mode == 3 {
        return Some(1);
    }
    if !is_wide {
        return Some(match (mode, base) {
            (0, 6) | (2, _) => 3,
            (1, _) => 2,
            _ => 1,
        });
    }
    let sib = if base == 4 { Some(*code.get(1)?) } else { None };
    let without_base = sib.map_or(base, |sib| sib & 7) == 5;
    let displacement = match mode {
        0 if without_base => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(1 + usize::from(sib.is_some()) + displacement)
}
