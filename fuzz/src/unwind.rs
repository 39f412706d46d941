//! Unwind tables of ELF files, and stacks that are unwound by them.

use object::{Architecture, Object as _, ObjectSection as _};
use usdtrec_format::{Arch, Register};
use usdtrec_unwind::{
    Code, MappedCode, ProcessCode, Registers, StackCopy, UnwindTables, Unwinder, column,
};

/// Frames of a stack at most.
const LIMIT: usize = 127;
/// Stacks that are unwound.
const STACKS: u64 = 64;
/// Words of a stack.
const WORDS: u64 = 2048;
/// Where stacks begin.
const START: u64 = 0x7fff_0000;

/// Unwinds stacks by the file's tables.
pub fn run(bytes: &[u8]) {
    frames(bytes);
}

/// How many frames are found, the hits among them.
pub fn frames(bytes: &[u8]) -> usize {
    let Ok(file) = object::File::parse(bytes) else {
        return 0;
    };
    let Some(tables) = UnwindTables::read(&file) else {
        return 0;
    };
    // There are two tables, and an entry takes more bytes in the file than in memory, if not twice as many.
    assert!(tables.size() <= 8 * bytes.len(), "{}", tables.size());
    let arch = match file.architecture() {
        Architecture::Aarch64 => Arch::Aarch64,
        _ => Arch::X86_64,
    };
    let text = file.section_by_name(".text");
    let (start, len) = text.map_or((0x1000, 0x1000), |text| {
        (text.address(), text.size().max(1))
    });
    let mut unwinder = Unwinder::new(arch).unwrap();
    let mut found = 0;
    for at in 0..STACKS {
        let ip = start.wrapping_add(len / STACKS * at);
        found += unwind(&mut unwinder, &tables, arch, ip, |word| match word % 8 {
            // Frame pointers and what is saved of them.
            7 => START + 8 * (word + 1),
            _ => start.wrapping_add((word + at).wrapping_mul(0x9e37_79b9) % len),
        });
    }
    found
}

/// Code of the file, with code that was made at run time in between.
struct Mixed<'t>(&'t UnwindTables);

impl<'t> ProcessCode<'t> for Mixed<'t> {
    fn at(&mut self, address: u64) -> Option<MappedCode<'t>> {
        let code = Code {
            tables: self.0,
            address,
        };
        // One of 16 addresses, in no order.
        Some(match address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 {
            0 => MappedCode::Made,
            _ => MappedCode::File(code),
        })
    }

    fn is_maker(&mut self) -> bool {
        true
    }
}

/// Unwinds one stack, whose words `word` gives.
fn unwind(
    unwinder: &mut Unwinder,
    tables: &UnwindTables,
    arch: Arch,
    ip: u64,
    word: impl Fn(u64) -> u64,
) -> usize {
    let mut hit = Registers::default();
    for number in 0..33 {
        hit.set(number, Some(START + 8 * u64::from(number)));
    }
    hit.set(column(arch, arch.stack_pointer()).unwrap(), Some(START));
    hit.set(column(arch, Register::PROGRAM_COUNTER).unwrap(), Some(ip));
    let stack: Vec<u8> = (0..WORDS).flat_map(|at| word(at).to_le_bytes()).collect();
    let stack = StackCopy {
        start: START,
        bytes: &stack,
    };
    let mut frames = Vec::new();
    let code = Mixed(tables);
    unwinder.unwind(&hit, stack, code, LIMIT, &mut frames);
    assert!((1..=LIMIT).contains(&frames.len()), "{}", frames.len());
    frames.len()
}
