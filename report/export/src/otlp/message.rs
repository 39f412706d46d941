//! OTLP as a part of the message `TracesData`: parts, one after the other, are one message.

use usdtrec_format::schema::telemetry::conventions::SCHEMA_URL;

use crate::otlp::telemetry_span::{Attribute, ResourceSpans, TelemetrySpan};
use crate::protobuf::Proto;
use crate::typed_value::TypedValue;

/// A part with these spans. Numbers of fields are those of `opentelemetry/proto/trace/v1/trace.proto` and `common.proto`.
pub(crate) fn encode(all: &[ResourceSpans]) -> Vec<u8> {
    let mut proto = Proto::default();
    for of in all {
        proto.message(1, |resource_spans| {
            resource_spans.message(1, |resource| {
                put_attributes(resource, 1, &of.resource.attributes());
            });
            resource_spans.message(2, |scope_spans| {
                scope_spans.message(1, |scope| scope.bytes(1, b"usdtrec"));
                for span in &of.spans {
                    scope_spans.message(2, |out| put(out, span));
                }
                scope_spans.bytes(3, SCHEMA_URL.as_bytes());
            });
            resource_spans.bytes(3, SCHEMA_URL.as_bytes());
        });
    }
    proto.as_slice().to_vec()
}

fn put(out: &mut Proto, span: &TelemetrySpan) {
    out.bytes(1, &span.ids.trace);
    out.bytes(2, &span.ids.span);
    if let Some(parent) = &span.ids.parent {
        out.bytes(4, parent);
    }
    out.bytes(5, span.name.as_bytes());
    out.unsigned(6, span.kind.number().into());
    out.fixed64(7, span.start);
    if let Some(end) = span.end {
        out.fixed64(8, end);
    }
    put_attributes(out, 9, &span.attributes);
}

fn put_attributes(out: &mut Proto, field: u32, all: &[Attribute]) {
    for Attribute { key, value } in all {
        out.message(field, |one| {
            one.bytes(1, key.as_bytes());
            one.message(2, |any| put_value(any, value));
        });
    }
}

fn put_value(any: &mut Proto, value: &TypedValue<'_>) {
    match value {
        TypedValue::Unsigned(number) => match i64::try_from(*number) {
            Ok(number) => any.signed(3, number),
            Err(_) => any.bytes(1, number.to_string().as_bytes()),
        },
        TypedValue::Signed(number) => any.signed(3, *number),
        TypedValue::Float(number) => any.double(4, *number),
        TypedValue::Bool(is) => any.unsigned(2, (*is).into()),
        TypedValue::Address(address) => any.bytes(1, format!("{address:#x}").as_bytes()),
        TypedValue::String(string) => any.bytes(1, string.as_bytes()),
        TypedValue::Missing(reason) => any.bytes(1, reason.as_bytes()),
    }
}
