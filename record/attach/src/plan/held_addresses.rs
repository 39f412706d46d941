//! Addresses that a function's code puts into registers and into words of its frame, as it does where an argument is an array: by `lea`.
//!
//! One pass over the instructions up to the site, in the order of addresses. Jumps are not followed, so what is found is the address on the
//! usual way to the site; on another one, there may be another address. That is enough for the type of what is there.
//!
//! An array of `char` is passed as its address, for which debugging information has no location. Only x86-64 is
//! supported.

use std::collections::HashMap;

use gimli::Register as DwarfRegister;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

/// An address of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldAddress {
    /// A register plus bytes, at an instruction.
    Frame {
        register: DwarfRegister,
        offset: i64,
        /// The instruction.
        pc: u64,
    },
    /// As linked.
    Linked(u64),
}

/// What holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Register(DwarfRegister),
    /// The word at a register plus bytes.
    Word(DwarfRegister, i64),
}

/// The address that a register or a word of the frame holds at an instruction of x86-64 code, which begins at `start`.
pub(crate) fn held_address(
    code: &[u8],
    start: u64,
    pc: u64,
    holder: Holder,
) -> Option<HeldAddress> {
    let mut walk = Walk {
        held: HashMap::new(),
        info: InstructionInfoFactory::new(),
    };
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() < pc {
        decoder.decode_out(&mut instruction);
        walk.step(&instruction);
    }
    walk.held.remove(&holder)
}

struct Walk {
    held: HashMap<Holder, HeldAddress>,
    info: InstructionInfoFactory,
}

impl Walk {
    fn step(&mut self, instruction: &Instruction) {
        let to = target(instruction);
        let address = match instruction.mnemonic() {
            Mnemonic::Lea => address(instruction),
            Mnemonic::Mov => source(instruction).and_then(|from| self.held.get(&from).copied()),
            Mnemonic::Add => to.and_then(|to| moved(*self.held.get(&to)?, instruction)),
            // What a function saves and restores is its caller's.
            Mnemonic::Pop => return,
            _ => None,
        };
        let number = || linked_number(instruction);
        let address = address.or_else(number);
        self.forget_written(instruction);
        if let (Some(to), Some(address)) = (to, address) {
            self.held.insert(to, address);
        }
    }

    fn forget_written(&mut self, instruction: &Instruction) {
        if matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            self.held.retain(|holder, _| is_kept_by_calls(*holder));
        }
        let info = self.info.info(instruction);
        let writes = |access: OpAccess| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        };
        let registers = info.used_registers().iter();
        for used in registers.filter(|used| writes(used.access())) {
            if let Some(number) = number(used.register().full_register()) {
                self.held.remove(&Holder::Register(number));
            }
        }
        let words = info.used_memory().iter();
        for used in words.filter(|used| writes(used.access()) && used.index() == Register::None) {
            if let Some(base) = number(used.base()) {
                let offset = used.displacement() as i64;
                self.held.remove(&Holder::Word(base, offset));
            }
        }
    }
}

/// What an instruction writes, if it is a whole register or a word near one.
fn target(instruction: &Instruction) -> Option<Holder> {
    operand(instruction, 0)
}

/// What an instruction with two operands reads.
fn source(instruction: &Instruction) -> Option<Holder> {
    operand(instruction, 1)
}

fn operand(instruction: &Instruction, at: u32) -> Option<Holder> {
    match instruction.op_kind(at) {
        OpKind::Register => {
            let register = instruction.op_register(at);
            // A write to the lower half clears the upper one.
            let is_whole = register.is_gpr64() || register.is_gpr32() && at == 0;
            let number = number(register.full_register()).filter(|_| is_whole)?;
            Some(Holder::Register(number))
        }
        OpKind::Memory if instruction.memory_index() == Register::None => {
            let base = number(instruction.memory_base())?;
            let offset = instruction.memory_displacement64() as i64;
            Some(Holder::Word(base, offset))
        }
        _ => None,
    }
}

/// The address that `lea` computes.
fn address(instruction: &Instruction) -> Option<HeldAddress> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(HeldAddress::Linked(instruction.ip_rel_memory_address()));
    }
    let is_plain = instruction.memory_index() == Register::None;
    Some(HeldAddress::Frame {
        register: number(instruction.memory_base()).filter(|_| is_plain)?,
        offset: instruction.memory_displacement64() as i64,
        pc: instruction.ip(),
    })
}

/// A number that may be the address of a variable, in a program that is not moved.
fn linked_number(instruction: &Instruction) -> Option<HeldAddress> {
    let is_number = matches!(
        instruction.op1_kind(),
        OpKind::Immediate32 | OpKind::Immediate32to64
    );
    let is_move = instruction.mnemonic() == Mnemonic::Mov && instruction.op_count() == 2;
    (is_move && is_number).then(|| HeldAddress::Linked(instruction.immediate(1)))
}

/// The sum of an address and a constant.
fn moved(address: HeldAddress, instruction: &Instruction) -> Option<HeldAddress> {
    let is_constant = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    );
    let more = is_constant.then(|| instruction.immediate(1) as i64)?;
    Some(match address {
        HeldAddress::Frame {
            register,
            offset,
            pc,
        } => HeldAddress::Frame {
            register,
            offset: offset.checked_add(more)?,
            pc,
        },
        HeldAddress::Linked(address) => HeldAddress::Linked(address.checked_add_signed(more)?),
    })
}

/// Whether a called function leaves it as it was (System V ABI for x86-64, 3.2.1).
fn is_kept_by_calls(holder: Holder) -> bool {
    match holder {
        Holder::Register(DwarfRegister(number)) => matches!(number, 3 | 6 | 12..=15),
        Holder::Word(..) => true,
    }
}

/// The DWARF number of a whole register (System V ABI for x86-64, 3.6.2).
fn number(register: Register) -> Option<DwarfRegister> {
    const NUMBERS: [u16; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    let place = register.is_gpr64().then(|| register.number())?;
    let number = NUMBERS.get(place).copied();
    Some(DwarfRegister(number.unwrap_or(place as u16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RBX: Holder = Holder::Register(DwarfRegister(3));
    const RSP: DwarfRegister = DwarfRegister(7);

    fn held(code: &[u8], holder: Holder) -> Option<HeldAddress> {
        held_address(code, 0x1000, 0x1000 + code.len() as u64, holder)
    }

    #[test]
    fn the_address_of_an_array_on_the_stack() {
        // lea 0x8(%rsp),%rbx; mov %rax,%rsi; call
        let code = b"\x48\x8d\x5c\x24\x08\x48\x89\xc6\xe8\x00\x00\x00\x00";
        let expected = HeldAddress::Frame {
            register: RSP,
            offset: 8,
            pc: 0x1000,
        };
        assert_eq!(held(code, RBX), Some(expected));
        assert_eq!(held(code, Holder::Register(DwarfRegister(0))), None);
    }

    #[test]
    fn one_that_is_spilled() {
        // lea -0x20(%rbp),%rax; add $4,%rax; mov %rax,-0x50(%rbp)
        let code = b"\x48\x8d\x45\xe0\x48\x83\xc0\x04\x48\x89\x45\xb0";
        let expected = HeldAddress::Frame {
            register: DwarfRegister(6),
            offset: -0x1c,
            pc: 0x1000,
        };
        let word = Holder::Word(DwarfRegister(6), -0x50);
        assert_eq!(held(code, word), Some(expected));
    }

    #[test]
    fn variables_of_the_file() {
        // lea 0x10(%rip),%rbx
        let code = b"\x48\x8d\x1d\x10\x00\x00\x00";
        assert_eq!(held(code, RBX), Some(HeldAddress::Linked(0x1017)));
        // mov $0x404060,%ebx
        let code = b"\xbb\x60\x40\x40\x00";
        assert_eq!(held(code, RBX), Some(HeldAddress::Linked(0x40_4060)));
    }

    #[test]
    fn what_is_overwritten_is_not_held() {
        // lea 0x8(%rsp),%rbx; inc %rbx
        assert_eq!(held(b"\x48\x8d\x5c\x24\x08\x48\xff\xc3", RBX), None);
        // lea 0x8(%rsp),%rax; call
        let code = b"\x48\x8d\x44\x24\x08\xe8\x00\x00\x00\x00";
        assert_eq!(held(code, Holder::Register(DwarfRegister(0))), None);
    }
}
