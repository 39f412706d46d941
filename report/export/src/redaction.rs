//! Values that are left out, or replaced by hashes.
//!
//! Spans are matched and events selected by the values themselves; what a format gets has others. An argument that is left out is as if its probe did
//! not have it, and of one that is hashed only the name is known: neither type, unit nor words say something of its values. Arguments that hits got from
//! other hits (`--with`) are redacted as those that they are from.

use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanClose, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_format::schema::Argument;
use usdtrec_format::{Missing, StringAt, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::form::Form;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

/// Bytes of a hash that are kept.
const HASH_BYTES: usize = 16;

/// Which arguments are left out, or have hashes in place of their values. Arguments are named as in filters: `NAME` or `argN`, of every event
/// that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// Arguments that are left out.
    pub drop: Vec<String>,
    /// Arguments whose values are replaced by the first 32 hexadecimal digits of their HMAC-SHA-256: of the bytes of a string, and of the decimal
    /// digits of a number.
    pub hash: Vec<String>,
    /// The key of the hashes.
    pub key: Vec<u8>,
}

impl Redaction {
    /// Nothing is left out or hashed.
    pub(crate) const NONE: Self = Self {
        drop: Vec::new(),
        hash: Vec::new(),
        key: Vec::new(),
    };

    /// Whether all values stay as they are.
    pub(crate) const fn is_empty(&self) -> bool {
        self.drop.is_empty() && self.hash.is_empty()
    }
}

/// How the values of an argument are redacted. If both apply, they are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RedactedAs {
    Hashed,
    Dropped,
}

/// Reason in place of a hash where there is no value: other reasons may have an address or a part of it.
pub(crate) const MISSING: &str = "missing";

/// An argument that is not left out.
#[derive(Clone, Debug)]
pub(crate) struct KeptArgument {
    /// Its place among the event's.
    pub(crate) place: usize,
    /// What is known of it.
    pub(crate) argument: Argument,
}

/// The arguments of a trace whose values are redacted.
#[derive(Debug)]
pub(crate) struct RedactedArguments {
    /// Of each event, its arguments.
    events: Vec<Vec<Option<RedactedAs>>>,
    /// Of each event, its name and those of its arguments.
    names: Vec<EventNames>,
    /// Whether values of some of them are parts of names of functions of scripts.
    names_functions: bool,
    /// Of each event whose arguments are redacted, their forms.
    forms: Vec<Vec<Form>>,
    mac: Option<Hmac<Sha256>>,
}

/// Names of an event and of its arguments.
#[derive(Debug)]
struct EventNames {
    event: String,
    arguments: Vec<String>,
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
        for (name, how) in hashed.chain(dropped) {
            let mut is_known = false;
            for (event, redacted) in events.iter().zip(&mut redacted) {
                for place in places(event, name) {
                    if let Some(one) = redacted.get_mut(place) {
                        *one = (*one).max(Some(how));
                        is_known = true;
                    }
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
        redact_copies(events, &mut redacted);
        let names_functions = events.iter().zip(&redacted).any(|(event, redacted)| {
            let mut redacted = (0..).zip(redacted);
            redacted.any(|(place, how)| how.is_some() && event.names_functions(place))
        });
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
            names: events.iter().map(EventNames::new).collect(),
            names_functions,
            mac: mac.filter(|_| !redaction.hash.is_empty()),
        })
    }

    /// Whether all values stay as they are.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.iter().all(Vec::is_empty)
    }

    /// How the values of an argument are redacted; `None` if they are not.
    pub(crate) fn redacted_as(&self, event: usize, place: usize) -> Option<RedactedAs> {
        *self.events.get(event)?.get(place)?
    }

    /// Whether values of some of the arguments are parts of names of functions of scripts, or of their files.
    pub(crate) const fn names_functions(&self) -> bool {
        self.names_functions
    }

    /// How the values of an argument of the events of a name are redacted; `None` if they are not.
    pub(crate) fn named(&self, event: &str, argument: &str) -> Option<RedactedAs> {
        let both = self.names.iter().zip(&self.events);
        let both = both.filter(|(names, _)| names.event == event);
        let arguments = both.flat_map(|(names, redacted)| names.arguments.iter().zip(redacted));
        let same = arguments.filter(|(name, _)| *name == argument);
        same.filter_map(|(_, how)| *how).max()
    }

    /// The arguments of an event that are not left out.
    pub(crate) fn kept(&self, at: usize, event: &Event) -> impl Iterator<Item = KeptArgument> {
        let arguments = event.arguments.iter().enumerate();
        arguments.filter_map(move |(place, argument)| {
            let argument = match self.redacted_as(at, place) {
                Some(RedactedAs::Dropped) => return None,
                Some(RedactedAs::Hashed) => Argument::named(&*argument.name),
                None => argument.clone(),
            };
            Some(KeptArgument { place, argument })
        })
    }

    /// Hands all rows to a sink, with redacted values. Returns the number of rows.
    ///
    /// # Errors
    /// The errors of [`RowWalk::run`].
    pub(crate) fn run(
        &self,
        walk: &RowWalk<'_>,
        sink: &mut dyn RowSink,
        notices: &mut Notices,
    ) -> Result<u64, ReportError> {
        if self.is_empty() {
            return walk.run(sink, notices);
        }
        let mut rows = RedactedRows {
            arguments: self,
            sink,
        };
        walk.run(&mut rows, notices)
    }

    /// The value in place of another one.
    pub(crate) fn value(&self, how: RedactedAs, form: &Form, value: &Value) -> Value {
        match (how, value) {
            (RedactedAs::Dropped, _) => Value::Missing(Missing::Operand("dropped".to_owned())),
            (RedactedAs::Hashed, value) if form.missing(value).is_some() => missing(),
            (RedactedAs::Hashed, Value::String(string)) => self.hashed(&string.bytes),
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
            (RedactedAs::Hashed, _) => missing(),
        }
    }

    /// The hexadecimal digits of the hash of a value; empty without a key.
    pub(crate) fn digits(&self, bytes: &[u8]) -> String {
        let Some(mut mac) = self.mac.clone() else {
            return String::new();
        };
        mac.update(bytes);
        let hash = mac.finalize().into_bytes();
        let digits = hash.iter().take(HASH_BYTES);
        digits.map(|byte| format!("{byte:02x}")).collect()
    }

    fn hashed(&self, bytes: &[u8]) -> Value {
        Value::String(StringAt::of_bytes(self.digits(bytes).into_bytes()))
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

impl EventNames {
    fn new(event: &Event) -> Self {
        let arguments = event.arguments.iter();
        Self {
            event: event.name.clone(),
            arguments: arguments.map(|argument| argument.name.clone()).collect(),
        }
    }
}

/// The places of the arguments that a name means: all that are called so, else the one that it numbers.
fn places(event: &Event, name: &str) -> Vec<usize> {
    let bare = name.strip_prefix("args.").unwrap_or(name);
    let arguments = event.arguments.iter().enumerate();
    let called = arguments.filter(|(_, argument)| argument.name == name || argument.name == bare);
    let called: Vec<usize> = called.map(|(place, _)| place).collect();
    match called.is_empty() {
        true => event.argument(name).into_iter().collect(),
        false => called,
    }
}

/// Redacts the arguments that hits got from others as those that they are from.
fn redact_copies(events: &[Event], redacted: &mut [Vec<Option<RedactedAs>>]) {
    let originals = redacted.to_vec();
    for (event, redacted) in events.iter().zip(redacted) {
        let copies = redacted.iter_mut().skip(event.own_arguments().len());
        for (copy, added) in copies.zip(&event.added) {
            let sources = added.sources.iter();
            let of_sources = sources.filter_map(|of| *originals.get(of.event)?.get(of.place)?);
            *copy = (*copy).max(of_sources.max());
        }
    }
}

fn missing() -> Value {
    Value::Missing(Missing::Operand(MISSING.to_owned()))
}

/// Hands rows to a sink with redacted values.
struct RedactedRows<'a> {
    arguments: &'a RedactedArguments,
    sink: &'a mut dyn RowSink,
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
