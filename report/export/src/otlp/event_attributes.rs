//! The attributes that a schema gives the hits of an event.

use usdtrec_format::schema::telemetry::attribute_name;
use usdtrec_format::schema::telemetry::conventions::{self, ConventionType};
use usdtrec_format::schema::{NamePart, name_parts};
use usdtrec_format::{Missing, Value};
use usdtrec_trace::form::Form;
use usdtrec_trace::session::events::Event;

use crate::typed_value::{TypedValue, guessed_address};

/// An attribute of a schema.
#[derive(Debug)]
pub(crate) struct EventAttribute {
    pub(crate) name: String,
    /// Type of the attribute in the conventions.
    kind: Option<ConventionType>,
    value: AttributeSource,
}

/// Where the value of an attribute comes from.
#[derive(Debug)]
enum AttributeSource {
    /// The same at each hit.
    Constant(TypedValue<'static>),
    /// The argument at a place.
    Argument(usize),
    /// Texts and arguments, one after the other.
    Parts(Vec<SourcePart>),
}

#[derive(Debug)]
enum SourcePart {
    Text(String),
    /// The argument at a place.
    Argument(usize),
}

/// The value of an attribute at a hit.
#[derive(Debug)]
pub(crate) struct AttributeValue {
    pub(crate) value: TypedValue<'static>,
    /// The argument at this place has no other value than the attribute.
    pub(crate) of_argument: Option<usize>,
}

impl EventAttribute {
    /// The attributes of an event that has all arguments which they need. What a trace says of others is ignored.
    pub(crate) fn all(event: &Event) -> Vec<Self> {
        let attributes = event.telemetry.attributes.iter();
        let right = attributes.filter(|(name, _)| attribute_name::check(name).is_ok());
        let known = right.filter_map(|(name, value)| {
            let kind = conventions::kind(name);
            Some(Self {
                name: name.clone(),
                kind,
                value: AttributeSource::new(value, kind, event)?,
            })
        });
        known.collect()
    }

    /// The value at a hit; `None` if an argument has none. `form` is the form of each argument.
    pub(crate) fn value<'f>(
        &self,
        form: impl Fn(usize) -> Option<&'f Form>,
        values: &[Value],
    ) -> Option<AttributeValue> {
        let typed = |at: usize| known(form(at)?, values.get(at)?);
        let (value, of_argument) = match &self.value {
            AttributeSource::Constant(value) => (value.clone(), None),
            AttributeSource::Argument(at) => {
                let Typed { value, is_changed } = typed(*at)?;
                match (self.kind, &value) {
                    (_, TypedValue::String(_)) => (value, (!is_changed).then_some(*at)),
                    (Some(ConventionType::Text), _) => {
                        (TypedValue::String(words(&value).into()), None)
                    }
                    _ => (value, Some(*at)),
                }
            }
            AttributeSource::Parts(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        SourcePart::Text(part) => text.push_str(part),
                        // As in names of functions: a function of no class has a null pointer for it.
                        SourcePart::Argument(at)
                            if values.get(*at) == Some(&Value::Missing(Missing::Null)) => {}
                        SourcePart::Argument(at) => text.push_str(&words(&typed(*at)?.value)),
                    }
                }
                (TypedValue::String(text.into()), None)
            }
        };
        Some(AttributeValue { value, of_argument })
    }
}

impl AttributeSource {
    fn new(value: &str, kind: Option<ConventionType>, event: &Event) -> Option<Self> {
        let place = |name: &str| event.own_argument(name);
        let parts = name_parts(value)?;
        Some(match *parts {
            [] => return None,
            [NamePart::Argument(name)] => Self::Argument(place(name)?),
            [NamePart::Text(text)] => Self::Constant(constant(text, kind)),
            _ => {
                let parts = parts.into_iter().map(|part| match part {
                    NamePart::Text(text) => Some(SourcePart::Text(text.to_owned())),
                    NamePart::Argument(name) => place(name).map(SourcePart::Argument),
                });
                Self::Parts(parts.collect::<Option<_>>()?)
            }
        })
    }
}

/// A constant, as a number if the conventions have a number there.
fn constant(text: &str, kind: Option<ConventionType>) -> TypedValue<'static> {
    let number = match kind {
        Some(ConventionType::Integer) => text.parse().ok().map(TypedValue::Signed),
        Some(ConventionType::Float) => text.parse().ok().map(TypedValue::Float),
        Some(ConventionType::Bool) => text.parse().ok().map(TypedValue::Bool),
        _ => None,
    };
    number.unwrap_or_else(|| TypedValue::String(text.to_owned().into()))
}

/// A value that is there.
struct Typed {
    value: TypedValue<'static>,
    /// Whether it differs from what the argument has: a name that was mangled.
    is_changed: bool,
}

/// A value that is there, and is not only guessed to be a string.
fn known(form: &Form, value: &Value) -> Option<Typed> {
    if guessed_address(value).is_some() {
        return None;
    }
    if let Some(readable) = form.readable(value) {
        return Some(Typed {
            value: TypedValue::String(readable.into()),
            is_changed: true,
        });
    }
    let value = TypedValue::new(form, value).owned();
    let is_there = !matches!(value, TypedValue::Missing(_));
    is_there.then_some(Typed {
        value,
        is_changed: false,
    })
}

/// A value as a string.
fn words(value: &TypedValue<'_>) -> String {
    match value {
        TypedValue::Unsigned(number) => number.to_string(),
        TypedValue::Signed(number) => number.to_string(),
        TypedValue::Float(number) => number.to_string(),
        TypedValue::Bool(is) => is.to_string(),
        TypedValue::Address(address) => format!("{address:#x}"),
        TypedValue::String(string) => string.to_string(),
        TypedValue::Missing(reason) => reason.clone(),
    }
}
