//! Kinds of spans.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// What a span is to the processes at both ends of a call, as in OpenTelemetry's trace specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// An operation inside a program.
    Internal,
    /// A request of another process is handled.
    Server,
    /// A request to another process.
    Client,
    /// A message is sent, whose handling is not waited for.
    Producer,
    /// A message is handled.
    Consumer,
}

const NAMES: [(&str, SpanKind); 5] = [
    ("internal", SpanKind::Internal),
    ("server", SpanKind::Server),
    ("client", SpanKind::Client),
    ("producer", SpanKind::Producer),
    ("consumer", SpanKind::Consumer),
];

/// Error of parsing a kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown kind of spans {0:?}: expected internal, server, client, producer or consumer")]
pub struct SpanKindError(String);

impl SpanKind {
    /// Its number in OTLP (`Span.SpanKind` of `opentelemetry/proto/trace/v1/trace.proto`).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Server => 2,
            Self::Client => 3,
            Self::Producer => 4,
            Self::Consumer => 5,
        }
    }
}

impl FromStr for SpanKind {
    type Err = SpanKindError;

    fn from_str(text: &str) -> Result<Self, SpanKindError> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        let known = known.map(|(_, kind)| *kind);
        known.ok_or_else(|| SpanKindError(text.to_owned()))
    }
}

impl fmt::Display for SpanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back() {
        for (name, kind) in NAMES {
            assert_eq!((kind.to_string().as_str(), name.parse()), (name, Ok(kind)));
        }
        assert!("Server".parse::<SpanKind>().is_err());
    }
}
