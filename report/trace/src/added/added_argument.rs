//! An argument that hits get besides their own, and its values.

use std::sync::Arc;

use usdtrec_format::schema::Argument;
use usdtrec_format::{Missing, Value};

/// An argument that the hits of an event get besides their own.
#[derive(Clone, Debug)]
pub struct AddedArgument {
    /// What is known of it. Its name has a dot, as no name of an own argument does.
    pub argument: Argument,
    /// Where its value is.
    pub place: AddedPlace,
    /// The arguments whose values it has.
    pub sources: Vec<ArgumentSource>,
}

/// Where the value of an added argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedPlace {
    /// Number of the part.
    pub part: usize,
    /// Index in the part.
    pub index: usize,
}

/// An argument of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentSource {
    /// Index of the event.
    pub event: usize,
    /// Index of the argument.
    pub place: usize,
}

/// What a hit gets besides its own arguments. Parts are known, or not, independently of each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddedValues(pub Vec<AddedPart>);

/// Values that are known together, as those of the arguments of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AddedPart {
    /// There are none.
    #[default]
    None,
    /// There are some, which are not known: a begin is missing in the trace.
    Unknown,
    /// They are these.
    Known(Arc<[Value]>),
}

impl AddedValues {
    /// The value at a place.
    #[must_use]
    pub fn value(&self, place: AddedPlace) -> Value {
        match self.0.get(place.part) {
            None | Some(AddedPart::None) => Value::Missing(Missing::Absent),
            Some(AddedPart::Unknown) => Value::Missing(Missing::Begin),
            Some(AddedPart::Known(values)) => {
                let value = values.get(place.index).cloned();
                value.unwrap_or(Value::Missing(Missing::Absent))
            }
        }
    }

    /// Sets a part.
    pub fn set(&mut self, part: usize, values: AddedPart) {
        if self.0.len() <= part {
            self.0.resize(part + 1, AddedPart::None);
        }
        if let Some(known) = self.0.get_mut(part) {
            *known = values;
        }
    }
}
