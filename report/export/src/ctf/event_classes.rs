//! Event classes: hits of an event whose values have the same types.
//!
//! The same argument can be signed at one site and a string at another, and any value can be missing, while a field has
//! one type. So there is a class for each form that was met, and no value that stands for a missing one. Integers that
//! a reader's floats cannot represent are strings.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_format::Value;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;

use crate::argument_parts::{ArgumentPart, each_part, hex};
use crate::ctf::packets::put_string;
use crate::redaction::RedactedArguments;
use crate::typed_value::TypedValue;

/// Classes: what programs do not reach, and what takes some megabytes.
const MAX_CLASSES: usize = 1 << 14;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FieldType {
    Unsigned,
    Signed,
    Float,
    Bool,
    Address,
    String,
}

/// A field of an event class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassField {
    /// Index of the argument.
    pub(crate) argument: u32,
    pub(crate) part: ArgumentPart,
    pub(crate) kind: FieldType,
}

/// An event class. Its number is its place.
#[derive(Clone, Debug)]
pub(crate) struct EventClass {
    /// Index of the event.
    pub(crate) event: usize,
    pub(crate) fields: Box<[ClassField]>,
}

/// All event classes.
#[derive(Debug)]
pub(crate) struct EventClasses {
    events: Vec<ClassesOfEvent>,
    all: Vec<EventClass>,
    /// Fields of the hit that is being written.
    fields: Vec<ClassField>,
}

/// Classes of an event.
#[derive(Debug)]
struct ClassesOfEvent {
    arguments: Vec<FieldArgument>,
    has_stack: bool,
    by_fields: HashMap<Box<[ClassField]>, u32>,
}

/// An argument that is not left out.
#[derive(Debug)]
struct FieldArgument {
    /// Its place among the event's.
    place: usize,
    form: Form,
}

impl EventClasses {
    pub(crate) fn new(session: &TraceSession, redacted: &RedactedArguments) -> Self {
        let events = session.events().events.iter().enumerate();
        let events = events.map(|(at, event)| ClassesOfEvent {
            arguments: redacted
                .kept(at, event)
                .map(|kept| FieldArgument {
                    place: kept.place,
                    form: Form::new(&kept.argument).human(false),
                })
                .collect(),
            has_stack: event.has_chain(),
            by_fields: HashMap::default(),
        });
        Self {
            events: events.collect(),
            all: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// All classes by their numbers.
    pub(crate) fn all(&self) -> &[EventClass] {
        &self.all
    }

    /// Whether the argument at a place of an event is not left out.
    pub(crate) fn has_argument(&self, event: usize, place: usize) -> bool {
        let arguments = self.events.get(event).map(|event| &event.arguments);
        arguments.is_some_and(|all| all.iter().any(|argument| argument.place == place))
    }

    /// Whether events of an index have a stack after their fields.
    pub(crate) fn has_stack(&self, event: usize) -> bool {
        self.events.get(event).is_some_and(|event| event.has_stack)
    }

    /// The class of a hit; its fields are appended.
    ///
    /// # Errors
    /// One for too many classes.
    pub(crate) fn class(&mut self, hit: RowHit<'_>, out: &mut Vec<u8>) -> io::Result<u32> {
        self.fields.clear();
        let Some(event) = self.events.get_mut(hit.row.event) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        for FieldArgument { place, form } in &event.arguments {
            let Some(value) = hit.values.get(*place) else {
                continue;
            };
            let argument = *place as u32;
            each_part(form, value, &mut |part, value| {
                let kind = put(&value, out);
                self.fields.push(ClassField {
                    argument,
                    part,
                    kind,
                });
            });
            if let Some(bytes) = with_nul(value) {
                put_string(&hex(bytes), out);
                self.fields.push(ClassField {
                    argument,
                    part: ArgumentPart::Bytes,
                    kind: FieldType::String,
                });
            }
        }
        if let Some(known) = event.by_fields.get(&*self.fields) {
            return Ok(*known);
        }
        if self.all.len() >= MAX_CLASSES {
            let message = format!("expected at most {MAX_CLASSES} event classes, found more");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let number = self.all.len() as u32;
        let fields: Box<[ClassField]> = self.fields.as_slice().into();
        event.by_fields.insert(fields.clone(), number);
        self.all.push(EventClass {
            event: hit.row.event,
            fields,
        });
        Ok(number)
    }
}

/// The bytes of a string in UTF-8 that has a NUL, which no string of the format can have.
fn with_nul(value: &Value) -> Option<&[u8]> {
    match value {
        Value::String(string) if string.bytes.contains(&0) => std::str::from_utf8(&string.bytes)
            .is_ok()
            .then_some(&*string.bytes),
        _ => None,
    }
}

/// Appends a value.
fn put(value: &TypedValue<'_>, out: &mut Vec<u8>) -> FieldType {
    match value {
        TypedValue::Unsigned(number) => {
            out.extend(number.to_le_bytes());
            FieldType::Unsigned
        }
        TypedValue::Signed(number) => {
            out.extend(number.to_le_bytes());
            FieldType::Signed
        }
        TypedValue::Float(number) => {
            out.extend(number.to_le_bytes());
            FieldType::Float
        }
        TypedValue::Bool(is) => {
            out.push(u8::from(*is));
            FieldType::Bool
        }
        TypedValue::Address(address) => {
            out.extend(address.to_le_bytes());
            FieldType::Address
        }
        TypedValue::String(string) => {
            put_string(string, out);
            FieldType::String
        }
        TypedValue::Missing(reason) => {
            put_string(reason, out);
            FieldType::String
        }
    }
}
