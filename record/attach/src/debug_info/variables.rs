//! The variables that live at an instruction.

use gimli::{EntriesTreeNode, Expression, Operation, Register as DwarfRegister, UnitRef};
use usdtrec_dwarf::{Bytes, Die, DieAttributes};
use usdtrec_format::{Arch, Location, Operand, Register};

use crate::plan::frame::RegisterOffset;

/// Deepest nesting of scopes that is followed. Compilers inline a few dozen levels.
const MAX_DEPTH: usize = 200;
/// Maximum length of the chain from an inlined copy to its declaration.
const MAX_ORIGIN_CHAIN: usize = 8;

/// A variable or parameter.
pub(super) struct Variable<'r> {
    /// Its name.
    pub(super) name: String,
    /// Its location.
    pub(super) place: ValueLocation,
    /// Its type.
    pub(super) kind: Die<'r>,
}

/// The link-time address of a symbol.
pub(super) type Addresses<'h> = dyn Fn(&str) -> Option<u64> + 'h;

/// An instruction, with its frame and symbols.
pub(super) struct Here<'h> {
    /// Its link-time address.
    pub(super) pc: u64,
    /// The caller's frame there. Called only if needed.
    pub(super) caller: &'h dyn Fn() -> Option<RegisterOffset>,
    /// Addresses of symbols, if operands refer to symbols: variables of other files that this unit only declares.
    pub(super) symbols: Option<&'h Addresses<'h>>,
}

/// The variables at an instruction, scope by scope, from the outermost in. `root` is the unit's first entry. What is
/// damaged is left out.
pub(super) fn variables<'r>(root: &Die<'r>, here: &Here<'_>) -> Vec<Vec<Variable<'r>>> {
    let mut walk = Walk {
        root,
        here,
        base: None,
        scopes: vec![Vec::new()],
    };
    if let Ok(mut tree) = root.unit().entries_tree(None)
        && let Ok(root) = tree.root()
    {
        // Variables found before the damage are valid.
        let _ = walk.children(root, 0);
    }
    walk.scopes
}

struct Walk<'w, 'r> {
    root: &'w Die<'r>,
    here: &'w Here<'w>,
    /// The base of variables' offsets in the current function.
    base: Option<RegisterOffset>,
    scopes: Vec<Vec<Variable<'r>>>,
}

impl<'r> Walk<'_, 'r> {
    fn children(
        &mut self,
        node: EntriesTreeNode<'_, '_, Bytes>,
        depth: usize,
    ) -> gimli::Result<()> {
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => self.variable(entry),
                gimli::DW_TAG_namespace if depth < MAX_DEPTH => self.children(child, depth + 1)?,
                gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_lexical_block
                    if depth < MAX_DEPTH && self.is_here(entry) =>
                {
                    if entry.tag() == gimli::DW_TAG_subprogram {
                        self.base = self.base_of(entry);
                    }
                    self.scopes.push(Vec::new());
                    self.children(child, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_here(&self, entry: &DieAttributes) -> bool {
        let Ok(mut ranges) = self.root.unit().die_ranges(entry) else {
            return false;
        };
        // Damaged ones have none.
        let ranges = std::iter::from_fn(|| ranges.next().ok()?);
        let mut ranges = ranges.map(|range| range.begin..range.end);
        ranges.any(|range| range.contains(&self.here.pc))
    }

    fn base_of(&self, function: &DieAttributes) -> Option<RegisterOffset> {
        let expression = function
            .attr_value(gimli::DW_AT_frame_base)?
            .exprloc_value()?;
        match only(self.root.unit(), expression)? {
            Operation::CallFrameCFA => (self.here.caller)(),
            Operation::Register { register } => Some(RegisterOffset {
                register,
                offset: 0,
            }),
            Operation::RegisterOffset {
                register, offset, ..
            } => Some(RegisterOffset { register, offset }),
            _ => None,
        }
    }

    /// Keeps a variable that has a name, a type and a place.
    fn variable(&mut self, entry: &DieAttributes) {
        let found = || {
            let place = match self.location(entry) {
                Some(expression) => self.place(expression)?,
                None => self.elsewhere(entry)?,
            };
            let (name, kind) = self.declared(entry)?;
            Some(Variable { name, place, kind })
        };
        if let Some(variable) = found()
            && let Some(scope) = self.scopes.last_mut()
        {
            let same =
                |known: &Variable<'_>| known.place == variable.place && known.name == variable.name;
            // Declared and defined, it is still one.
            if !scope.iter().any(same) {
                scope.push(variable);
            }
        }
    }

    /// The place of a variable that another file defines.
    fn elsewhere(&self, entry: &DieAttributes) -> Option<ValueLocation> {
        let symbols = self.here.symbols?;
        entry.attr_value(gimli::DW_AT_declaration)?;
        let name = entry
            .attr_value(gimli::DW_AT_linkage_name)
            .or_else(|| entry.attr_value(gimli::DW_AT_name))?;
        Some(ValueLocation::Address(symbols(&self.root.text(name)?)?))
    }

    /// The expression that is in force at the instruction.
    fn location(&self, entry: &DieAttributes) -> Option<Expression<Bytes>> {
        let location = entry.attr_value(gimli::DW_AT_location)?;
        if let Some(expression) = location.exprloc_value() {
            return Some(expression);
        }
        let mut list = self.root.unit().attr_locations(location).ok()??;
        while let Some(part) = list.next().ok()? {
            if (part.range.begin..part.range.end).contains(&self.here.pc) {
                return Some(part.data);
            }
        }
        None
    }

    fn place(&self, expression: Expression<Bytes>) -> Option<ValueLocation> {
        let mut operations = expression.operations(self.root.unit().encoding());
        let first = operations.next().ok()??;
        let second = operations.next().ok()?;
        Some(match (first, second) {
            (Operation::Register { register }, None) => ValueLocation::Register(register),
            (
                Operation::RegisterOffset {
                    register, offset, ..
                },
                None,
            ) => ValueLocation::Memory(register, offset),
            (Operation::FrameOffset { offset }, None) => {
                let base = self.base?;
                ValueLocation::Memory(base.register, base.offset.checked_add(offset)?)
            }
            (Operation::Address { address }, None) => ValueLocation::Address(address),
            (Operation::AddressIndex { index }, None) => {
                ValueLocation::Address(self.root.unit().address(index).ok()?)
            }
            // The value itself, not in any place.
            (
                Operation::RegisterOffset {
                    register,
                    offset: 0,
                    ..
                },
                Some(Operation::StackValue),
            ) => ValueLocation::Register(register),
            _ => return None,
        })
    }

    /// Name and type, which an inlined copy leaves to its original.
    fn declared(&self, entry: &DieAttributes) -> Option<(String, Die<'r>)> {
        let (mut name, mut kind) = (None, None);
        let mut at = (self.root.clone(), entry.clone());
        for _ in 0..MAX_ORIGIN_CHAIN {
            let (die, entry) = &at;
            let found = || die.text(entry.attr_value(gimli::DW_AT_name)?);
            name = name.or_else(found);
            kind = kind.or_else(|| die.target(entry.attr_value(gimli::DW_AT_type)?));
            let next = entry.attr_value(gimli::DW_AT_abstract_origin);
            let next = next.or_else(|| entry.attr_value(gimli::DW_AT_specification));
            let Some(original) = next.and_then(|next| die.target(next)) else {
                break;
            };
            let entry = original.attributes()?;
            at = (original, entry);
        }
        let (name, kind) = (name?, kind?);
        // Other languages have other names; an argument's is C's.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_name =
            name.chars().all(plain) && !name.starts_with(|first: char| first.is_ascii_digit());
        (is_name && !name.is_empty()).then_some((name, kind))
    }
}

/// The only operation of an expression.
fn only(unit: UnitRef<'_, Bytes>, expression: Expression<Bytes>) -> Option<Operation<Bytes>> {
    let mut operations = expression.operations(unit.encoding());
    let only = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(only)
}

/// A location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueLocation {
    /// In the low bytes of a register.
    Register(DwarfRegister),
    /// In memory, at a register's content plus bytes.
    Memory(DwarfRegister, i64),
    /// In memory, at a link-time address.
    Address(u64),
}

impl ValueLocation {
    /// The location of an operand, with the addresses of symbols; `None` if no variable can be there: constants, indexed memory, addresses
    /// of symbols, thread-local storage.
    pub(super) fn from_operand(
        operand: &Operand,
        arch: Arch,
        address: impl Fn(&str) -> Option<u64>,
    ) -> Option<Self> {
        match &operand.location {
            Location::Register {
                register,
                shift: 0,
                pair: false,
                ..
            } => Some(Self::Register(number(arch, *register)?)),
            Location::RegisterDeref { register, offset } => {
                Some(Self::Memory(number(arch, *register)?, *offset))
            }
            Location::SymbolDeref { symbol, offset, .. } if global(operand) => {
                Some(Self::Address(address(symbol)?.wrapping_add_signed(*offset)))
            }
            _ => None,
        }
    }
}

/// Whether an operand reads memory at a symbol's address.
pub(super) fn global(operand: &Operand) -> bool {
    let Location::SymbolDeref {
        register, reloc, ..
    } = &operand.location
    else {
        return false;
    };
    match reloc {
        // The register helps the machine to reach the symbol.
        Some(reloc) => !reloc.is_thread_local(),
        None => register.is_none_or(|register| register == Register::PROGRAM_COUNTER),
    }
}

fn number(arch: Arch, register: Register) -> Option<DwarfRegister> {
    arch.dwarf_register(register).map(DwarfRegister)
}
