//! The probes of the input, each with the names and types of its arguments.

use std::collections::HashMap;

use usdtrec_format::schema::{Argument, ArgumentType};

use super::event::{ImportedEvent, ImportedValue, ProbeName};

/// Maximum number of shapes.
const MAX_SHAPES: usize = 4096;

/// The probes with their arguments. Events of a probe with other arguments have another shape.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) all: Vec<Shape>,
    by_key: HashMap<String, usize>,
    key: String,
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
    Float,
    String,
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
                known.kind = known.kind.joined(ShapeKind::from_value(&found.value));
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
            self.key.push_str(argument.name);
            self.key.push('\0');
        }
        self.by_key.get(&self.key).copied()
    }
}

impl Shape {
    fn new(event: &ImportedEvent<'_>) -> Self {
        let arguments = event.arguments.iter().map(|argument| ShapeArgument {
            name: argument.name.to_owned(),
            kind: ShapeKind::from_value(&argument.value),
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
                ShapeKind::Integer { signed, .. } => ArgumentType::Integer { bytes: 8, signed },
                ShapeKind::Float => ArgumentType::Float64,
                ShapeKind::String => ArgumentType::String(None),
            }),
            ..Argument::named(self.name.clone())
        }
    }
}

impl ShapeKind {
    fn from_value(value: &ImportedValue<'_>) -> Self {
        match value {
            ImportedValue::Integer(number) => Self::Integer {
                signed: *number < 0,
                large: *number > i128::from(i64::MAX),
            },
            ImportedValue::Float(_) => Self::Float,
            ImportedValue::String(_) => Self::String,
        }
    }

    /// The type that has the values of both: a string, if no other has.
    const fn joined(self, other: Self) -> Self {
        let (signed, large) = match (self, other) {
            (Self::Float, Self::Float) => return Self::Float,
            (
                Self::Integer { signed, large },
                Self::Integer {
                    signed: more_signed,
                    large: more_large,
                },
            ) => (signed | more_signed, large | more_large),
            _ => return Self::String,
        };
        match signed && large {
            true => Self::String,
            false => Self::Integer { signed, large },
        }
    }
}
