//! The columns of an argument: their types, and the values in them.

use std::borrow::Cow;

use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::{StringAt, Value};
use usdtrec_trace::form::Form;

use crate::dataset_table::ColumnType;
use crate::parquet::column::{BatchColumn, ColumnCell, ColumnSpec, put};
use crate::typed_value::{TypedValue, shown_string};

/// What follows the name of the argument in the names of its columns, in the order of [`ArgumentColumn`].
pub(crate) const SUFFIXES: [&str; 7] = [
    "",
    "__missing",
    "__cut",
    "__bytes",
    "__text",
    "__number",
    "__demangled",
];

/// What the columns of an argument are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Number {
        kind: ColumnType,
        /// Whether its type is not known, so that it may be the address of a string.
        is_guess: bool,
    },
    Bool,
    /// Words for numbers: enumerations, flags, characters.
    Words,
    Address,
    String {
        mangled: bool,
    },
    Bytes,
}

/// A column of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentColumn {
    Value,
    /// Why there is no value.
    Missing,
    /// Whether a string is longer than what was captured.
    Cut,
    /// Of a string that is not UTF-8.
    Bytes,
    /// What only looks like a string.
    Text,
    /// The number of a word.
    Number,
    Demangled,
}

impl ArgumentKind {
    /// The kind of an argument; `operands` are the kinds of its operands at all sites, `/` between different ones.
    pub(crate) fn new(argument: &Argument, form: &Form, operands: &str) -> Self {
        match form {
            Form::Enum(_) | Form::Flags(_) | Form::Char => Self::Words,
            Form::Bool => Self::Bool,
            Form::Address => Self::Address,
            Form::Bytes => Self::Bytes,
            Form::StringAddress => Self::String { mangled: false },
            Form::Mangled => Self::String { mangled: true },
            Form::Plain | Form::Time(_) | Form::Memory(_) => match &argument.kind {
                Some(kind) => Self::Number {
                    kind: declared(kind),
                    is_guess: false,
                },
                None => of_operands(operands),
            },
        }
    }

    /// The kind whose columns take the values of both.
    pub(crate) fn merged(self, other: Self) -> Self {
        use ColumnType::{Float64, Int64};
        match (self, other) {
            (one, other) if one == other => one,
            (
                Self::Number { kind, is_guess },
                Self::Number {
                    kind: other,
                    is_guess: also,
                },
            ) => Self::Number {
                kind: match (kind, other) {
                    (one, other) if one == other => one,
                    (Float64, _) | (_, Float64) => Float64,
                    _ => Int64,
                },
                is_guess: is_guess || also,
            },
            _ => Self::String { mangled: false },
        }
    }

    /// The columns of the argument, in their order.
    pub(crate) const fn columns(self) -> &'static [ArgumentColumn] {
        use ArgumentColumn::{Bytes, Cut, Demangled, Missing, Number, Text, Value};
        match self {
            Self::Number { is_guess: true, .. } => &[Value, Missing, Text, Cut, Bytes],
            Self::Number { .. } | Self::Bool | Self::Address => &[Value, Missing],
            Self::Words => &[Value, Missing, Number],
            Self::String { mangled: false } => &[Value, Missing, Cut, Bytes],
            Self::String { mangled: true } => &[Value, Missing, Cut, Bytes, Demangled],
            Self::Bytes => &[Value, Missing, Cut],
        }
    }

    /// The columns of an argument of the name.
    pub(crate) fn specs(self, name: &str) -> impl Iterator<Item = ColumnSpec> {
        self.columns().iter().map(move |column| {
            let kind = match column {
                ArgumentColumn::Value => self.value(),
                ArgumentColumn::Cut => ColumnType::Bool,
                ArgumentColumn::Bytes => ColumnType::Binary,
                ArgumentColumn::Number => ColumnType::Int64,
                ArgumentColumn::Missing | ArgumentColumn::Text | ArgumentColumn::Demangled => {
                    ColumnType::Text
                }
            };
            ColumnSpec::new(format!("{name}{}", SUFFIXES[*column as usize]), kind)
        })
    }

    const fn value(self) -> ColumnType {
        match self {
            Self::Number { kind, .. } => kind,
            Self::Bool => ColumnType::Bool,
            Self::Address => ColumnType::UInt64,
            Self::Words | Self::String { .. } => ColumnType::Text,
            Self::Bytes => ColumnType::Binary,
        }
    }
}

const fn declared(kind: &ArgumentType) -> ColumnType {
    match kind {
        ArgumentType::Integer { bytes, signed } if *signed || *bytes < 8 => ColumnType::Int64,
        ArgumentType::Float32 | ArgumentType::Float64 => ColumnType::Float64,
        _ => ColumnType::UInt64,
    }
}

fn of_operands(operands: &str) -> ArgumentKind {
    let has = |kinds: &[&str]| operands.split('/').any(|kind| kinds.contains(&kind));
    let is_guess = true;
    let kind = match () {
        () if has(&["str"]) => return ArgumentKind::String { mangled: false },
        () if has(&["f32", "f64"]) => ColumnType::Float64,
        () if has(&["s8", "s16", "s32", "s64"]) => ColumnType::Int64,
        () if has(&["u64", "?"]) || operands.is_empty() => ColumnType::UInt64,
        () => ColumnType::Int64,
    };
    ArgumentKind::Number { kind, is_guess }
}

/// An argument of an event in a table.
#[derive(Clone, Debug)]
pub(crate) struct TableArgument {
    /// Which argument of the event it is.
    pub(crate) place: usize,
    /// Its first column.
    pub(crate) first: usize,
    pub(crate) kind: ArgumentKind,
    pub(crate) form: Form,
}

/// What the columns of an argument take of a value, in the order of [`ArgumentColumn`].
#[derive(Default)]
struct ArgumentCells<'v>([ColumnCell<'v>; SUFFIXES.len()]);

impl<'v> ArgumentCells<'v> {
    fn with(mut self, column: ArgumentColumn, cell: impl Into<ColumnCell<'v>>) -> Self {
        self.0[column as usize] = cell.into();
        self
    }

    /// With a string in a column of text.
    fn with_string(self, column: ArgumentColumn, string: &'v StringAt) -> Self {
        let whole = shown_string(&string.bytes);
        let bytes = matches!(whole, Cow::Owned(_)).then_some(&string.bytes[..]);
        self.with(ArgumentColumn::Bytes, bytes)
            .with(ArgumentColumn::Cut, string.cut)
            .with(column, whole)
    }
}

impl TableArgument {
    /// Puts a value into the columns of the argument.
    #[inline]
    pub(crate) fn put(&self, columns: &mut [BatchColumn], value: &Value) {
        let columns = columns.get_mut(self.first..).unwrap_or_default();
        if let ArgumentKind::Number { kind, .. } = self.kind
            && !matches!(value, Value::String(_))
        {
            let number = number(kind, value);
            if !matches!(number, ColumnCell::Null) {
                // Of most arguments this is all. The end of the row puts null into the others.
                return put(columns, [number]);
            }
        }
        let mut cells = self.cells(value).0;
        let kinds = self.kind.columns().iter();
        put(
            columns,
            kinds.map(|column| std::mem::take(&mut cells[*column as usize])),
        );
    }

    fn cells<'v>(&self, value: &'v Value) -> ArgumentCells<'v> {
        use ArgumentColumn::{Cut, Demangled, Missing, Number, Text};
        const VALUE: ArgumentColumn = ArgumentColumn::Value;
        let cells = ArgumentCells::default();
        let typed = || TypedValue::new(&self.form, value);
        match (self.kind, value) {
            (ArgumentKind::Number { kind, .. }, Value::String(string)) => cells
                .with(VALUE, number(kind, value))
                .with_string(Text, string),
            (ArgumentKind::Bytes, Value::String(array)) => {
                cells.with(VALUE, &array.bytes[..]).with(Cut, array.cut)
            }
            (ArgumentKind::Words | ArgumentKind::String { .. }, Value::String(string))
                if self.form != Form::Bytes =>
            {
                cells
                    .with_string(VALUE, string)
                    .with(Demangled, self.form.readable(value))
            }
            (ArgumentKind::Words | ArgumentKind::String { .. }, value) => {
                let number = match value {
                    Value::Signed(number) => (*number).into(),
                    Value::Unsigned(number) => ColumnCell::count(*number),
                    _ => ColumnCell::Null,
                };
                let cells = cells.with(Number, number);
                match typed() {
                    TypedValue::Missing(reason) => cells.with(Missing, reason),
                    value => cells.with(VALUE, shown(value)),
                }
            }
            (kind, _) => match (kind, typed()) {
                (ArgumentKind::Bool, TypedValue::Bool(is)) => cells.with(VALUE, is),
                (ArgumentKind::Address, TypedValue::Address(address)) => cells.with(VALUE, address),
                // There is no value, or none of the column's type.
                (_, TypedValue::Missing(reason)) => cells.with(Missing, reason),
                (_, TypedValue::Address(address)) => {
                    cells.with(Missing, format!("memory at {address:#x} not captured"))
                }
                (_, value) => {
                    let shown = shown(value);
                    cells.with(Missing, format!("not of the column's type: {shown}"))
                }
            },
        }
    }
}

/// The number of a value in a column of a type; null if it has none, or the column cannot have it.
#[inline]
fn number(kind: ColumnType, value: &Value) -> ColumnCell<'static> {
    match (kind, value) {
        (ColumnType::Float64, Value::Float32(number)) => f64::from(*number).into(),
        (ColumnType::Float64, Value::Float64(number)) => (*number).into(),
        (ColumnType::Float64, Value::Signed(number)) => {
            i32::try_from(*number).ok().map(f64::from).into()
        }
        (ColumnType::Float64, Value::Unsigned(number)) => {
            u32::try_from(*number).ok().map(f64::from).into()
        }
        (ColumnType::UInt64, Value::Unsigned(number)) => (*number).into(),
        (ColumnType::UInt64, Value::Signed(number)) => u64::try_from(*number).ok().into(),
        (ColumnType::UInt64, Value::String(string)) if string.guessed => string.address.into(),
        (ColumnType::Int64, Value::Signed(number)) => (*number).into(),
        (ColumnType::Int64, Value::Unsigned(number)) => ColumnCell::count(*number),
        (ColumnType::Int64, Value::String(string)) if string.guessed => {
            ColumnCell::count(string.address)
        }
        _ => ColumnCell::Null,
    }
}

/// A value of another type as text.
fn shown(value: TypedValue<'_>) -> Cow<'_, str> {
    match value {
        TypedValue::Unsigned(number) => number.to_string().into(),
        TypedValue::Signed(number) => number.to_string().into(),
        TypedValue::Float(number) => number.to_string().into(),
        TypedValue::Bool(is) => is.to_string().into(),
        TypedValue::Address(address) => format!("{address:#x}").into(),
        TypedValue::String(string) => string,
        TypedValue::Missing(reason) => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_take_the_values_of_all_operands() {
        let kind = |operands: &str| match of_operands(operands) {
            ArgumentKind::Number { kind, .. } => kind,
            _ => ColumnType::Text,
        };
        assert_eq!(kind("s32"), ColumnType::Int64);
        assert_eq!(kind("u32"), ColumnType::Int64);
        assert_eq!(kind("u32/u64"), ColumnType::UInt64);
        assert_eq!(kind("u64/s32"), ColumnType::Int64);
        assert_eq!(kind("s32/f64"), ColumnType::Float64);
        assert_eq!(kind("str"), ColumnType::Text);
        assert_eq!(kind(""), ColumnType::UInt64);
        let text = ArgumentKind::String { mangled: false };
        assert_eq!(text.merged(ArgumentKind::Bool), text);
    }
}
