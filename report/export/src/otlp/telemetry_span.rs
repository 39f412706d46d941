//! Spans as OpenTelemetry has them.

use usdtrec_format::schema::telemetry::SpanKind;

use crate::otlp::span_ids::SpanIds;
use crate::typed_value::TypedValue;

/// A process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) host: String,
    pub(crate) machine: String,
    pub(crate) pid: i32,
    /// What it is called; empty if that is not known.
    pub(crate) name: String,
    /// What it calls its service; empty if that is not known.
    pub(crate) service: String,
    /// Path of the control group; empty if that is not known.
    pub(crate) cgroup: String,
    /// Id of the container; empty if there is none.
    pub(crate) container: String,
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
    pub(crate) kind: SpanKind,
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
        let service = match &*self.service {
            "" => &*self.name,
            service => service,
        };
        let texts = [
            ("service.name", service),
            ("process.command", &*self.name),
            ("host.name", &*self.host),
            ("host.arch", arch(&self.machine)),
            ("process.linux.cgroup", &*self.cgroup),
            ("container.id", &*self.container),
        ];
        let known = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = known.map(|(key, text)| Attribute {
            key: key.to_owned(),
            value: TypedValue::String(text.to_owned().into()),
        });
        let pid = Attribute {
            key: "process.pid".to_owned(),
            value: TypedValue::Signed(self.pid.into()),
        };
        texts.chain([pid]).collect()
    }
}

/// The word of the semantic conventions for an architecture, as `uname` calls it; the same if they have none.
fn arch(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "x86",
        "armv6l" | "armv7l" | "armv8l" => "arm32",
        "ppc64le" => "ppc64",
        other => other,
    }
}
