//! Annotations of track events: the arguments of hits.

use std::borrow::Cow;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::spans::spent_time::SpentTime;
use usdtrec_format::Value;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::text::buffer::Text;

use crate::perfetto::fields::{annotation, track_event};
use crate::protobuf::Proto;
use crate::redaction::RedactedArguments;
use crate::typed_value::{TypedValue, guessed_address, is_cut, string_bytes};

/// Which side of a span a hit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The begin, or an event of no span.
    Begin,
    End,
}

/// Names of annotations that are not arguments.
const FIXED: &str = "\
    args missing cut bytes numbers cpu end end_missing end_cut end_bytes end_numbers end_cpu \
    self_ns span";

/// Names of all annotations of a trace.
pub(crate) struct AnnotationNames {
    /// Of each event, its arguments.
    events: Vec<Vec<AnnotatedArgument>>,
    names: Vec<String>,
    /// Number of the first name of a part of the time of spans; the others follow. `None` if there are none.
    parts: Option<u64>,
}

/// An argument.
struct AnnotatedArgument {
    /// Its place among the event's.
    place: usize,
    /// Number of its name.
    name: u64,
    form: Form,
}

/// An argument with its value.
#[derive(Clone, Copy)]
struct Annotated<'v> {
    argument: &'v AnnotatedArgument,
    value: &'v Value,
}

impl Annotated<'_> {
    /// Whether its typed value says all; if not, [`details`] may have more.
    #[inline]
    fn is_complete(&self, typed: &TypedValue<'_>) -> bool {
        match (self.value, typed) {
            // What is not borrowed is not UTF-8, or has another form.
            (Value::String(string), TypedValue::String(Cow::Borrowed(_))) => {
                !string.cut && !string.guessed
            }
            (Value::Missing(_) | Value::String(_), _) => false,
            _ => !self.argument.form.is_string(),
        }
    }
}

impl AnnotationNames {
    pub(crate) const SELF_NS: u64 = 13;
    pub(crate) const SPAN: u64 = 14;
    /// Number of `args`, and of `end`; after each of them come what is missing, cut and so on.
    const OF_BEGIN: u64 = 1;
    const OF_END: u64 = 7;

    pub(crate) fn new(session: &TraceSession, redacted: &RedactedArguments) -> Self {
        let mut names: Vec<String> = FIXED.split(' ').map(str::to_owned).collect();
        let events = session.events().events.iter().enumerate();
        let events = events.map(|(at, event)| {
            let arguments = redacted.kept(at, event).map(|kept| {
                let form = Form::new(&kept.argument).plain();
                names.push(kept.argument.name);
                AnnotatedArgument {
                    place: kept.place,
                    name: names.len() as u64,
                    form,
                }
            });
            arguments.collect()
        });
        let events = events.collect();
        let parts = session.has_waits().then(|| names.len() as u64 + 1);
        if parts.is_some() {
            names.extend(SpentTime::named(None).map(|(name, _)| name.to_owned()));
        }
        Self {
            events,
            names,
            parts,
        }
    }

    /// All names, by their numbers from 1.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Appends the annotation of a string.
    pub(crate) fn text(&self, event: &mut Proto, name: u64, text: &str) {
        put(event, track_event::ANNOTATIONS, name, |one| {
            one.bytes(annotation::TEXT, text.as_bytes());
        });
    }

    /// Appends that of a number.
    pub(crate) fn number(&self, event: &mut Proto, name: u64, number: u64) {
        put(event, track_event::ANNOTATIONS, name, |one| {
            one.unsigned(annotation::UNSIGNED, number);
        });
    }

    /// Appends those of what a span was spent on, as far as it is known.
    pub(crate) fn put_parts(&self, event: &mut Proto, spent: SpentTime) {
        let Some(first) = self.parts else {
            return;
        };
        for (name, (_, ns)) in (first..).zip(SpentTime::named(Some(spent))) {
            if let Some(ns) = ns {
                self.number(event, name, ns);
            }
        }
    }

    /// Appends those of a hit.
    pub(crate) fn put(&self, event: &mut Proto, hit: RowHit<'_>, side: Side) {
        let first = match side {
            Side::Begin => Self::OF_BEGIN,
            Side::End => Self::OF_END,
        };
        if let Some(cpu) = hit.row.cpu {
            self.number(event, first + 5, cpu.into());
        }
        let arguments = self.events.get(hit.row.event);
        let arguments = arguments.map_or(&[][..], Vec::as_slice);
        let values = arguments.iter().filter_map(|argument| {
            let value = hit.values.get(argument.place)?;
            Some(Annotated { argument, value })
        });
        if values.clone().next().is_none() {
            return;
        }
        let mut is_complete = true;
        put(event, track_event::ANNOTATIONS, first, |all| {
            for one in values.clone() {
                let argument = one.argument;
                let value = TypedValue::new(&argument.form, one.value);
                is_complete &= one.is_complete(&value);
                if let TypedValue::Missing(_) = value {
                    continue;
                }
                put(
                    all,
                    annotation::ENTRIES,
                    argument.name,
                    |one| match &value {
                        TypedValue::Unsigned(number) => one.unsigned(annotation::UNSIGNED, *number),
                        TypedValue::Signed(number) => one.signed(annotation::SIGNED, *number),
                        TypedValue::Float(number) => one.double(annotation::FLOAT, *number),
                        TypedValue::Bool(is) => one.unsigned(annotation::BOOL, (*is).into()),
                        TypedValue::Address(address) => one.unsigned(annotation::ADDRESS, *address),
                        TypedValue::String(string) => {
                            one.bytes(annotation::TEXT, string.as_bytes())
                        }
                        TypedValue::Missing(_) => {}
                    },
                );
            }
        });
        if !is_complete {
            details(event, first + 1, values);
        }
    }
}

/// Appends an annotation.
#[inline]
fn put(event: &mut Proto, field: u32, name: u64, value: impl FnOnce(&mut Proto)) {
    event.message(field, |one| {
        one.unsigned(annotation::NAME_ID, name);
        value(one);
    });
}

/// Appends what the values do not say.
fn details<'v>(event: &mut Proto, first: u64, values: impl Iterator<Item = Annotated<'v>> + Clone) {
    type Detail = fn(&Form, &Value, &mut Proto) -> bool;
    let missing: Detail = |form, value, one| match TypedValue::new(form, value) {
        TypedValue::Missing(reason) => {
            one.bytes(annotation::TEXT, reason.as_bytes());
            true
        }
        _ => false,
    };
    let cut: Detail = |_, value, one| {
        one.unsigned(annotation::BOOL, 1);
        is_cut(value)
    };
    let bytes: Detail = |form, value, one| match string_bytes(form, value) {
        Some(bytes) => {
            let mut text = Text::default();
            text.hex_bytes(bytes);
            one.bytes(annotation::TEXT, text.as_slice());
            true
        }
        None => false,
    };
    let numbers: Detail = |_, value, one| match guessed_address(value) {
        Some(address) => {
            one.unsigned(annotation::UNSIGNED, address);
            true
        }
        None => false,
    };
    for (name, detail) in (first..).zip([missing, cut, bytes, numbers]) {
        let mut entries = Proto::default();
        for Annotated { argument, value } in values.clone() {
            let mut one = Proto::default();
            one.unsigned(annotation::NAME_ID, argument.name);
            if detail(&argument.form, value, &mut one) {
                entries.bytes(annotation::ENTRIES, one.as_slice());
            }
        }
        if entries.len() > 0 {
            put(event, track_event::ANNOTATIONS, name, |all| {
                all.append(&entries)
            });
        }
    }
}
