//! The metadata of version 2 (CTF2-SPEC-2.0): a sequence of JSON texts (RFC 7464), called fragments.
//!
//! Texts are in it as they are, and not with `\u` beyond U+FFFF: Babeltrace 2.1 refuses surrogates.

use serde_json::{Map, Value as Json, json};

use crate::trace::session::TraceSession;
use crate::view::export::ctf::event_classes::{EventClasses, FieldType};
use crate::view::export::ctf::field_layout::{FieldKind, FieldLayout, FieldRole};
use crate::view::export::ctf::field_names::FieldNames;
use crate::view::export::ctf::layout::{
    ClockLayout, EventLayout, PACKET_HEADER, StreamLayout, environment,
};

/// The metadata of a trace.
pub(crate) fn metadata(session: &TraceSession, classes: &EventClasses) -> String {
    let mut out = String::new();
    let mut put = |fragment: Json| {
        out.push('\u{1e}');
        out.push_str(&fragment.to_string());
        out.push('\n');
    };
    put(json!({ "type": "preamble", "version": 2 }));
    let environment = environment(session).map(|(key, value)| (key.to_owned(), text(&value)));
    put(json!({
        "type": "trace-class",
        "environment": Map::from_iter(environment),
        "packet-header-field-class": structure(&PACKET_HEADER.map(FieldLayout::from)),
    }));
    let clock = ClockLayout::new(session);
    put(clock_class(clock));
    for stream in StreamLayout::all() {
        put(stream_class(&stream, clock));
    }
    for (number, class) in classes.all().iter().enumerate() {
        if let Some(event) = EventLayout::new(session, class, FieldNames::new(letter)) {
            put(json!({
                "type": "event-record-class",
                "id": number,
                "data-stream-class-id": event.stream,
                "name": text(event.name),
                "payload-field-class": structure(&event.fields),
            }));
        }
    }
    out
}

/// Precision and accuracy, which are not known, are left out.
fn clock_class(ClockLayout { name, origin }: ClockLayout) -> Json {
    let mut class = json!({
        "type": "clock-class",
        "id": name,
        "name": name,
        "frequency": 1_000_000_000,
    });
    if let (Some(origin), Json::Object(members)) = (origin, &mut class) {
        members.insert("origin".to_owned(), json!("unix-epoch"));
        let offset = json!({ "seconds": origin.seconds, "cycles": origin.nanoseconds });
        members.insert("offset-from-origin".to_owned(), offset);
    }
    class
}

fn stream_class(stream: &StreamLayout, clock: ClockLayout) -> Json {
    let mut class = json!({
        "type": "data-stream-class",
        "id": stream.class,
        "default-clock-class-id": clock.name,
        "packet-context-field-class": structure(&stream.context),
    });
    if let (Some(events), Json::Object(members)) = (&stream.events, &mut class) {
        let header = structure(&events.header);
        members.insert("event-record-header-field-class".to_owned(), header);
        let context = structure(&events.context);
        members.insert(
            "event-record-common-context-field-class".to_owned(),
            context,
        );
    }
    class
}

fn structure(fields: &[FieldLayout]) -> Json {
    let members = fields
        .iter()
        .map(|field| json!({ "name": field.name, "field-class": field_class(&field.kind) }));
    json!({ "type": "structure", "member-classes": Json::from_iter(members) })
}

fn field_class(kind: &FieldKind) -> Json {
    match kind {
        FieldKind::Role(role) => {
            let mut class = bits("unsigned-integer", role.bits());
            class["roles"] = json!([role_name(*role)]);
            class
        }
        FieldKind::Value(FieldType::Text) => json!({ "type": "null-terminated-string" }),
        FieldKind::Texts { count } => json!({
            "type": "dynamic-length-array",
            "element-field-class": field_class(&FieldKind::Value(FieldType::Text)),
            "length-field-location": { "origin": "event-record-payload", "path": [count] },
        }),
        FieldKind::Count => bits("unsigned-integer", 32),
        FieldKind::Id => bits("signed-integer", 32),
        FieldKind::Value(FieldType::Unsigned) => bits("unsigned-integer", 64),
        FieldKind::Value(FieldType::Signed) => bits("signed-integer", 64),
        FieldKind::Value(FieldType::Float) => bits("floating-point-number", 64),
        FieldKind::Value(FieldType::Bool) => bits("boolean", 8),
        FieldKind::Value(FieldType::Address) => {
            let mut class = bits("unsigned-integer", 64);
            class["preferred-display-base"] = json!(16);
            class
        }
    }
}

/// A field class of a fixed length.
fn bits(kind: &str, bits: u32) -> Json {
    json!({
        "type": format!("fixed-length-{kind}"),
        "length": bits,
        "alignment": 8,
        "byte-order": "little-endian",
    })
}

const fn role_name(role: FieldRole) -> &'static str {
    match role {
        FieldRole::Magic => "packet-magic-number",
        FieldRole::StreamClass => "data-stream-class-id",
        FieldRole::PacketBegin | FieldRole::EventTime => "default-clock-timestamp",
        FieldRole::PacketEnd => "packet-end-default-clock-timestamp",
        FieldRole::ContentSize => "packet-content-length",
        FieldRole::PacketSize => "packet-total-length",
        FieldRole::LostEvents => "discarded-event-record-counter-snapshot",
        FieldRole::EventClass => "event-record-class-id",
    }
}

/// A letter of a name: readers end texts at a NUL.
const fn letter(letter: char) -> char {
    match letter {
        '\0' => '\u{fffd}',
        _ => letter,
    }
}

/// A text without NUL.
fn text(text: &str) -> Json {
    Json::String(text.chars().map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_they_are() {
        let written = text("a\"b\n\0\u{1f389}\u{e0041}").to_string();
        assert_eq!(written, "\"a\\\"b\\n\u{fffd}\u{1f389}\u{e0041}\"");
    }
}
