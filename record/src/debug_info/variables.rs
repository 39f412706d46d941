//! The variables that live at an instruction.

use gimli::{
    AttributeValue, DebuggingInformationEntry, EntriesTreeNode, Expression, Operation, Register,
    UnitOffset, UnitRef,
};

use super::place::Place;
use super::{Slice, covers};

/// Deepest nesting of scopes that is followed. Compilers inline a few dozen levels.
const DEEPEST: usize = 200;
/// Longest chain from an inlined copy to where it is declared.
const LONGEST_CHAIN: usize = 8;

type Unit<'a> = UnitRef<'a, Slice<'a>>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// A variable or parameter.
#[derive(Debug)]
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// Where it is.
    pub(super) place: Place,
    /// Its type.
    pub(super) kind: UnitOffset,
}

/// The variables at an instruction, scope by scope, from the outermost in. `caller` is the caller's frame there: a
/// register, and bytes added to it. What is damaged is left out.
pub(super) fn variables(
    unit: Unit<'_>,
    pc: u64,
    caller: Option<(Register, i64)>,
) -> Vec<Vec<Variable>> {
    let mut walk = Walk {
        unit,
        pc,
        caller,
        base: None,
        scopes: vec![Vec::new()],
    };
    if let Ok(mut tree) = unit.entries_tree(None)
        && let Ok(root) = tree.root()
    {
        // What was found before the damage is good.
        let _ = walk.children(root, 0);
    }
    walk.scopes
}

struct Walk<'a> {
    unit: Unit<'a>,
    pc: u64,
    caller: Option<(Register, i64)>,
    /// What offsets of variables are relative to in the function at hand.
    base: Option<(Register, i64)>,
    scopes: Vec<Vec<Variable>>,
}

impl<'a> Walk<'a> {
    fn children(
        &mut self,
        node: EntriesTreeNode<'_, '_, Slice<'a>>,
        depth: usize,
    ) -> gimli::Result<()> {
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => self.variable(entry),
                gimli::DW_TAG_namespace if depth < DEEPEST => self.children(child, depth + 1)?,
                gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_lexical_block
                    if depth < DEEPEST && self.is_here(entry) =>
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

    fn is_here(&self, entry: &Entry<'a>) -> bool {
        let ranges = self.unit.die_ranges(entry);
        ranges.is_ok_and(|ranges| covers(ranges, self.pc))
    }

    fn base_of(&self, function: &Entry<'a>) -> Option<(Register, i64)> {
        let expression = function
            .attr_value(gimli::DW_AT_frame_base)?
            .exprloc_value()?;
        match only(self.unit, expression)? {
            Operation::CallFrameCFA => self.caller,
            Operation::Register { register } => Some((register, 0)),
            Operation::RegisterOffset {
                register, offset, ..
            } => Some((register, offset)),
            _ => None,
        }
    }

    /// Keeps a variable that has a name, a type and a place.
    fn variable(&mut self, entry: &Entry<'a>) {
        let found = || {
            let expression = self.location(entry)?;
            let place = self.place(expression)?;
            let (name, kind) = self.declared(entry)?;
            Some(Variable { name, place, kind })
        };
        if let Some(variable) = found()
            && let Some(scope) = self.scopes.last_mut()
        {
            scope.push(variable);
        }
    }

    /// The expression that is in force at the instruction.
    fn location(&self, entry: &Entry<'a>) -> Option<Expression<Slice<'a>>> {
        let location = entry.attr_value(gimli::DW_AT_location)?;
        if let Some(expression) = location.exprloc_value() {
            return Some(expression);
        }
        let mut list = self.unit.attr_locations(location).ok()??;
        while let Some(part) = list.next().ok()? {
            if (part.range.begin..part.range.end).contains(&self.pc) {
                return Some(part.data);
            }
        }
        None
    }

    fn place(&self, expression: Expression<Slice<'a>>) -> Option<Place> {
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        let second = operations.next().ok()?;
        Some(match (first, second) {
            (Operation::Register { register }, None) => Place::Register(register),
            (
                Operation::RegisterOffset {
                    register, offset, ..
                },
                None,
            ) => Place::Memory(register, offset),
            (Operation::FrameOffset { offset }, None) => {
                let (register, base) = self.base?;
                Place::Memory(register, base.checked_add(offset)?)
            }
            // The value itself, not in any place.
            (
                Operation::RegisterOffset {
                    register,
                    offset: 0,
                    ..
                },
                Some(Operation::StackValue),
            ) => Place::Register(register),
            _ => return None,
        })
    }

    /// Name and type, which an inlined copy leaves to its original.
    fn declared(&self, entry: &Entry<'a>) -> Option<(String, UnitOffset)> {
        let (mut name, mut kind) = (None, None);
        let mut original: Option<Entry<'a>> = None;
        for _ in 0..LONGEST_CHAIN {
            let entry = original.as_ref().unwrap_or(entry);
            name = name.or_else(|| entry.attr_value(gimli::DW_AT_name));
            kind = kind.or_else(|| entry.attr_value(gimli::DW_AT_type));
            let next = entry.attr_value(gimli::DW_AT_abstract_origin);
            let next = next.or_else(|| entry.attr_value(gimli::DW_AT_specification));
            let Some(AttributeValue::UnitRef(next)) = next else {
                break;
            };
            original = Some(self.unit.entry(next).ok()?);
        }
        let name = self.unit.attr_string(name?).ok()?;
        let Some(AttributeValue::UnitRef(kind)) = kind else {
            return None;
        };
        // Other languages have other names; an argument's is C's.
        let name = std::str::from_utf8(name.slice()).ok()?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_name =
            name.chars().all(plain) && !name.starts_with(|first: char| first.is_ascii_digit());
        (is_name && !name.is_empty()).then(|| (name.to_owned(), kind))
    }
}

/// The only operation of an expression.
fn only<'a>(unit: Unit<'_>, expression: Expression<Slice<'a>>) -> Option<Operation<Slice<'a>>> {
    let mut operations = expression.operations(unit.encoding());
    let only = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(only)
}
