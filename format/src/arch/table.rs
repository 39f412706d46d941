//! The registers of an architecture, found by their names.

use std::collections::HashMap;

use super::architecture::{Architecture, RegisterInfo};
use super::known::{Register, Syntax};

/// The meaning of a register name in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterPart {
    /// The full-width register.
    pub(crate) register: Register,
    /// Number of bytes of it that the name means.
    pub(crate) bytes: u8,
    /// First bit.
    pub(crate) shift: u8,
}

/// The registers of an architecture, with their names resolved.
pub(crate) struct Table {
    registers: Vec<RegisterInfo>,
    names: HashMap<String, RegisterPart>,
    parts: HashMap<RegisterPart, String>,
    pub(crate) stack_pointer: Register,
    pub(crate) frame_pointer: Register,
    pub(crate) return_register: Option<Register>,
    pub(crate) syntax: &'static Syntax,
}

impl Table {
    /// Resolves the names of an architecture. A name that is no register of it is dropped, which the
    /// tests of [`super`] exclude.
    pub(crate) fn new(architecture: &'static Architecture) -> Self {
        let registers: Vec<RegisterInfo> = architecture.registers.concat();
        let mut table = Self {
            names: HashMap::new(),
            parts: HashMap::new(),
            stack_pointer: Register::PROGRAM_COUNTER,
            frame_pointer: Register::PROGRAM_COUNTER,
            return_register: None,
            syntax: &architecture.syntax,
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
        for alias in architecture.aliases {
            table.add_part(
                alias.name.to_owned(),
                alias.register,
                alias.bytes,
                alias.shift,
            );
        }
        for family in architecture.families {
            for n in family.numbers.clone() {
                let name = format!("{}{n}{}", family.prefix, family.suffix);
                table.add_part(name, &format!("{}{n}", family.register), family.bytes, 0);
            }
        }
        let named = |name| table.name(name).map(|part| part.register);
        let return_register = architecture.return_register.and_then(named);
        if let (Some(stack), Some(frame)) = (
            named(architecture.stack_pointer),
            named(architecture.frame_pointer),
        ) {
            table.stack_pointer = stack;
            table.frame_pointer = frame;
        }
        table.return_register = return_register;
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

    /// Adds a name. The first name for a part is the one that is returned for it.
    fn add(&mut self, name: String, part: RegisterPart) {
        self.parts.entry(part).or_insert_with(|| name.clone());
        self.names.insert(name, part);
    }

    /// The meaning of a register name without its prefix.
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

    /// A register's architecture.
    pub(crate) fn info(&self, register: Register) -> RegisterInfo {
        const NONE: RegisterInfo = super::architecture::register("no such register", 0);
        self.registers
            .get(usize::from(register.0))
            .copied()
            .unwrap_or(NONE)
    }
}
