//! Values that are left out, or replaced by hashes.

use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanClose, SpanRow};
use usdtrec_format::{Missing, StringAt, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::form::Form;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

/// Bytes of a hash that are kept.
const HASH_BYTES: usize = 16;

/// Which arguments are left out, or have hashes in place of their values. Arguments are named as in filters: `NAME` or `argN`, of every event
/// that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// Arguments that are left out.
    pub drop: Vec<String>,
    /// Arguments whose values are replaced by the first 32 hexadecimal digits of their HMAC-SHA-256: of the bytes of a text, and of the decimal
    /// digits of a number.
    pub hash: Vec<String>,
    /// The key of the hashes.
    pub key: Vec<u8>,
}

/// What becomes of the values of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedactedAs {
    Dropped,
    Hashed,
}

/// The arguments of a trace whose values are redacted.
#[derive(Debug)]
pub(crate) struct RedactedArguments {
    /// Of each event, its arguments.
    events: Vec<Vec<Option<RedactedAs>>>,
    /// Of each event whose arguments are redacted, their forms.
    forms: Vec<Vec<Form>>,
    mac: Option<Hmac<Sha256>>,
}

impl RedactedArguments {
    /// # Errors
    /// [`ReportError::Question`] if no event has an argument of a name.
    pub(crate) fn new(session: &TraceSession, redaction: &Redaction) -> Result<Self, ReportError> {
        let events = &session.events().events;
        let mut redacted: Vec<Vec<Option<RedactedAs>>> = events
            .iter()
            .map(|event| vec![None; event.arguments.len()])
            .collect();
        let hashed = redaction.hash.iter().map(|name| (name, RedactedAs::Hashed));
        let dropped = redaction.drop.iter();
        let dropped = dropped.map(|name| (name, RedactedAs::Dropped));
        // What is both is dropped.
        for (name, how) in hashed.chain(dropped) {
            let mut is_known = false;
            for (event, redacted) in events.iter().zip(&mut redacted) {
                let place = event.argument(name);
                if let Some(one) = place.and_then(|place| redacted.get_mut(place)) {
                    *one = Some(how);
                    is_known = true;
                }
            }
            if !is_known {
                let known = events.iter().flat_map(|event| &event.arguments);
                let mut known: Vec<&str> = known.map(|argument| &*argument.name).collect();
                known.sort_unstable();
                known.dedup();
                return Err(QuestionError::no_argument(name, list(known), &[]).into());
            }
        }
        let mac = Hmac::<Sha256>::new_from_slice(&redaction.key).ok();
        let forms = events.iter().zip(&redacted).map(|(event, redacted)| {
            let arguments = event.arguments.iter();
            match redacted.iter().any(Option::is_some) {
                true => arguments.map(Form::new).collect(),
                false => Vec::new(),
            }
        });
        Ok(Self {
            forms: forms.collect(),
            events: redacted,
            mac: mac.filter(|_| !redaction.hash.is_empty()),
        })
    }

    /// Whether all values stay as they are.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.iter().all(Vec::is_empty)
    }

    /// What becomes of the values of an argument; `None` if nothing does.
    pub(crate) fn redacted_as(&self, event: usize, place: usize) -> Option<RedactedAs> {
        *self.events.get(event)?.get(place)?
    }

    fn value(&self, how: RedactedAs, form: &Form, value: &Value) -> Value {
        match (how, value) {
            (RedactedAs::Dropped, _) => Value::Missing(Missing::Operand("dropped".to_owned())),
            // The reason may have an address or a part of the value.
            (RedactedAs::Hashed, value) if form.missing(value).is_some() => {
                Value::Missing(Missing::Operand("missing".to_owned()))
            }
            (RedactedAs::Hashed, Value::String(text)) => self.hashed(&text.bytes),
            (RedactedAs::Hashed, Value::Unsigned(number)) => {
                self.hashed(number.to_string().as_bytes())
            }
            (RedactedAs::Hashed, Value::Signed(number)) => {
                self.hashed(number.to_string().as_bytes())
            }
            (RedactedAs::Hashed, Value::Float32(number)) => {
                self.hashed(number.to_string().as_bytes())
            }
            (RedactedAs::Hashed, Value::Float64(number)) => {
                self.hashed(number.to_string().as_bytes())
            }
            (RedactedAs::Hashed, _) => Value::Missing(Missing::Operand("missing".to_owned())),
        }
    }

    fn hashed(&self, bytes: &[u8]) -> Value {
        let Some(mut mac) = self.mac.clone() else {
            return Value::Missing(Missing::Operand("dropped".to_owned()));
        };
        mac.update(bytes);
        let hash = mac.finalize().into_bytes();
        let digits = hash.iter().take(HASH_BYTES);
        let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
        Value::String(StringAt {
            address: 0,
            bytes: digits.into_bytes(),
            cut: false,
            guessed: false,
            from_file: false,
        })
    }

    fn values(&self, hit: RowHit<'_>) -> Option<Vec<Value>> {
        let event = hit.row.event;
        let forms = self.forms.get(event).filter(|forms| !forms.is_empty())?;
        let values = hit.values.iter().zip(forms).enumerate();
        let values = values.map(
            |(place, (value, form))| match self.redacted_as(event, place) {
                Some(how) => self.value(how, form, value),
                None => value.clone(),
            },
        );
        Some(values.collect())
    }
}

/// Hands rows to a sink with redacted values.
pub(crate) struct RedactedRows<'a> {
    pub(crate) arguments: &'a RedactedArguments,
    pub(crate) sink: &'a mut dyn RowSink,
}

/// A hit with other values, if it has others.
fn with<'v>(hit: RowHit<'v>, values: Option<&'v Vec<Value>>) -> RowHit<'v> {
    RowHit {
        values: values.map_or(hit.values, Vec::as_slice),
        ..hit
    }
}

impl RowSink for RedactedRows<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        let values = self.arguments.values(hit);
        self.sink.event(with(hit, values.as_ref()), side)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let of_begin = self.arguments.values(span.begin);
        let of_end = span.end.and_then(|end| self.arguments.values(end.hit));
        self.sink.span(SpanRow {
            begin: with(span.begin, of_begin.as_ref()),
            end: span.end.map(|end| SpanClose {
                hit: with(end.hit, of_end.as_ref()),
                ..end
            }),
            ..span
        })
    }
}
