//! What had a flight recorder write a file.
//!
//! A recording of which only the last seconds are kept writes them to a file when a trigger fires. The file has a record of type 65, which perf
//! ignores, among the records of processes:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTTRIG` |
//! | 8 | | JSON of [`FiredTrigger`] with NUL, padded with zeros to a multiple of 8 and to at least 80 bytes of the whole record |
//! | last | | sample id; its time is that of the trigger |

use serde::{Deserialize, Serialize};

use super::own_record::{Magic, is_own, own_json, padded_json, put_own};
use crate::perf::{RawRecord, SampleId, SampleType};

pub(super) const MAGIC: Magic = *b"USDTTRIG";
/// Maximum length of a text, bytes: each byte may be six in JSON, and the size of a record is a `u16`.
const MAX_TEXT: usize = 1024;

/// What had a recorder write the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiredTrigger {
    /// What fired.
    pub kind: TriggerKind,
    /// The trigger as it was asked for (`span:query > 100ms`); empty for a signal and a request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// When, ns of the trace's clock: the time of the hit, which ends the span.
    pub time_ns: u64,
    /// The event that was hit; empty for a signal and a request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// The process that hit it, or that made the request; 0 if it is not known.
    #[serde(default)]
    pub pid: i32,
    /// The thread that hit it; 0 if it is not known.
    #[serde(default)]
    pub tid: i32,
    /// Name of the span (`db:query`); empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub span: String,
    /// Duration of the span, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The user who made the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Number of further triggers since the file before, which wrote no file of their own.
    #[serde(default)]
    pub more: u64,
}

/// What has a recorder write a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// The hit of a probe, for which a filter may have been true.
    Probe,
    /// The end of a span that was long.
    Span,
    /// SIGUSR2.
    Signal,
    /// `usdtrec dump`.
    Request,
    /// Another one, of a later recorder.
    #[default]
    #[serde(other)]
    Other,
}

impl TriggerKind {
    /// Its word in the trace, in JSON, and in the environment of commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Span => "span",
            Self::Signal => "signal",
            Self::Request => "request",
            Self::Other => "other",
        }
    }
}

impl FiredTrigger {
    /// Whether this is such a record, which may be damaged.
    #[must_use]
    pub fn is(record: &RawRecord<'_>) -> bool {
        is_own(record, MAGIC)
    }

    /// Parses a record; `None` if it is another one or is damaged.
    ///
    /// `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        own_json(record, MAGIC, sample_type)
    }

    /// Appends the record. Texts of more than 1024 bytes are cut.
    ///
    /// # Errors
    /// Errors of serialization.
    pub fn encode(
        &self,
        sample_type: SampleType,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let cut = Self {
            condition: cut(&self.condition),
            event: cut(&self.event),
            span: cut(&self.span),
            ..self.clone()
        };
        let json = padded_json(&cut)?;
        let id = SampleId {
            pid: self.pid,
            tid: self.tid,
            time: self.time_ns,
            ..SampleId::default()
        };
        put_own(MAGIC, &json, &id, sample_type, out);
        Ok(())
    }
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    let chars = text.char_indices();
    let fits = chars.take_while(|(at, char)| at + char.len_utf8() <= MAX_TEXT);
    fits.map(|(_, char)| char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Records;

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    fn trigger() -> FiredTrigger {
        FiredTrigger {
            kind: TriggerKind::Span,
            condition: "span:query > 100ms".to_owned(),
            time_ns: 17,
            event: "sdt_db:query__done".to_owned(),
            pid: 7,
            tid: 8,
            span: "db:query".to_owned(),
            duration_ns: Some(100_000_001),
            uid: None,
            more: 3,
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for trigger in [trigger(), FiredTrigger::default()] {
            let mut bytes = Vec::new();
            trigger.encode(IDS, &mut bytes).expect("JSON");
            assert!(bytes.len() >= 80 && bytes.len().is_multiple_of(8));
            let record = Records::new(&bytes).next().expect("a record");
            assert!(FiredTrigger::is(&record));
            assert_eq!(FiredTrigger::parse(&record, IDS), Some(trigger));
        }
    }

    #[test]
    fn what_is_damaged_is_none_and_long_texts_are_cut() {
        let mut bytes = Vec::new();
        trigger().encode(IDS, &mut bytes).expect("JSON");
        bytes[20] = b'}';
        let record = Records::new(&bytes).next().expect("a record");
        assert_eq!(FiredTrigger::parse(&record, IDS), None);
        let long = FiredTrigger {
            condition: "\u{e9}".repeat(100_000),
            ..trigger()
        };
        let mut bytes = Vec::new();
        long.encode(IDS, &mut bytes).expect("JSON");
        let record = Records::new(&bytes).next().expect("a record");
        let read = FiredTrigger::parse(&record, IDS).expect("a trigger");
        assert_eq!(read.condition.len(), MAX_TEXT);
    }
}
