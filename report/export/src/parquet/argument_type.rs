//! Types of the columns of arguments.

use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_trace::form::Form;

use crate::dataset_table::ColumnType;
use crate::parquet::column_spec::ColumnSpec;

/// What the columns of an argument are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Number {
        kind: ColumnType,
        /// Whether nothing says that it is a number, so that it may be the address of what looks like a string.
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

impl ArgumentColumn {
    /// What follows the name of the argument in the name of the column.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Value => "",
            Self::Missing => "__missing",
            Self::Cut => "__cut",
            Self::Bytes => "__bytes",
            Self::Text => "__text",
            Self::Number => "__number",
            Self::Demangled => "__demangled",
        }
    }
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
            ColumnSpec::new(format!("{name}{}", column.suffix()), kind)
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
