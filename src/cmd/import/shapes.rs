//! The probes of the input, each with the names and types of its arguments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use usdtrec_format::schema::{Argument, ArgumentType, Labels};

use super::event::{ImportedEvent, ImportedValue, ProbeName};

/// Maximum number of shapes.
const MAX_SHAPES: usize = 4096;
/// Maximum number of labels, in all shapes.
const MAX_LABELS: usize = 1 << 16;

/// The probes with their arguments. Events of a probe with other arguments have another shape.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) all: Vec<Shape>,
    by_key: HashMap<String, usize>,
    key: String,
    /// Number of labels.
    labels: usize,
}

/// A probe with its arguments.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) file: String,
    pub(super) provider: String,
    pub(super) name: String,
    pub(super) event: String,
    pub(super) arguments: Vec<ShapeArgument>,
}

/// An argument of a probe.
#[derive(Debug)]
pub(super) struct ShapeArgument {
    pub(super) name: String,
    pub(super) kind: ShapeKind,
    /// Words for numbers.
    pub(super) labels: BTreeMap<i64, String>,
}

/// The type that all values of an argument have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShapeKind {
    Integer {
        /// Whether one is negative.
        signed: bool,
        /// Whether one is beyond `i64`.
        large: bool,
    },
    /// Integers that may be floats without a fraction.
    Whole {
        signed: bool,
    },
    /// Integers in hexadecimal.
    Hex {
        large: bool,
    },
    Float,
    Bool,
    Text,
}

impl Shapes {
    /// Adds what an event has; `false` if there are too many shapes.
    pub(super) fn add(&mut self, event: &ImportedEvent<'_>) -> bool {
        let at = match self.find(event) {
            Some(at) => at,
            None if self.all.len() >= MAX_SHAPES => return false,
            None => {
                self.by_key.insert(self.key.clone(), self.all.len());
                self.all.push(Shape::new(event));
                self.all.len() - 1
            }
        };
        if let Some(shape) = self.all.get_mut(at) {
            for (known, found) in shape.arguments.iter_mut().zip(&event.arguments) {
                known.kind = known.kind.joined(ShapeKind::of(&found.value));
                if self.labels < MAX_LABELS && known.learn_label(&found.value) {
                    self.labels += 1;
                }
            }
        }
        true
    }

    /// Index of an event's shape.
    pub(super) fn find(&mut self, event: &ImportedEvent<'_>) -> Option<usize> {
        let ProbeName {
            file,
            provider,
            name,
            is_sdt,
        } = event.probe;
        self.key.clear();
        for part in [file, provider, name, if is_sdt { "s" } else { "" }] {
            self.key.push_str(part);
            self.key.push('\0');
        }
        for argument in &event.arguments {
            self.key.push_str(&argument.name);
            self.key.push('\0');
        }
        self.by_key.get(&self.key).copied()
    }
}

impl Shape {
    fn new(event: &ImportedEvent<'_>) -> Self {
        let arguments = event.arguments.iter().map(|argument| ShapeArgument {
            name: argument.name.clone().into_owned(),
            kind: ShapeKind::of(&argument.value),
            labels: BTreeMap::new(),
        });
        Self {
            file: event.probe.file.to_owned(),
            provider: event.probe.provider.to_owned(),
            name: event.probe.name.to_owned(),
            event: event.probe.event(),
            arguments: arguments.collect(),
        }
    }
}

impl ShapeArgument {
    /// As the definitions of a trace describe it.
    pub(super) fn described(&self) -> Argument {
        Argument {
            kind: Some(match self.kind {
                ShapeKind::Integer { signed, .. } | ShapeKind::Whole { signed } => {
                    ArgumentType::Integer { bytes: 8, signed }
                }
                ShapeKind::Hex { .. } => ArgumentType::Pointer,
                ShapeKind::Float => ArgumentType::Float64,
                ShapeKind::Bool => ArgumentType::Bool,
                ShapeKind::Text => ArgumentType::Text(None),
            }),
            labels: (!self.labels.is_empty() && self.kind.is_integer())
                .then(|| Labels::Enum(Arc::new(self.labels.clone()))),
            ..Argument::named(self.name.clone())
        }
    }

    /// Keeps the first label of a number; whether it is a new one.
    fn learn_label(&mut self, value: &ImportedValue<'_>) -> bool {
        let ImportedValue::Labelled { number, label } = value else {
            return false;
        };
        let Ok(number) = i64::try_from(*number) else {
            return false;
        };
        if self.labels.contains_key(&number) {
            return false;
        }
        self.labels.insert(number, label.clone());
        true
    }
}

impl ShapeKind {
    fn of(value: &ImportedValue<'_>) -> Self {
        match value {
            ImportedValue::Whole(number) => Self::Whole {
                signed: *number < 0,
            },
            ImportedValue::Hex(number) => Self::Hex {
                large: i64::try_from(*number).is_err(),
            },
            ImportedValue::Integer(number) | ImportedValue::Labelled { number, .. } => {
                Self::Integer {
                    signed: *number < 0,
                    large: *number > i128::from(i64::MAX),
                }
            }
            ImportedValue::Float(_) => Self::Float,
            ImportedValue::Bool(_) => Self::Bool,
            ImportedValue::Text(_) => Self::Text,
        }
    }

    /// Whether the values are integers.
    const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Integer { .. } | Self::Whole { .. } | Self::Hex { .. }
        )
    }

    /// The type that has the values of both: a text, if no other has.
    fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole { signed }, Self::Whole { signed: more }) => Self::Whole {
                signed: signed | more,
            },
            (Self::Hex { large }, Self::Hex { large: more }) => Self::Hex {
                large: large | more,
            },
            (Self::Bool, Self::Bool) => Self::Bool,
            (Self::Float, Self::Float | Self::Whole { .. }) | (Self::Whole { .. }, Self::Float) => {
                Self::Float
            }
            _ => match (self.range(), other.range()) {
                (Some(own), Some(more)) => own.joined(more),
                _ => Self::Text,
            },
        }
    }

    /// Which integers the values are.
    const fn range(self) -> Option<IntegerRange> {
        match self {
            Self::Integer { signed, large } => Some(IntegerRange { signed, large }),
            Self::Whole { signed } => Some(IntegerRange {
                signed,
                large: false,
            }),
            Self::Hex { large } => Some(IntegerRange {
                signed: false,
                large,
            }),
            Self::Float | Self::Bool | Self::Text => None,
        }
    }
}

/// Whether integers are negative, and beyond `i64`.
#[derive(Clone, Copy)]
struct IntegerRange {
    signed: bool,
    large: bool,
}

impl IntegerRange {
    const fn joined(self, other: Self) -> ShapeKind {
        let (signed, large) = (self.signed | other.signed, self.large | other.large);
        if signed && large {
            ShapeKind::Text
        } else {
            ShapeKind::Integer { signed, large }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(values: &[ImportedValue<'_>]) -> ShapeKind {
        let kinds = values.iter().map(ShapeKind::of);
        kinds.reduce(ShapeKind::joined).unwrap()
    }

    #[test]
    fn whole_numbers_are_floats_beside_floats() {
        use ImportedValue::{Bool, Float, Hex, Integer, Text, Whole};
        assert_eq!(joined(&[Whole(5), Float(1.5), Whole(-1)]), ShapeKind::Float);
        assert_eq!(
            joined(&[Whole(5), Whole(-1)]),
            ShapeKind::Whole { signed: true }
        );
        let integer = |signed, large| ShapeKind::Integer { signed, large };
        assert_eq!(joined(&[Whole(-5), Integer(1 << 40)]), integer(true, false));
        assert_eq!(joined(&[Whole(5), Hex(u64::MAX)]), integer(false, true));
        assert_eq!(joined(&[Whole(-5), Hex(u64::MAX)]), ShapeKind::Text);
        assert_eq!(
            joined(&[Hex(1), Hex(u64::MAX)]),
            ShapeKind::Hex { large: true }
        );
        assert_eq!(joined(&[Integer(1 << 40), Float(1.5)]), ShapeKind::Text);
        assert_eq!(joined(&[Bool(true), Bool(false)]), ShapeKind::Bool);
        assert_eq!(joined(&[Bool(true), Whole(1)]), ShapeKind::Text);
        assert_eq!(joined(&[Whole(5), Text(b"x"[..].into())]), ShapeKind::Text);
    }
}
