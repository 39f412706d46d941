//! How deep the stack is at a site: the distance from the stack pointer up to the function's frame.
//!
//! The unwind table (`.eh_frame`) at the site says whether the frame pointer register really holds one.
//! If the canonical frame address is `sp + N`, then N is the depth. If it is relative to the frame
//! pointer, the function's own instructions tell how far it lowers the stack pointer below it.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Operation,
    ParsedEhFrameHdr, UnwindContext,
};
use gimli::{Register as DwarfRegister, UnwindSection};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection};
use usdtrec_format::Arch;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The frame of a function at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Whether the frame pointer register (`rbp`, `ebp`) is one at this place, or may be for all that is known.
    pub may_be_frame_pointer: bool,
    /// Most bytes from the stack pointer up to the frame pointer, or to the caller's frame where there
    /// is none; `None` if it cannot be told (`alloca`, no unwind table, another architecture).
    pub depth: Option<u32>,
}

impl Frame {
    /// Nothing is known.
    const UNKNOWN: Self = Self {
        may_be_frame_pointer: true,
        depth: None,
    };
}

/// Answers for the functions of one x86 ELF file; for others nothing is known.
pub struct Frames<'a> {
    tables: Option<Tables<'a>>,
}

/// The parts of the file that the answers come from.
struct Tables<'a> {
    file: object::File<'a>,
    bitness: u32,
    bases: BaseAddresses,
    eh_frame: EhFrame<Slice<'a>>,
    header: Option<ParsedEhFrameHdr<Slice<'a>>>,
}

/// What the unwind table says of an instruction.
struct Row {
    start: u64,
    len: u64,
    cfa: Cfa,
}

/// Where the caller's frame (the canonical frame address) is.
enum Cfa {
    /// At a DWARF register plus bytes.
    Register(u16, i64),
    /// In memory near a DWARF register (functions that realign their stack).
    Saved(u16),
}

impl<'a> Frames<'a> {
    /// Reads the unwind table of an ELF file. A file without one, or that is no x86 ELF file, answers «unknown» to all.
    #[must_use]
    pub fn of(data: &'a [u8], arch: Option<Arch>) -> Self {
        Self {
            tables: Tables::of(data, arch),
        }
    }

    /// Frames of which nothing is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { tables: None }
    }

    /// Whether the function at a link-time address keeps data below its stack pointer.
    pub(crate) fn red_zone(&self, pc: u64) -> RedZone {
        let code = self.tables.as_ref().and_then(|tables| tables.function(pc));
        code.map_or(RedZone::Unknown, red_zone)
    }

    /// The caller's frame (the canonical frame address) at a link-time address: a DWARF register, and bytes added to it.
    pub(crate) fn caller(&self, pc: u64) -> Option<(DwarfRegister, i64)> {
        match self.tables.as_ref()?.row(pc)?.cfa {
            Cfa::Register(register, offset) => Some((DwarfRegister(register), offset)),
            Cfa::Saved(_) => None,
        }
    }

    /// The frame at a link-time address.
    #[must_use]
    pub fn at(&self, pc: u64) -> Frame {
        self.tables
            .as_ref()
            .and_then(|tables| tables.frame(pc))
            .unwrap_or(Frame::UNKNOWN)
    }
}

impl<'a> Tables<'a> {
    fn of(data: &'a [u8], arch: Option<Arch>) -> Option<Self> {
        let bitness = match arch? {
            Arch::X86_64 => 64,
            Arch::I386 => 32,
            _ => return None,
        };
        let file = object::File::parse(data).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            Some((section.address(), section.data().ok()?))
        };
        let (address, bytes) = section(".eh_frame")?;
        let mut bases = BaseAddresses::default().set_eh_frame(address);
        let mut eh_frame = EhFrame::new(bytes, LittleEndian);
        eh_frame.set_address_size((bitness / 8) as u8);
        let header = section(".eh_frame_hdr").and_then(|(address, bytes)| {
            bases = bases.clone().set_eh_frame_hdr(address);
            EhFrameHdr::new(bytes, LittleEndian)
                .parse(&bases, (bitness / 8) as u8)
                .ok()
        });
        Some(Self {
            file,
            bitness,
            bases,
            eh_frame,
            header,
        })
    }

    fn frame(&self, pc: u64) -> Option<Frame> {
        let row = self.row(pc)?;
        let word = i64::from(self.bitness / 8);
        // DWARF register numbers: x86-64 rsp 7, rbp 6; i386 esp 4, ebp 5 (System V ABI supplements).
        let (sp, fp) = if self.bitness == 64 { (7, 6) } else { (4, 5) };
        match row.cfa {
            Cfa::Register(register, offset) if register == sp => {
                return Some(Frame {
                    may_be_frame_pointer: false,
                    depth: u32::try_from(offset).ok(),
                });
            }
            Cfa::Register(register, offset) if register == fp && offset >= 2 * word => {}
            Cfa::Saved(register) if register == fp => {}
            _ => return None,
        }
        let depth = self
            .code(row.start, row.len)
            .and_then(|code| lowest(code, self.bitness));
        Some(Frame {
            may_be_frame_pointer: true,
            depth,
        })
    }

    /// The bytes of the function at an address.
    fn function(&self, pc: u64) -> Option<&'a [u8]> {
        let row = self.row(pc)?;
        self.code(row.start, row.len)
    }

    fn row(&self, pc: u64) -> Option<Row> {
        let cie = EhFrame::cie_from_offset;
        let fde = match self.header.as_ref().and_then(ParsedEhFrameHdr::table) {
            Some(table) => table.fde_for_address(&self.eh_frame, &self.bases, pc, cie),
            None => self.eh_frame.fde_for_address(&self.bases, pc, cie),
        }
        .ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&self.eh_frame, &self.bases, &mut context, pc)
            .ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset {
                register: DwarfRegister(register),
                offset,
            } => Cfa::Register(*register, *offset),
            CfaRule::Expression(expression) => {
                let expression = expression.get(&self.eh_frame).ok()?;
                match expression.operations(fde.cie().encoding()).next().ok()?? {
                    Operation::RegisterOffset {
                        register: DwarfRegister(register),
                        ..
                    } => Cfa::Saved(register),
                    _ => return None,
                }
            }
        };
        Some(Row {
            start: fde.initial_address(),
            len: fde.len(),
            cfa,
        })
    }

    /// The bytes of a function.
    fn code(&self, start: u64, len: u64) -> Option<&'a [u8]> {
        self.file
            .sections()
            .find(|section| {
                (section.address()..section.address() + section.size()).contains(&start)
            })?
            .data_range(start, len)
            .ok()?
    }
}

/// Most bytes that a function's instructions, read once from start to end, put below its frame
/// pointer. `None` if it lowers the stack pointer by an amount known only at run time.
fn lowest(code: &[u8], bitness: u32) -> Option<u32> {
    let mut depth = Depth {
        now: 0,
        most: 0,
        probe: None,
    };
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::new(bitness, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        depth.step(&instruction)?;
    }
    u32::try_from(depth.most).ok()
}

/// Whether a function keeps data below its stack pointer, in the red zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedZone {
    /// It does.
    Used,
    /// It does not.
    Spared,
    /// That cannot be told.
    Unknown,
}

/// Reads a function of a 64-bit program. Compilers use the red zone only where there is no call; without one, what is
/// addressed below the frame pointer counts as used, too, and where nothing is, another part of the function may.
fn red_zone(code: &[u8]) -> RedZone {
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let (mut calls, mut below_frame) = (false, false);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return RedZone::Unknown;
        }
        calls |= instruction.mnemonic() == Mnemonic::Call;
        let is_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        let negative = (instruction.memory_displacement64() as i64) < 0;
        if !is_memory || !negative || instruction.mnemonic() == Mnemonic::Lea {
            continue;
        }
        match instruction.memory_base() {
            // An index may bring it above again; who knows.
            Register::RSP => return RedZone::Used,
            Register::RBP => below_frame = true,
            _ => {}
        }
    }
    match (calls, below_frame) {
        (true, _) => RedZone::Spared,
        (false, true) => RedZone::Used,
        (false, false) => RedZone::Unknown,
    }
}

/// The distance from frame pointer to stack pointer while walking over instructions. Jumps are not
/// followed: what counts is the greatest distance, and code only moves within it.
struct Depth {
    now: i64,
    most: i64,
    /// The end of a stack-clash-protection loop: a register that was set to `sp - N`.
    probe: Option<(Register, i64)>,
}

impl Depth {
    /// `None` if the stack pointer moves by what cannot be told.
    fn step(&mut self, instruction: &Instruction) -> Option<()> {
        match instruction.mnemonic() {
            Mnemonic::Push | Mnemonic::Pop => {
                self.lower(-i64::from(instruction.stack_pointer_increment()))
            }
            Mnemonic::Sub if is_stack_pointer(instruction.op0_register()) => {
                self.lower(constant(instruction)?)
            }
            Mnemonic::Add if is_stack_pointer(instruction.op0_register()) => {
                self.lower(-constant(instruction)?)
            }
            // Alignment: `and $-32, %rsp`.
            Mnemonic::And if is_stack_pointer(instruction.op0_register()) => {
                self.lower(-constant(instruction)? - 1)
            }
            Mnemonic::Mov if starts_frame(instruction) => {
                *self = Self {
                    now: 0,
                    most: 0,
                    probe: None,
                }
            }
            Mnemonic::Lea => self.lea(instruction)?,
            Mnemonic::Cmp => self.probe_loop(instruction),
            _ => {}
        }
        Some(())
    }

    /// Lowers the stack pointer by `bytes`, or raises it.
    fn lower(&mut self, bytes: i64) {
        self.now = (self.now + bytes).max(0);
        self.most = self.most.max(self.now);
    }

    fn lea(&mut self, instruction: &Instruction) -> Option<()> {
        let to = instruction.op0_register();
        let displacement = instruction.memory_displacement64() as i64;
        let plain = instruction.memory_index() == Register::None;
        if is_stack_pointer(to) {
            let base = instruction.memory_base();
            if is_stack_pointer(base) && plain {
                self.lower(-displacement);
            } else if !(plain && matches!(base, Register::RBP | Register::EBP)) {
                return None;
            }
        } else if is_stack_pointer(instruction.memory_base()) && plain && displacement < 0 {
            self.probe = Some((to, -displacement));
        }
        Some(())
    }

    /// `cmp %r11, %rsp` at the end of a loop that touches page after page.
    fn probe_loop(&mut self, instruction: &Instruction) {
        let registers = [instruction.op0_register(), instruction.op1_register()];
        if let Some((end, bytes)) = self.probe
            && registers.contains(&end)
            && registers.into_iter().any(is_stack_pointer)
        {
            self.lower(bytes);
            self.probe = None;
        }
    }
}

/// `mov %rsp, %rbp`, from where the distance counts.
fn starts_frame(instruction: &Instruction) -> bool {
    matches!(instruction.op0_register(), Register::RBP | Register::EBP)
        && is_stack_pointer(instruction.op1_register())
}

fn is_stack_pointer(register: Register) -> bool {
    matches!(register, Register::RSP | Register::ESP)
}

/// The immediate of `op imm, register`; `None` if the second operand is none.
fn constant(instruction: &Instruction) -> Option<i64> {
    match instruction.op1_kind() {
        OpKind::Immediate8
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32
        | OpKind::Immediate32to64 => {
            let bits = instruction.immediate(1) as i64;
            // A 32-bit immediate of 32-bit code comes zero-extended.
            let narrow = matches!(
                instruction.code(),
                Code::Sub_rm32_imm32
                    | Code::Add_rm32_imm32
                    | Code::And_rm32_imm32
                    | Code::And_rm32_imm8
                    | Code::Sub_rm32_imm8
                    | Code::Add_rm32_imm8
            );
            Some(if narrow { i64::from(bits as i32) } else { bits })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prologue_with_pushes_and_a_sub() {
        // push %rbp; mov %rsp,%rbp; push %rbx; sub $0x1018,%rsp; add $0x1018,%rsp; pop %rbx; leave; ret
        let code = b"\x55\x48\x89\xe5\x53\x48\x81\xec\x18\x10\x00\x00\x48\x81\xc4\x18\x10\x00\x00\x5b\xc9\xc3";
        assert_eq!(lowest(code, 64), Some(8 + 0x1018));
    }

    #[test]
    fn calls_with_pushed_arguments_do_not_add_up() {
        // i386: push %ebp; mov %esp,%ebp; sub $8,%esp; (push %eax; push %eax; add $8,%esp) twice; and $-16,%esp
        let code = b"\x55\x89\xe5\x83\xec\x08\x50\x50\x83\xc4\x08\x50\x50\x83\xc4\x08\x83\xe4\xf0";
        assert_eq!(lowest(code, 32), Some(8 + 15));
    }

    #[test]
    fn a_stack_clash_loop_counts_once() {
        // push %rbp; mov %rsp,%rbp; lea -0x4000(%rsp),%r11; sub $0x1000,%rsp; orq $0,(%rsp); cmp %r11,%rsp
        let code = b"\x55\x48\x89\xe5\x4c\x8d\x9c\x24\x00\xc0\xff\xff\x48\x81\xec\x00\x10\x00\x00\x48\x83\x0c\x24\x00\x4c\x39\xdc";
        assert_eq!(lowest(code, 64), Some(0x5000));
    }

    #[test]
    fn the_red_zone_is_seen() {
        // mov %rdi,-8(%rsp); mov -8(%rsp),%rax; ret
        let used = b"\x48\x89\x7c\x24\xf8\x48\x8b\x44\x24\xf8\xc3";
        assert_eq!(red_zone(used), RedZone::Used);
        // push %rbp; mov %rsp,%rbp; mov %edi,-4(%rbp); nop; pop %rbp; ret
        let leaf = b"\x55\x48\x89\xe5\x89\x7d\xfc\x90\x5d\xc3";
        assert_eq!(red_zone(leaf), RedZone::Used);
        // push %rbp; mov %rsp,%rbp; sub $16,%rsp; mov %edi,-4(%rbp); call; leave; ret
        let calling = b"\x55\x48\x89\xe5\x48\x83\xec\x10\x89\x7d\xfc\xe8\x00\x00\x00\x00\xc9\xc3";
        assert_eq!(red_zone(calling), RedZone::Spared);
        // nop; lea 1(%rdi),%eax; ret
        assert_eq!(red_zone(b"\x90\x8d\x47\x01\xc3"), RedZone::Unknown);
    }

    #[test]
    fn alloca_cannot_be_told() {
        // push %rbp; mov %rsp,%rbp; sub %rax,%rsp
        assert_eq!(lowest(b"\x55\x48\x89\xe5\x48\x29\xc4", 64), None);
    }
}
