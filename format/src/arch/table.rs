//! The form of an architecture's description, and its names made ready for lookup.

use std::collections::HashMap;

use super::{Register, Syntax};

/// All that is known of an architecture, as it is written down in that architecture's file.
pub(crate) struct Description {
    /// Full-width registers, in groups. The very first is the program counter ([`Register::PROGRAM_COUNTER`]).
    pub(crate) registers: &'static [&'static [RegisterInfo]],
    /// Other names: of registers (`fp`) or of parts of them (`%ah`).
    pub(crate) aliases: &'static [Alias],
    /// Numbered other names (`w0` to `w30`).
    pub(crate) families: &'static [Family],
    /// The stack pointer's name.
    pub(crate) stack_pointer: &'static str,
    /// The frame pointer's name.
    pub(crate) frame_pointer: &'static str,
    /// What a probe site may begin with.
    pub(crate) nops: &'static [&'static [u8]],
    /// How operands are written.
    pub(crate) syntax: Syntax,
}

/// A full-width register.
#[derive(Clone, Copy)]
pub(crate) struct RegisterInfo {
    /// Name without prefix.
    pub(crate) name: &'static str,
    /// Width in bytes.
    pub(crate) bytes: u8,
    /// Bit in `PERF_SAMPLE_REGS_USER`'s mask.
    pub(crate) perf: Option<u8>,
}

/// A name for a register or for `bytes` bytes of it from bit `shift` on.
pub(crate) struct Alias {
    pub(crate) name: &'static str,
    pub(crate) register: &'static str,
    pub(crate) bytes: u8,
    pub(crate) shift: u8,
}

/// Names `prefix``n``suffix` for the low `bytes` bytes of the registers `register``n`.
pub(crate) struct Family {
    pub(crate) prefix: &'static str,
    pub(crate) suffix: &'static str,
    pub(crate) numbers: std::ops::RangeInclusive<u8>,
    pub(crate) register: &'static str,
    pub(crate) bytes: u8,
}

/// A register.
pub(crate) const fn register(name: &'static str, bytes: u8, perf: Option<u8>) -> RegisterInfo {
    RegisterInfo { name, bytes, perf }
}

/// An [`Alias`].
pub(crate) const fn alias(
    name: &'static str,
    register: &'static str,
    bytes: u8,
    shift: u8,
) -> Alias {
    Alias {
        name,
        register,
        bytes,
        shift,
    }
}

/// Numbered registers: their prefix, width, perf bit of number 0 (or `None`) and numbers.
macro_rules! numbered {
    ($prefix:literal, $bytes:literal, None, $($n:literal)*) => {
        &[$($crate::arch::table::register(concat!($prefix, $n), $bytes, None)),*]
    };
    ($prefix:literal, $bytes:literal, $first:literal, $($n:literal)*) => {
        &[$($crate::arch::table::register(concat!($prefix, $n), $bytes, Some($first + $n))),*]
    };
}
pub(crate) use numbered;

/// What a register name in an operand stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterPart {
    /// The full-width register.
    pub(crate) register: Register,
    /// Bytes of it that the name stands for.
    pub(crate) bytes: u8,
    /// First bit.
    pub(crate) shift: u8,
}

/// A description with its names resolved.
pub(crate) struct Table {
    pub(crate) registers: Vec<RegisterInfo>,
    names: HashMap<String, RegisterPart>,
    parts: HashMap<RegisterPart, String>,
    pub(crate) stack_pointer: Register,
    pub(crate) frame_pointer: Register,
    pub(crate) nops: &'static [&'static [u8]],
    pub(crate) syntax: &'static Syntax,
}

impl Table {
    /// Resolves the names of a description. One that names no register of it is dropped, which the
    /// tests of [`super`] exclude.
    pub(crate) fn new(description: &'static Description) -> Self {
        let registers: Vec<RegisterInfo> = description.registers.concat();
        let mut table = Self {
            names: HashMap::new(),
            parts: HashMap::new(),
            stack_pointer: Register::PROGRAM_COUNTER,
            frame_pointer: Register::PROGRAM_COUNTER,
            nops: description.nops,
            syntax: &description.syntax,
            registers: Vec::new(),
        };
        for (index, info) in (0u8..).zip(&registers) {
            table.add(
                info.name.to_owned(),
                RegisterPart {
                    register: Register(index),
                    bytes: info.bytes,
                    shift: 0,
                },
            );
        }
        table.registers = registers;
        for alias in description.aliases {
            table.add_part(
                alias.name.to_owned(),
                alias.register,
                alias.bytes,
                alias.shift,
            );
        }
        for family in description.families {
            for n in family.numbers.clone() {
                let name = format!("{}{n}{}", family.prefix, family.suffix);
                table.add_part(name, &format!("{}{n}", family.register), family.bytes, 0);
            }
        }
        let named = |name| table.name(name).map(|part| part.register);
        if let (Some(stack), Some(frame)) = (
            named(description.stack_pointer),
            named(description.frame_pointer),
        ) {
            table.stack_pointer = stack;
            table.frame_pointer = frame;
        }
        table
    }

    /// Adds a name for a part of the register named `whole`.
    fn add_part(&mut self, name: String, whole: &str, bytes: u8, shift: u8) {
        if let Some(RegisterPart { register, .. }) = self.name(whole) {
            self.add(
                name,
                RegisterPart {
                    register,
                    bytes,
                    shift,
                },
            );
        }
    }

    /// Adds a name. The first name for a part is the one that is given back for it.
    fn add(&mut self, name: String, part: RegisterPart) {
        self.parts.entry(part).or_insert_with(|| name.clone());
        self.names.insert(name, part);
    }

    /// What a register name, without its prefix, stands for.
    pub(crate) fn name(&self, name: &str) -> Option<RegisterPart> {
        self.names.get(name).copied()
    }

    /// The name of a part, or of the whole register if the part has none.
    pub(crate) fn part_name(&self, part: RegisterPart) -> &str {
        match self.parts.get(&part) {
            Some(name) => name,
            None => self.info(part.register).name,
        }
    }

    /// A register's description.
    pub(crate) fn info(&self, register: Register) -> RegisterInfo {
        const NONE: RegisterInfo = RegisterInfo {
            name: "no such register",
            bytes: 0,
            perf: None,
        };
        self.registers
            .get(usize::from(register.0))
            .copied()
            .unwrap_or(NONE)
    }
}
