//! The depth of the stack at a site: the distance from the stack pointer up to the function's frame.
//!
//! The unwind table (`.eh_frame`) shows whether the frame pointer register is a frame pointer at the site. If the canonical frame address
//! is `sp + N`, then N is the depth. If it is relative to the frame pointer, the function's instructions show how far the stack pointer is
//! lowered below it.
//!
//! `PERF_SAMPLE_STACK_USER` copies from the stack pointer upwards, so an operand relative to the frame pointer needs
//! the distance between the two, which is in no note. If it cannot be found (`alloca`, no table), a default size is
//! copied. The decoder locates operands by address, never by register name.
//!
//! # The return address of a function without a frame
//!
//! Compilers give functions that call nothing no frame, even with `-fno-omit-frame-pointer`. The register then has the
//! frame pointer of the caller, and the return address of the function itself would be missing in a chain by frame
//! pointers. The unwind table at the site says that, and where the address is (`Frames::return_address`): on x86 at a
//! distance from the stack pointer, on arm64 in `x30`. The program of the site reads it first. Where the table says
//! that a register was saved, it does not say whether it was also set to a frame. So on x86 the program compares it
//! with the address of the frame, and on arm64 an address that was stored counts as in a frame.

use std::collections::HashMap;
use std::sync::{Arc as Shared, Mutex, OnceLock, PoisonError};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, Operation,
    RegisterRule, UnwindContext, Vendor,
};
use gimli::{Register as DwarfRegister, UnwindSection};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Arch;
use usdtrec_format::Register as ArchRegister;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Maximum length of an unwind table that is read, bytes. Chromium's has 30 MB.
const TABLE_LIMIT: u64 = 128 << 20;
/// Maximum length of a function that is read for its stack, bytes. The largest loops of interpreters have 300 KB.
const FUNCTION_LIMIT: u64 = 4 << 20;
/// Maximum number of entries of an unwind table that are kept. Chromium has 1.3 million.
const MAX_TABLE_ENTRIES: usize = 8 << 20;

/// The frame of a function at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Whether the frame pointer register (`rbp`, `ebp`) is a frame pointer at this instruction, or may be one.
    pub may_be_frame_pointer: bool,
    /// Maximum distance from the stack pointer up to the frame pointer, or to the caller's frame without one, bytes; `None` if unknown
    /// (`alloca`, no unwind table, another architecture).
    pub depth: Option<u32>,
}

impl Frame {
    /// An unknown frame.
    const UNKNOWN: Self = Self {
        may_be_frame_pointer: true,
        depth: None,
    };
}

/// Where the return address is in a function that has no frame for a frame pointer: then that of its caller is in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnAddress {
    /// In the register in which the call put it.
    Register(ArchRegister),
    /// In memory, so many bytes above the stack pointer.
    Stack(u32),
}

/// Answers for the functions of one ELF file.
pub struct Frames {
    tables: Option<Tables>,
}

/// The parts of the file that frames are read from.
struct Tables {
    file: Shared<ObjectFile>,
    arch: Arch,
    /// Link-time address of the unwind table.
    address: u64,
    bases: BaseAddresses,
    /// Content of the unwind table.
    eh_frame: Vec<u8>,
    /// Address and content of the sorted table of addresses (`.eh_frame_hdr`), if it has the form that linkers give it.
    sorted: Option<(u64, Vec<u8>)>,
    /// First and last address but one of each function, sorted, and where its entry is in the table. For files without a
    /// sorted table.
    entries: OnceLock<Vec<(u64, u64, usize)>>,
    /// How far functions, by their first address, lower the stack pointer.
    depths: Mutex<HashMap<u64, Option<u32>>>,
}

/// The row of the unwind table for an instruction.
struct Row {
    start: u64,
    len: u64,
    cfa: Cfa,
    returns: ReturnRule,
}

/// Where the unwind table says that the return address is.
#[derive(Clone, Copy, Debug)]
enum ReturnRule {
    /// Where the call put it: in a register.
    Kept,
    /// In memory, so many bytes from the caller's frame (the canonical frame address).
    Saved(i64),
    Other,
}

/// An address that is a register plus bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterOffset {
    /// The register.
    pub register: DwarfRegister,
    /// What is added to it, bytes.
    pub offset: i64,
}

/// Location of the caller's frame (the canonical frame address).
enum Cfa {
    /// At a DWARF register plus bytes.
    Register(u16, i64),
    /// In memory near a DWARF register (functions that realign their stack).
    Saved(u16),
}

impl Frames {
    /// Reads the unwind table of an ELF file. All frames are unknown without an unwind table, and those with a frame pointer in files of other
    /// architectures than x86.
    #[must_use]
    pub fn for_file(file: &Shared<ObjectFile>) -> Self {
        Self {
            tables: Tables::from_file(file),
        }
    }

    /// Frames that are all unknown.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { tables: None }
    }

    /// The caller's frame (the canonical frame address) at a link-time address.
    pub fn caller(&self, pc: u64) -> Option<RegisterOffset> {
        match self.tables.as_ref()?.row(pc)?.cfa {
            Cfa::Register(register, offset) => Some(RegisterOffset {
                register: DwarfRegister(register),
                offset,
            }),
            Cfa::Saved(_) => None,
        }
    }

    /// Where the return address is at a link-time address, if the function has no frame there. `None` if it may have one.
    #[must_use]
    pub fn return_address(&self, pc: u64) -> Option<ReturnAddress> {
        self.tables.as_ref()?.return_address(pc)
    }

    /// The first address of the function at a link-time address, and its bytes.
    pub fn code(&self, pc: u64) -> Option<(u64, Vec<u8>)> {
        let tables = self.tables.as_ref()?;
        let row = tables.row(pc)?;
        Some((row.start, tables.code(row.start, row.len)?))
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

impl Tables {
    fn from_file(file: &Shared<ObjectFile>) -> Option<Self> {
        let arch = file.arch().filter(|arch| !arch.is_big_endian())?;
        let section = file.section(".eh_frame")?;
        let bytes = file.content(section, TABLE_LIMIT).ok()?;
        let bases = BaseAddresses::default().set_eh_frame(section.address);
        Some(Self {
            file: Shared::clone(file),
            arch,
            address: section.address,
            bases,
            eh_frame: bytes,
            sorted: sorted_table(file),
            entries: OnceLock::new(),
            depths: Mutex::default(),
        })
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut table = EhFrame::new(&self.eh_frame, LittleEndian);
        table.set_address_size(self.arch.pointer_size());
        if self.arch == Arch::Aarch64 {
            // It has instructions of its own, for signed return addresses.
            table.set_vendor(Vendor::AArch64);
        }
        table
    }

    /// Offset in the table of the entry for the function at an address.
    fn entry(&self, pc: u64) -> Option<usize> {
        let Some((base, sorted)) = &self.sorted else {
            let entries = self.entries();
            let after = entries.partition_point(|(begin, ..)| *begin <= pc);
            let (_, end, offset) = *entries.get(after.checked_sub(1)?)?;
            return (pc < end).then_some(offset);
        };
        let (rows, _) = sorted.as_chunks::<8>();
        let address = |row: &[u8; 8], at: usize| {
            let bytes = row.get(at..).and_then(<[u8]>::first_chunk);
            let relative = bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes));
            base.wrapping_add_signed(relative.into())
        };
        let after = rows.partition_point(|row| address(row, 0) <= pc);
        let entry = address(rows.get(after.checked_sub(1)?)?, 4);
        usize::try_from(entry.checked_sub(self.address)?).ok()
    }

    /// All entries of the table.
    fn entries(&self) -> &[(u64, u64, usize)] {
        self.entries.get_or_init(|| {
            let mut found = Vec::new();
            let table = self.eh_frame();
            let mut entries = table.entries(&self.bases);
            // Entries after a damaged one cannot be found.
            while let Ok(Some(entry)) = entries.next() {
                if let CieOrFde::Fde(partial) = entry
                    && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
                    && fde.initial_address() < fde.end_address()
                {
                    found.push((fde.initial_address(), fde.end_address(), fde.offset()));
                }
                if found.len() >= MAX_TABLE_ENTRIES {
                    break;
                }
            }
            found.sort_unstable();
            found
        })
    }

    fn frame(&self, pc: u64) -> Option<Frame> {
        let row = self.row(pc)?;
        let word = self.arch.pointer_size();
        let sp = self.arch.dwarf_register(self.arch.stack_pointer())?;
        let fp = self.arch.dwarf_register(self.arch.frame_pointer()?)?;
        match row.cfa {
            Cfa::Register(register, offset) if register == sp => {
                return Some(Frame {
                    may_be_frame_pointer: false,
                    depth: u32::try_from(offset).ok(),
                });
            }
            Cfa::Register(register, offset) if register == fp && offset >= 2 * i64::from(word) => {}
            Cfa::Saved(register) if register == fp => {}
            _ => return None,
        }
        let mut depths = self.depths.lock().unwrap_or_else(PoisonError::into_inner);
        let depth = *depths.entry(row.start).or_insert_with(|| {
            // Functions of other architectures cannot be decoded.
            let is_x86 = self.arch.kernel() == Arch::X86_64;
            let code = is_x86.then(|| self.code(row.start, row.len))??;
            lowest(&code, 8 * u32::from(word))
        });
        Some(Frame {
            may_be_frame_pointer: true,
            depth,
        })
    }

    fn return_address(&self, pc: u64) -> Option<ReturnAddress> {
        let row = self.row(pc)?;
        if let Some(register) = self.arch.return_register() {
            // A saved one may be in a frame: the table of a function with a frame pointer need not name it.
            return matches!(row.returns, ReturnRule::Kept)
                .then_some(ReturnAddress::Register(register));
        }
        let sp = self.arch.dwarf_register(self.arch.stack_pointer())?;
        match (row.cfa, row.returns) {
            (Cfa::Register(register, frame), ReturnRule::Saved(offset)) if register == sp => {
                let above = u32::try_from(frame.checked_add(offset)?).ok()?;
                Some(ReturnAddress::Stack(above))
            }
            _ => None,
        }
    }

    fn row(&self, pc: u64) -> Option<Row> {
        let cie = EhFrame::cie_from_offset;
        let offset = EhFrameOffset(self.entry(pc)?);
        let table = self.eh_frame();
        let fde = table.fde_from_offset(&self.bases, offset, cie).ok()?;
        if !fde.contains(pc) {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&table, &self.bases, &mut context, pc)
            .ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset {
                register: DwarfRegister(register),
                offset,
            } => Cfa::Register(*register, *offset),
            CfaRule::Expression(expression) => {
                let expression = expression.get(&table).ok()?;
                match expression.operations(fde.cie().encoding()).next().ok()?? {
                    Operation::RegisterOffset {
                        register: DwarfRegister(register),
                        ..
                    } => Cfa::Saved(register),
                    _ => return None,
                }
            }
        };
        let returns = match row.register(fde.cie().return_address_register()) {
            // What the table does not mention is as it was when the function began.
            None | Some(RegisterRule::SameValue) => ReturnRule::Kept,
            Some(RegisterRule::Offset(offset)) => ReturnRule::Saved(offset),
            Some(_) => ReturnRule::Other,
        };
        Some(Row {
            start: fde.initial_address(),
            len: fde.len(),
            cfa,
            returns,
        })
    }

    /// The bytes of a function.
    fn code(&self, start: u64, len: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len)
            .ok()
            .filter(|_| len <= FUNCTION_LIMIT)?;
        self.file.code_at(start, len)
    }
}

/// The rows of `.eh_frame_hdr` (Linux Standard Base, 10.6.2) where it has the form that linkers give it: a function's first
/// address and its entry's, both relative to the section and of 4 bytes.
fn sorted_table(file: &ObjectFile) -> Option<(u64, Vec<u8>)> {
    const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let section = file.section(".eh_frame_hdr")?;
    let mut content = file.content(section, TABLE_LIMIT).ok()?;
    let count = u32::from_le_bytes(*content.get(8..)?.first_chunk()?);
    let len = 8 * usize::try_from(count).ok()?;
    if !content.starts_with(&FORM) || count == 0 {
        return None;
    }
    content.drain(..12);
    content.truncate(len);
    Some((section.address, content))
}

/// Maximum distance of the stack pointer below the frame pointer, bytes, from a single pass over the function's instructions. `None` if it
/// depends on values at run time.
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

/// The distance from frame pointer to stack pointer while walking over instructions. Jumps are not
/// followed: what counts is the greatest distance, and code only moves within it.
struct Depth {
    now: i64,
    most: i64,
    /// The end of a stack-clash-protection loop: a register that was set to `sp - N`.
    probe: Option<(Register, i64)>,
}

impl Depth {
    /// `None` if the stack pointer moves by an unknown amount.
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

/// `mov %rsp, %rbp`, after which the distance is measured.
fn starts_frame(instruction: &Instruction) -> bool {
    matches!(instruction.op0_register(), Register::RBP | Register::EBP)
        && is_stack_pointer(instruction.op1_register())
}

fn is_stack_pointer(register: Register) -> bool {
    matches!(register, Register::RSP | Register::ESP)
}

/// The immediate of `op imm, register`; `None` if the second operand is not an immediate.
fn constant(instruction: &Instruction) -> Option<i64> {
    match instruction.op1_kind() {
        OpKind::Immediate8
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32
        | OpKind::Immediate32to64 => {
            let bits = instruction.immediate(1) as i64;
            // A 32-bit immediate of 32-bit code is zero-extended here.
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

    /// Our own program, with another sorted table.
    fn program(change: impl Fn(usize, &mut u8)) -> Shared<ObjectFile> {
        use std::io::Write as _;
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&whole).unwrap();
        let object = ObjectFile::from_file(file.try_clone().unwrap(), "whole".into()).unwrap();
        let table = object.section(".eh_frame_hdr").unwrap();
        let mut bytes = object.content(table, TABLE_LIMIT).unwrap();
        for (at, byte) in bytes.iter_mut().enumerate() {
            change(at, byte);
        }
        use std::os::unix::fs::FileExt as _;
        file.write_all_at(&bytes, table.offset).unwrap();
        Shared::new(ObjectFile::from_file(file, "changed".into()).unwrap())
    }

    /// Numbers in the sorted table are not trusted: if they overflow, nothing is found.
    #[test]
    fn damaged_sorted_tables() {
        let pc = {
            let frames = Frames::for_file(&program(|_, _| ()));
            let tables = frames.tables.unwrap();
            let entries = tables.entries();
            let (begin, ..) = entries[entries.len() / 2];
            // Both ways find the same.
            let offset = tables.entry(begin).unwrap();
            assert!(
                entries
                    .iter()
                    .any(|entry| entry.2 == offset && entry.0 == begin)
            );
            begin
        };
        for value in [0, 0x7f, 0x80, 0xff] {
            for from in [8, 12] {
                let change = |at: usize, byte: &mut u8| {
                    if at >= from {
                        *byte = value;
                    }
                };
                let frames = Frames::for_file(&program(change));
                for pc in [0, pc, u64::MAX] {
                    let _ = frames.at(pc);
                }
            }
        }
    }

    #[test]
    fn alloca_cannot_be_told() {
        // push %rbp; mov %rsp,%rbp; sub %rax,%rsp
        assert_eq!(lowest(b"\x55\x48\x89\xe5\x48\x29\xc4", 64), None);
    }
}
