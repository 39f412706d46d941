//! OTLP as a line of JSON: ids are hexadecimal, integers of 64 bits are strings.

use usdtrec_format::schema::telemetry::conventions::SCHEMA_URL;
use usdtrec_view::text::buffer::Text;

use crate::otlp::telemetry_span::{Attribute, ResourceSpans, TelemetrySpan};
use crate::typed_value::TypedValue;

/// A line with these spans.
pub(crate) fn encode(all: &[ResourceSpans]) -> Vec<u8> {
    let mut out = Text::default();
    out.string("{\"resourceSpans\":[");
    for (at, of) in all.iter().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        out.string("{\"resource\":{\"attributes\":");
        put_attributes(&of.resource.attributes(), &mut out);
        out.string("},\"scopeSpans\":[{\"scope\":{\"name\":\"usdtrec\"},\"spans\":[");
        for (at, span) in of.spans.iter().enumerate() {
            if at > 0 {
                out.byte(b',');
            }
            put_span(span, &mut out);
        }
        // The resource has the same names.
        out.string("],\"schemaUrl\":");
        out.json_string(SCHEMA_URL);
        out.string("}],\"schemaUrl\":");
        out.json_string(SCHEMA_URL);
        out.byte(b'}');
    }
    out.string("]}\n");
    out.as_slice().to_vec()
}

fn put_span(span: &TelemetrySpan, out: &mut Text) {
    out.string("{\"traceId\":\"");
    out.hex_bytes(&span.ids.trace);
    out.string("\",\"spanId\":\"");
    out.hex_bytes(&span.ids.span);
    if let Some(parent) = &span.ids.parent {
        out.string("\",\"parentSpanId\":\"");
        out.hex_bytes(parent);
    }
    out.string("\",\"name\":");
    out.json_string(&span.name);
    out.string(",\"kind\":");
    out.unsigned(span.kind.number().into());
    out.string(",\"startTimeUnixNano\":\"");
    out.unsigned(span.start);
    if let Some(end) = span.end {
        out.string("\",\"endTimeUnixNano\":\"");
        out.unsigned(end);
    }
    out.string("\",\"attributes\":");
    put_attributes(&span.attributes, out);
    out.byte(b'}');
}

fn put_attributes(all: &[Attribute], out: &mut Text) {
    out.byte(b'[');
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        out.fixed(b"{\"key\":");
        out.json_string(&one.key);
        out.fixed(b",\"value\":{");
        put_value(&one.value, out);
        out.fixed(b"}}");
    }
    out.byte(b']');
}

fn put_value(value: &TypedValue<'_>, out: &mut Text) {
    match value {
        TypedValue::Unsigned(number) => {
            match i64::try_from(*number) {
                Ok(_) => out.fixed(b"\"intValue\":\""),
                Err(_) => out.fixed(b"\"stringValue\":\""),
            }
            out.unsigned(*number);
            out.byte(b'"');
        }
        TypedValue::Signed(number) => {
            out.fixed(b"\"intValue\":\"");
            out.signed(*number);
            out.byte(b'"');
        }
        TypedValue::Float(number) => {
            out.fixed(b"\"doubleValue\":");
            put_float(*number, out);
        }
        TypedValue::Bool(is) => {
            out.fixed(b"\"boolValue\":");
            out.string(if *is { "true" } else { "false" });
        }
        TypedValue::Address(address) => {
            out.fixed(b"\"stringValue\":\"0x");
            out.hex(*address);
            out.byte(b'"');
        }
        TypedValue::String(string) => put_text(string, out),
        TypedValue::Missing(reason) => put_text(reason, out),
    }
}

fn put_text(text: &str, out: &mut Text) {
    out.fixed(b"\"stringValue\":");
    out.json_string(text);
}

/// Appends a float; what JSON has no number for is as ProtoJSON has it.
fn put_float(number: f64, out: &mut Text) {
    match number {
        n if n.is_nan() => out.fixed(b"\"NaN\""),
        n if n == f64::INFINITY => out.fixed(b"\"Infinity\""),
        n if n == f64::NEG_INFINITY => out.fixed(b"\"-Infinity\""),
        n => out.float64(n),
    }
}
