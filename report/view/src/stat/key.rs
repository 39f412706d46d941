//! A key of a group of hits.

use std::sync::Arc;

use usdtrec_format::escape::escape;
use usdtrec_format::schema::Argument;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::form::Form;

use super::stack_name::StackName;
use crate::cells::Cell;
use crate::table::TableCell;

/// The value of a key in a group.
#[derive(Clone, Debug, PartialEq)]
pub enum StatKey {
    /// The name of a thread.
    Comm(Vec<u8>),
    /// A container or unit.
    Name(String),
    /// No value, and what is shown in its place.
    Unknown(&'static str),
    /// A process, thread or user.
    Number(u32),
    /// A stack.
    Stack(Arc<StackName>),
    /// The value of an argument.
    Argument {
        /// The value, or why it is missing.
        value: Value,
        /// What the argument is, if that is known.
        argument: Option<Argument>,
    },
    /// The probe has no such argument.
    Absent,
}

impl StatKey {
    /// Whether it is a number of which nothing says what it is, and which may be an address of a program, library, heap or stack (x86-64, arm64).
    fn may_be_address(&self) -> bool {
        const ADDRESSES: std::ops::Range<u64> = 1 << 40..1 << 48;
        let Self::Argument { value, argument } = self else {
            return false;
        };
        let is_known = argument.as_ref().is_some_and(|known| known.kind.is_some());
        matches!(value, Value::Unsigned(number) if !is_known && ADDRESSES.contains(number))
    }

    const fn is_zero(&self) -> bool {
        matches!(
            self,
            Self::Argument {
                value: Value::Unsigned(0),
                ..
            }
        )
    }

    /// The cell of the key.
    pub(crate) fn cell(&self) -> Cell {
        match self {
            Self::Comm(name) => Cell::text(&String::from_utf8_lossy(name)),
            Self::Name(name) => Cell::text(name),
            Self::Unknown(reason) => Cell::without_value(reason),
            Self::Number(number) => Cell::number(number.to_string()),
            Self::Stack(stack) => Cell::shortened(&stack.chain(), stack.folded()),
            Self::Absent => Cell::without_value("-"),
            Self::Argument {
                value: Value::Missing(Missing::Null),
                ..
            } => Cell::without_value("NULL"),
            Self::Argument { value, argument } => {
                let form = argument.as_ref().map(Form::new).unwrap_or_default();
                match form.missing(value) {
                    Some(reason) => Cell::without_value(&format!("<{reason}>")),
                    None => Cell::argument(value, &form),
                }
            }
        }
    }

    /// The key in a table.
    pub(super) fn table_cell(&self) -> TableCell {
        let cell = self.cell();
        if cell.is_number() {
            return TableCell::count(cell.text);
        }
        TableCell::Value(cell.text)
    }
}

/// How to group by the strings at the addresses that all groups have for a key; empty if no key has only such.
pub(super) fn address_hint<'k>(
    names: &[String],
    groups: impl Iterator<Item = &'k [StatKey]> + Clone,
) -> String {
    let is_address = |place: usize| {
        let values = groups.clone().filter_map(|keys| keys.get(place));
        // A program may pass no string.
        let mut values = values.filter(|key| !key.is_zero()).peekable();
        values.peek().is_some() && values.all(StatKey::may_be_address)
    };
    let found = names
        .iter()
        .enumerate()
        .find(|(place, _)| is_address(*place));
    found.map_or_else(String::new, |(_, name)| {
        let name = escape(name);
        format!(
            "; {name} has addresses: if of strings, text=str({name}) in an argument list has these"
        )
    })
}
