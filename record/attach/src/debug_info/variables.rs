//! The variables that live at an instruction.

use std::collections::HashSet;
use std::time::Instant;

use gimli::{EntriesTreeNode, Expression, Operation, Register as DwarfRegister, UnitRef};
use usdtrec_dwarf::{Bytes, Die, DieAttributes};
use usdtrec_format::{Arch, Location, Operand, Register};

use super::limits::{MAX_NAME_BYTES, MAX_RANGES, MAX_VARIABLES, is_late};
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

/// The caller's frame at an instruction.
pub(super) type Caller<'h> = dyn Fn() -> Option<RegisterOffset> + 'h;

/// An instruction, with its frame and symbols.
pub(super) struct Here<'h> {
    /// Its link-time address.
    pub(super) pc: u64,
    /// The caller's frame there. Called only if needed.
    pub(super) caller: &'h Caller<'h>,
    /// Addresses of symbols, if operands refer to symbols: variables of other files that this unit only declares.
    pub(super) symbols: Option<&'h Addresses<'h>>,
    /// When the search ends.
    pub(super) until: Instant,
}

/// The variables at an instruction, scope by scope, from the outermost in. `root` is the unit's first entry. What is
/// damaged is left out. None if there are too many, or no time is left: what looks like the only variable of a place may not be.
pub(super) fn variables<'r>(root: &Die<'r>, here: &Here<'_>) -> Vec<Vec<Variable<'r>>> {
    let mut walk = Walk {
        root,
        here,
        base: None,
        scopes: vec![Vec::new()],
        known: HashSet::new(),
        left: MAX_VARIABLES,
        is_cut: false,
    };
    if let Ok(mut tree) = root.unit().entries_tree(None)
        && let Ok(root) = tree.root()
    {
        // Variables found before the damage are valid.
        let _ = walk.children(root, 0);
    }
    if walk.is_cut {
        walk.scopes.clear();
    }
    walk.scopes
}

struct Walk<'w, 'r> {
    root: &'w Die<'r>,
    here: &'w Here<'w>,
    /// The base of variables' offsets in the current function.
    base: Option<RegisterOffset>,
    scopes: Vec<Vec<Variable<'r>>>,
    /// Places and names of the variables of the last scope.
    known: HashSet<(ValueLocation, String)>,
    /// How many more variables and scopes are kept.
    left: usize,
    /// Whether the walk ended before the unit.
    is_cut: bool,
}

impl<'r> Walk<'_, 'r> {
    fn children(
        &mut self,
        node: EntriesTreeNode<'_, '_, Bytes>,
        depth: usize,
    ) -> gimli::Result<()> {
        let mut children = node.children();
        while let Some(child) = children.next()? {
            self.is_cut |= self.left == 0 || is_late(self.here.until);
            if self.is_cut {
                break;
            }
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
                    self.known.clear();
                    self.left -= 1;
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
        let ranges = ranges.take(MAX_RANGES);
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
            // Declared and defined, it is still one.
            if self.known.insert((variable.place, variable.name.clone())) {
                scope.push(variable);
                self.left -= 1;
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
        let parts = std::iter::from_fn(|| list.next().ok()?);
        let mut parts = parts.take(MAX_RANGES);
        let here = parts.find(|part| (part.range.begin..part.range.end).contains(&self.here.pc));
        here.map(|part| part.data)
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
        let is_short = (1..=MAX_NAME_BYTES).contains(&name.len());
        (is_name && is_short).then_some((name, kind))
    }
}

/// The only operation of an expression.
fn only(unit: UnitRef<'_, Bytes>, expression: Expression<Bytes>) -> Option<Operation<Bytes>> {
    let mut operations = expression.operations(unit.encoding());
    let only = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(only)
}

/// A location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use usdtrec_dwarf::{DwarfInfo, DwarfNeed, DwarfSource, SectionFile, SectionPlace};
    use usdtrec_format::BuildId;

    use super::*;

    /// Sections, one after the other.
    struct Sections(Vec<(&'static str, Vec<u8>)>);

    impl Sections {
        fn all(&self) -> Vec<u8> {
            self.0.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
        }
    }

    impl SectionFile for Sections {
        fn length(&self) -> u64 {
            self.all().len() as u64
        }

        fn build_id(&self) -> Option<BuildId> {
            None
        }

        fn is_big_endian(&self) -> bool {
            false
        }

        fn is_class64(&self) -> bool {
            true
        }

        fn section(&self, name: &str) -> Option<SectionPlace> {
            let at = self.0.iter().position(|(known, _)| *known == name)?;
            let before = self.0[..at].iter().map(|(_, bytes)| bytes.len() as u64);
            Some(SectionPlace {
                address: 0,
                offset: before.sum(),
                size: self.0[at].1.len() as u64,
                is_compressed: false,
            })
        }

        fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>> {
            let at = usize::try_from(at).ok()?;
            Some(self.all().get(at..at + len)?.to_vec())
        }
    }

    /// Offset of the type in the unit.
    const TYPE: u32 = 12;

    /// A unit with variables of one name, at addresses from 0 on.
    fn unit(name: &str, variables: usize) -> Sections {
        #[rustfmt::skip]
        let abbreviations = vec![
            1, 0x11, 1, 0, 0, // DW_TAG_compile_unit with children
            2, 0x34, 0, 0x03, 0x0e, 0x49, 0x13, 0x02, 0x18, 0, 0, // DW_TAG_variable: name, type, location
            3, 0x24, 0, 0x0b, 0x0b, 0, 0, // DW_TAG_base_type: size
            0,
        ];
        let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1, 3, 8];
        for address in 0..variables as u64 {
            unit.extend([2, 0, 0, 0, 0]);
            unit.extend(TYPE.to_le_bytes());
            unit.extend([9, 0x03]);
            unit.extend(address.to_le_bytes());
        }
        unit.push(0);
        let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
        let text = [name.as_bytes(), &[0]].concat();
        Sections(vec![
            (".debug_abbrev", abbreviations),
            (".debug_info", info),
            (".debug_str", text),
        ])
    }

    fn count(sections: &Sections, patience: Duration) -> usize {
        let source = DwarfSource {
            file: sections,
            path: Path::new("made up"),
            programs: Vec::new(),
            open: |_| None,
        };
        let dwarf = DwarfInfo::read(source, DwarfNeed::Variables).unwrap();
        let unit = dwarf.unit(0).unwrap();
        let root = dwarf.first_entry(&unit);
        let here = Here {
            pc: 0x1000,
            caller: &|| None,
            symbols: None,
            until: Instant::now() + patience,
        };
        variables(&root, &here).iter().map(Vec::len).sum()
    }

    #[test]
    fn too_many_variables_are_not_kept() {
        let patience = Duration::from_secs(600);
        assert_eq!(count(&unit("url", 1000), patience), 1000);
        assert_eq!(count(&unit("url", 1000), Duration::ZERO), 0);
        assert_eq!(count(&unit("url", MAX_VARIABLES + 1), patience), 0);
        let longest = "x".repeat(MAX_NAME_BYTES);
        assert_eq!(count(&unit(&longest, 10), patience), 10);
        assert_eq!(count(&unit(&(longest + "x"), 10_000), patience), 0);
    }
}
