//! OTLP as a line of JSON: ids are hexadecimal, integers of 64 bits are strings.

use serde_json::{Value as Json, json};

use crate::view::export::otlp::telemetry_span::{Attribute, ResourceSpans, TelemetrySpan};
use crate::view::export::typed_value::TypedValue;
use crate::view::text::buffer::Text;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u64 = 1;

/// A line with these spans.
pub(crate) fn encode(all: &[ResourceSpans]) -> Vec<u8> {
    let resources = all.iter().map(|of| {
        json!({
            "resource": {"attributes": attributes(&of.resource.attributes())},
            "scopeSpans": [{
                "scope": {"name": "usdtrec"},
                "spans": of.spans.iter().map(span).collect::<Vec<Json>>(),
            }],
        })
    });
    let line = json!({"resourceSpans": resources.collect::<Vec<Json>>()});
    (line.to_string() + "\n").into_bytes()
}

fn span(span: &TelemetrySpan) -> Json {
    let mut made = json!({
        "traceId": hex(&span.ids.trace),
        "spanId": hex(&span.ids.span),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": span.start.to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = &span.ids.parent {
        made["parentSpanId"] = hex(parent).into();
    }
    if let Some(end) = span.end {
        made["endTimeUnixNano"] = end.to_string().into();
    }
    made
}

fn hex(bytes: &[u8]) -> String {
    let mut text = Text::default();
    text.hex_bytes(bytes);
    text.into_string()
}

fn attributes(all: &[Attribute]) -> Json {
    let all = all
        .iter()
        .map(|one| json!({"key": one.key, "value": value(&one.value)}));
    all.collect()
}

fn value(value: &TypedValue<'_>) -> Json {
    match value {
        TypedValue::Unsigned(number) => match i64::try_from(*number) {
            Ok(_) => json!({"intValue": number.to_string()}),
            Err(_) => json!({"stringValue": number.to_string()}),
        },
        TypedValue::Signed(number) => json!({"intValue": number.to_string()}),
        TypedValue::Float(number) => json!({"doubleValue": float(*number)}),
        TypedValue::Bool(is) => json!({"boolValue": is}),
        TypedValue::Address(address) => json!({"stringValue": format!("{address:#x}")}),
        TypedValue::Text(text) => json!({"stringValue": text}),
        TypedValue::Missing(reason) => json!({"stringValue": reason}),
    }
}

/// A float; what JSON has no number for is as ProtoJSON has it.
fn float(number: f64) -> Json {
    match number {
        n if n.is_nan() => json!("NaN"),
        n if n == f64::INFINITY => json!("Infinity"),
        n if n == f64::NEG_INFINITY => json!("-Infinity"),
        n => json!(n),
    }
}
