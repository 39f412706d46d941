//! What a hit of a probe says of a span in OpenTelemetry: attributes by their names in the semantic conventions, and the span's kind.
//!
//! Names are the schema's, not the exporter's. A probe's schema has attributes, each a text with arguments in braces as
//! for names of functions, and the kind of a span that begins there; they are stored with the names and types.
//!
//! The names and types of the conventions are a text file of one version (`format/conventions/`). A test compares the
//! built-in schemas with it, `schema check` names what differs, and the exporter takes from it that a number has to be
//! a string.
//!
//! A value is exported once: the name in the conventions replaces `begin.NAME`, because that is the one that users
//! search, and a query text twice is most of a span's bytes. An attribute that needs several arguments, or changes the
//! value (a demangled name), is exported in addition.

pub mod attribute_name;
pub mod conventions;
mod span_kind;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

pub use span_kind::{SpanKind, SpanKindError};

/// Attributes and kind of a span that begins or ends at a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The kind of a span that begins at the probe; `None` if that is not certain. A kind that a reader does not know is ignored.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_kind"
    )]
    pub kind: Option<SpanKind>,
    /// Values by the names of attributes: texts with `{ARGUMENT}` where the value of an argument belongs
    /// ([`name_parts`](super::name_parts)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl Telemetry {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind.is_none() && self.attributes.is_empty()
    }
}

fn known_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SpanKind>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.and_then(|name| name.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_back_and_a_later_kind_is_passed_over() {
        let telemetry = Telemetry {
            kind: Some(SpanKind::Server),
            attributes: [("db.query.text".to_owned(), "{query}".to_owned())].into(),
        };
        let json = r#"{"kind":"server","attributes":{"db.query.text":"{query}"}}"#;
        assert_eq!(serde_json::to_string(&telemetry).unwrap(), json);
        assert_eq!(serde_json::from_str::<Telemetry>(json).unwrap(), telemetry);
        let later = json.replace("server", "observer");
        let later: Telemetry = serde_json::from_str(&later).unwrap();
        assert_eq!((later.kind, later.attributes), (None, telemetry.attributes));
    }
}
