//! Spans as OpenTelemetry has them.

use crate::view::export::otlp::span_ids::SpanIds;
use crate::view::export::typed_value::TypedValue;

/// A process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) host: String,
    pub(crate) machine: String,
    pub(crate) pid: i32,
    /// What it is called; empty if that is not known.
    pub(crate) name: String,
}

/// An attribute of a span.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) key: String,
    pub(crate) value: TypedValue<'static>,
}

/// A span.
#[derive(Clone, Debug)]
pub(crate) struct TelemetrySpan {
    pub(crate) ids: SpanIds,
    pub(crate) name: String,
    /// ns since 1970.
    pub(crate) start: u64,
    /// The same; `None` if it has no end.
    pub(crate) end: Option<u64>,
    pub(crate) attributes: Vec<Attribute>,
}

/// Spans of a process.
#[derive(Clone, Debug)]
pub(crate) struct ResourceSpans {
    pub(crate) resource: Resource,
    pub(crate) spans: Vec<TelemetrySpan>,
}

impl Resource {
    /// Its attributes, in the names of the semantic conventions.
    pub(crate) fn attributes(&self) -> Vec<Attribute> {
        let texts = [
            ("service.name", &self.name),
            ("process.command", &self.name),
            ("host.name", &self.host),
            ("host.arch", &self.machine),
        ];
        let known = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = known.map(|(key, text)| Attribute {
            key: key.to_owned(),
            value: TypedValue::Text(text.clone().into()),
        });
        let pid = Attribute {
            key: "process.pid".to_owned(),
            value: TypedValue::Signed(self.pid.into()),
        };
        texts.chain([pid]).collect()
    }
}
