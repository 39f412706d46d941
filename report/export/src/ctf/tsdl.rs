//! The metadata, in TSDL, the language of version 1.8.

use std::fmt::Write;

use usdtrec_trace::session::TraceSession;

use crate::ctf::event_classes::{EventClasses, FieldType};
use crate::ctf::field_layout::{FieldKind, FieldLayout, FieldRole};
use crate::ctf::layout::{ClockLayout, EventLayout, PACKET_HEADER, StreamLayout, environment};

/// Types.
const TYPES: &str = "\
typealias integer { size = 8; align = 8; } := u8_t;
typealias integer { size = 32; align = 8; } := u32_t;
typealias integer { size = 32; align = 8; signed = true; } := s32_t;
typealias integer { size = 64; align = 8; } := u64_t;
typealias integer { size = 64; align = 8; signed = true; } := s64_t;
typealias integer { size = 64; align = 8; base = 16; } := address_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64_t;

";

/// What the names of a structure begin with.
#[derive(Clone, Copy)]
enum NameHead {
    /// Nothing: readers know the names.
    Known,
    /// An underscore, which readers drop: so no name is a reserved word.
    Underscore,
}

/// The metadata of a trace.
pub(crate) fn metadata(session: &TraceSession, classes: &EventClasses) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    out.push_str(TYPES);
    out.push_str("trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n");
    let header = PACKET_HEADER.map(FieldLayout::from);
    put_struct("packet.header", &header, NameHead::Known, &mut out);
    out.push_str("};\n\nenv {\n");
    for (key, value) in environment(session) {
        let _ = writeln!(out, "\t{key} = {};", quoted(&value));
    }
    out.push_str("};\n\n");
    put_clock(ClockLayout::new(session), &mut out);
    for stream in StreamLayout::all() {
        put_stream(&stream, &mut out);
    }
    for (number, class) in classes.all().iter().enumerate() {
        if let Some(event) = EventLayout::new(session, class) {
            put_event(number, &event, &mut out);
        }
    }
    out
}

fn put_clock(ClockLayout { name, origin }: ClockLayout, out: &mut String) {
    let _ = writeln!(out, "clock {{\n\tname = {name};\n\tfreq = 1000000000;");
    if let Some(origin) = origin {
        let (seconds, rest) = (origin.seconds, origin.nanoseconds);
        let _ = writeln!(
            out,
            "\toffset_s = {seconds};\n\toffset = {rest};\n\tabsolute = TRUE;"
        );
    }
    let _ = writeln!(
        out,
        "}};\n\ntypealias integer {{ size = 64; align = 8; map = clock.{name}.value; }} := time_t;\n"
    );
}

fn put_stream(stream: &StreamLayout, out: &mut String) {
    let _ = writeln!(out, "stream {{\n\tid = {};", stream.class);
    put_struct("packet.context", &stream.context, NameHead::Known, out);
    if let Some(events) = &stream.events {
        put_struct("event.header", &events.header, NameHead::Known, out);
        put_struct("event.context", &events.context, NameHead::Underscore, out);
    }
    out.push_str("};\n\n");
}

fn put_event(number: usize, event: &EventLayout<'_>, out: &mut String) {
    let _ = writeln!(
        out,
        "event {{\n\tname = {};\n\tid = {number};\n\tstream_id = {};",
        quoted(event.name),
        event.stream
    );
    put_struct("fields", &event.fields, NameHead::Underscore, out);
    out.push_str("};\n\n");
}

fn put_struct(what: &str, fields: &[FieldLayout], head: NameHead, out: &mut String) {
    let _ = writeln!(out, "\t{what} := struct {{");
    let head = match head {
        NameHead::Known => "",
        NameHead::Underscore => "_",
    };
    for FieldLayout { name, kind } in fields {
        let _ = write!(out, "\t\t{} {head}{name}", type_name(kind));
        if let FieldKind::Texts { count } = kind {
            let _ = write!(out, "[{head}{count}]");
        }
        out.push_str(";\n");
    }
    out.push_str("\t};\n");
}

const fn type_name(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Role(role) => role_type(*role),
        FieldKind::Count => "u32_t",
        FieldKind::Id => "s32_t",
        FieldKind::Texts { .. } | FieldKind::Value(FieldType::Text) => "string",
        FieldKind::Value(FieldType::Unsigned) => "u64_t",
        FieldKind::Value(FieldType::Signed) => "s64_t",
        FieldKind::Value(FieldType::Float) => "f64_t",
        FieldKind::Value(FieldType::Bool) => "u8_t",
        FieldKind::Value(FieldType::Address) => "address_t",
    }
}

const fn role_type(role: FieldRole) -> &'static str {
    match role.bits() {
        _ if role.is_time() => "time_t",
        32 => "u32_t",
        _ => "u64_t",
    }
}

/// A text with its quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Three octal digits: what follows may be one, too. A text cannot have a NUL.
            '\0' => quoted.push('\u{fffd}'),
            '\u{1}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(quoted, "\\{:03o}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_they_should() {
        assert_eq!(quoted("a\"b\\c\n\x1b[7é"), "\"a\\\"b\\\\c\\n\\033[7é\"");
    }
}
