//! The metadata: what streams and events consist of, in TSDL.

use std::fmt::Write;

use usdtrec_format::trace::Clock;

use crate::analysis::origin::Origin;
use crate::trace::session::TraceSession;
use crate::view::export::argument_parts::ArgumentPart;
use crate::view::export::ctf::event_classes::{EventClass, EventClasses, FieldType};
use crate::view::export::ctf::packets::StreamKey;
use crate::view::export::ctf::tsdl::{FieldNames, quoted};

/// Types, and what begins all packets.
const TYPES: &str = "\
typealias integer { size = 8; align = 8; } := u8_t;
typealias integer { size = 32; align = 8; } := u32_t;
typealias integer { size = 32; align = 8; signed = true; } := s32_t;
typealias integer { size = 64; align = 8; } := u64_t;
typealias integer { size = 64; align = 8; signed = true; } := s64_t;
typealias integer { size = 64; align = 8; base = 16; } := address_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64_t;

trace {
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct {
		u32_t magic;
		u32_t stream_id;
	};
};

";

/// The metadata of a trace.
pub(crate) fn metadata(session: &TraceSession, classes: &EventClasses) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    out.push_str(TYPES);
    put_environment(session, &mut out);
    put_clock(session.info().clock, &mut out);
    put_streams(&mut out);
    for (number, class) in classes.all().iter().enumerate() {
        put_class(session, number, class, &mut out);
    }
    out
}

fn put_environment(session: &TraceSession, out: &mut String) {
    let origin = Origin::new(session);
    out.push_str("env {\n");
    for (key, value) in [
        ("hostname", &origin.host),
        ("sysname", &"Linux".to_owned()),
        ("kernel_release", &origin.kernel),
        ("machine", &origin.machine),
        ("tracer_name", &"usdtrec".to_owned()),
        ("producer", &origin.producer),
        ("command", &origin.command.join(" ")),
        ("lost_events", &origin.lost.to_string()),
    ] {
        let _ = writeln!(out, "\t{key} = {};", quoted(value));
    }
    out.push_str("};\n\n");
}

fn put_clock(clock: Option<Clock>, out: &mut String) {
    let name = match clock.map(|clock| clock.id) {
        Some(0) => "realtime",
        Some(1) => "monotonic",
        Some(4) => "monotonic_raw",
        Some(7) => "boottime",
        _ => "trace_clock",
    };
    let _ = writeln!(out, "clock {{\n\tname = {name};\n\tfreq = 1000000000;");
    if let Some(known) = clock.filter(|clock| clock.wall_ns != 0) {
        let second = 1_000_000_000;
        let offset = i128::from(known.wall_ns) - i128::from(known.clock_ns);
        let (seconds, rest) = (offset.div_euclid(second), offset.rem_euclid(second));
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

fn put_streams(out: &mut String) {
    for (stream, more, has_events) in [
        (StreamKey::Cpu(0), "\t\tu32_t cpu_id;\n", true),
        (StreamKey::NoCpu, "", true),
        (StreamKey::Losses, "\t\tu64_t events_discarded;\n", false),
    ] {
        let _ = writeln!(
            out,
            "stream {{\n\tid = {};\n\tpacket.context := struct {{\n\t\ttime_t timestamp_begin;\n\t\ttime_t timestamp_end;",
            stream.class()
        );
        let _ = writeln!(
            out,
            "\t\tu64_t content_size;\n\t\tu64_t packet_size;\n{more}\t}};"
        );
        if has_events {
            out.push_str(
                "\tevent.header := struct {\n\t\tu32_t id;\n\t\ttime_t timestamp;\n\t};\n",
            );
            out.push_str("\tevent.context := struct {\n\t\ts32_t _pid;\n\t\ts32_t _tid;\n\t\tstring _comm;\n\t};\n");
        }
        out.push_str("};\n\n");
    }
}

fn put_class(session: &TraceSession, number: usize, class: &EventClass, out: &mut String) {
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
    let arguments: Vec<String> = event
        .arguments
        .iter()
        .map(|argument| names.name(&argument.name))
        .collect();
    for field in &class.fields {
        let Some(argument) = arguments.get(field.argument as usize) else {
            continue;
        };
        // Readers drop the first underscore.
        let of = |word: &str| format!("{}_{word}", argument.get(1..).unwrap_or_default());
        let name = match field.part {
            ArgumentPart::Value => argument.clone(),
            ArgumentPart::Missing => names.name(&of("missing")),
            ArgumentPart::Number => names.name(&of("number")),
            ArgumentPart::Demangled => names.name(&of("demangled")),
            ArgumentPart::Cut => names.name(&of("cut")),
            ArgumentPart::Bytes => names.name(&of("bytes")),
        };
        let kind = match field.kind {
            FieldType::Unsigned => "u64_t",
            FieldType::Signed => "s64_t",
            FieldType::Float => "f64_t",
            FieldType::Bool => "u8_t",
            FieldType::Address => "address_t",
            FieldType::Text => "string",
        };
        let _ = writeln!(out, "\t\t{kind} {name};");
    }
    if event.has_chain() {
        let (length, stack) = (names.name("stack_length"), names.name("stack"));
        let _ = writeln!(out, "\t\tu32_t {length};\n\t\tstring {stack}[{length}];");
    }
    out.push_str("\t};\n};\n\n");
}
