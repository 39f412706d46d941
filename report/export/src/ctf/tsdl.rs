//! The metadata, in TSDL, the language of version 1.8: what the files of a trace consist of. Packets and events are written in this order
//! (`packets.rs`, `mod.rs`).
//!
//! Tests compare every value that babeltrace2 reads.

use std::fmt::Write;

use usdtrec_analysis::origin::Origin;
use usdtrec_trace::session::TraceSession;

use crate::argument_parts::ArgumentPart;
use crate::ctf::event_classes::{EventClasses, FieldType};
use crate::ctf::field_names::FieldNames;
use crate::ctf::packets::StreamKey;

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

/// The trace, with what all packets begin with.
const TRACE: &str = "\
trace {
\tmajor = 1;
\tminor = 8;
\tbyte_order = le;
\tpacket.header := struct {
\t\tu32_t magic;
\t\tu32_t stream_id;
\t};
};

";

/// What is between the header of a packet and its events, without the field that only some streams have, and without its end.
const PACKET_CONTEXT: &str = "\
\tpacket.context := struct {
\t\ttime_t timestamp_begin;
\t\ttime_t timestamp_end;
\t\tu64_t content_size;
\t\tu64_t packet_size;
";

/// What an event begins with.
const EVENT_HEAD: &str = "\
\tevent.header := struct {
\t\tu32_t id;
\t\ttime_t timestamp;
\t};
\tevent.context := struct {
\t\ts32_t _pid;
\t\ts32_t _tid;
\t\tstring _comm;
\t};
";

/// The metadata of a trace.
pub(crate) fn metadata(session: &TraceSession, classes: &EventClasses) -> String {
    let mut out = format!("/* CTF 1.8 */\n\n{TYPES}{TRACE}env {{\n");
    for (key, value) in environment(session) {
        let _ = writeln!(out, "\t{key} = {};", quoted(&value));
    }
    out.push_str("};\n\n");
    put_clock(session, &mut out);
    for (stream, field, events) in [
        (StreamKey::Cpu(0), "\t\tu32_t cpu_id;\n", EVENT_HEAD),
        (StreamKey::NoCpu, "", EVENT_HEAD),
        (StreamKey::Losses, "\t\tu64_t events_discarded;\n", ""),
    ] {
        let _ = writeln!(
            out,
            "stream {{\n\tid = {};\n{PACKET_CONTEXT}{field}\t}};\n{events}}};\n",
            stream.class()
        );
    }
    for number in 0..classes.all().len() {
        put_event(session, classes, number, &mut out);
    }
    out
}

/// Where the trace is from.
fn environment(session: &TraceSession) -> [(&'static str, String); 8] {
    let origin = Origin::new(session);
    [
        ("hostname", origin.host),
        ("sysname", "Linux".to_owned()),
        ("kernel_release", origin.kernel),
        ("machine", origin.machine),
        ("tracer_name", "usdtrec".to_owned()),
        ("producer", origin.producer),
        ("command", origin.command.join(" ")),
        // A string: it can be beyond the integers that readers have.
        ("lost_events", origin.lost.to_string()),
    ]
}

/// Appends the clock of all times, whose cycles are nanoseconds.
fn put_clock(session: &TraceSession, out: &mut String) {
    const SECOND: i128 = 1_000_000_000;
    let clock = session.info().clock;
    let name = match clock.map(|clock| clock.id) {
        Some(0) => "realtime",
        Some(1) => "monotonic",
        Some(4) => "monotonic_raw",
        Some(7) => "boottime",
        _ => "trace_clock",
    };
    let _ = writeln!(out, "clock {{\n\tname = {name};\n\tfreq = 1000000000;");
    // Where it begins: time from 1970 until it was 0.
    if let Some(known) = clock.filter(|clock| clock.wall_ns != 0) {
        let offset = i128::from(known.wall_ns) - i128::from(known.clock_ns);
        let (seconds, rest) = (offset.div_euclid(SECOND), offset.rem_euclid(SECOND));
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

/// Appends an event class, unless the trace has no such event. Fields have the names of their arguments, as far as the format allows,
/// after an underscore, which readers drop: so no name is a reserved word.
fn put_event(session: &TraceSession, classes: &EventClasses, number: usize, out: &mut String) {
    let Some(class) = classes.all().get(number) else {
        return;
    };
    let Some(event) = session.events().events.get(class.event) else {
        return;
    };
    let stream = match event.has_cpu() {
        true => StreamKey::Cpu(0),
        false => StreamKey::NoCpu,
    };
    let _ = writeln!(
        out,
        "event {{\n\tname = {};\n\tid = {number};\n\tstream_id = {};\n\tfields := struct {{",
        quoted(&event.name),
        stream.class()
    );
    let mut names = FieldNames::default();
    let arguments = event.arguments.iter().enumerate();
    let arguments: Vec<Option<String>> = arguments
        .map(|(place, argument)| {
            let is_kept = classes.has_argument(class.event, place);
            is_kept.then(|| names.name(&argument.name))
        })
        .collect();
    for field in &class.fields {
        let Some(Some(argument)) = arguments.get(field.argument as usize) else {
            continue;
        };
        let name = match suffix(field.part) {
            None => argument.clone(),
            Some(suffix) => names.name(&format!("{argument}_{suffix}")),
        };
        let _ = writeln!(out, "\t\t{} _{name};", type_name(field.kind));
    }
    if event.has_chain() {
        let count = names.name("stack_length");
        let stack = names.name("stack");
        let _ = writeln!(out, "\t\tu32_t _{count};\n\t\tstring _{stack}[_{count}];");
    }
    out.push_str("\t};\n};\n\n");
}

/// What follows the name of the argument in that of a field.
const fn suffix(part: ArgumentPart) -> Option<&'static str> {
    match part {
        ArgumentPart::Value => None,
        ArgumentPart::Missing => Some("missing"),
        ArgumentPart::Number => Some("number"),
        ArgumentPart::Demangled => Some("demangled"),
        ArgumentPart::Cut => Some("cut"),
        ArgumentPart::Bytes => Some("bytes"),
    }
}

const fn type_name(kind: FieldType) -> &'static str {
    match kind {
        FieldType::Unsigned => "u64_t",
        FieldType::Signed => "s64_t",
        FieldType::Float => "f64_t",
        FieldType::Bool => "u8_t",
        FieldType::Address => "address_t",
        FieldType::String => "string",
    }
}

/// A string with its quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Three octal digits: what follows may be one, too. A string cannot have a NUL.
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
    fn strings_end_where_they_should() {
        assert_eq!(quoted("a\"b\\c\n\x1b[7é"), "\"a\\\"b\\\\c\\n\\033[7é\"");
    }
}
