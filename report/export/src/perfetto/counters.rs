//! Numbers of arguments as counters.

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::CounterGap;
use usdtrec_trace::form::Form;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

use crate::perfetto::fields::{SEQUENCE, counter_unit, event_type, packet, track_event};
use crate::perfetto::tracks::Tracks;
use crate::protobuf::Proto;
use crate::redaction::RedactedArguments;
use crate::typed_value::TypedValue;

/// Arguments that are counters, each with a track for each process.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Of each event, its arguments that are counters.
    events: Vec<Vec<CountedArgument>>,
    tracks: HashMap<CounterKey, u64>,
}

/// An argument that is a counter.
#[derive(Debug)]
struct CountedArgument {
    /// Its place among the event's.
    place: usize,
    form: Form,
    /// Event and argument.
    name: String,
    /// The argument alone.
    argument: String,
    unit: u64,
    /// Values that are in the counter.
    numbers: u64,
    /// Values that are no numbers. Missing ones are not counted.
    others: u64,
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CounterKey {
    pid: i32,
    event: usize,
    place: usize,
}

impl Counters {
    /// # Errors
    /// [`ReportError::Question`] if no event has an argument of a name, or if its numbers are left out or hashed.
    pub(crate) fn new(
        session: &TraceSession,
        redacted: &RedactedArguments,
        names: &[String],
    ) -> Result<Self, ReportError> {
        let all = &session.events().events;
        if let Some(name) = names
            .iter()
            .find(|name| all.iter().all(|event| event.argument(name).is_none()))
        {
            return Err(QuestionError::no_argument(name, String::new(), &[]).into());
        }
        if names.is_empty() {
            return Ok(Self::default());
        }
        let place = |at: usize, event: &Event, name: &str| {
            let place = event.argument(name);
            place.filter(|&place| redacted.redacted_as(at, place).is_none())
        };
        let has_numbers = |name: &String| {
            let mut events = all.iter().enumerate();
            events.any(|(at, event)| place(at, event, name).is_some())
        };
        if let Some(name) = names.iter().find(|name| !has_numbers(name)) {
            let name = name.clone();
            return Err(QuestionError::NoNumbers { name }.into());
        }
        let events = all.iter().enumerate().map(|(at, event)| {
            let mut places: Vec<usize> = names
                .iter()
                .filter_map(|name| place(at, event, name))
                .collect();
            places.sort_unstable();
            places.dedup();
            let counted = places.into_iter().filter_map(|place| {
                let argument = event.arguments.get(place)?;
                let form = Form::new(argument);
                Some(CountedArgument {
                    place,
                    name: format!("{} {}", event.name, argument.name),
                    argument: argument.name.clone(),
                    numbers: 0,
                    others: 0,
                    unit: match form {
                        Form::Time(1) => counter_unit::NANOSECONDS,
                        Form::Memory(1) => counter_unit::BYTES,
                        _ => counter_unit::NONE,
                    },
                    form,
                })
            });
            counted.collect()
        });
        Ok(Self {
            events: events.collect(),
            tracks: HashMap::default(),
        })
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The values that are left out.
    ///
    /// # Errors
    /// [`QuestionError::NoNumbers`] if all values of a requested argument are.
    pub(crate) fn gaps(&self) -> Result<Vec<CounterGap>, QuestionError> {
        let all = || self.events.iter().flatten();
        for argument in all().filter(|one| one.others > 0) {
            let name = &argument.argument;
            if all().all(|one| one.argument != *name || one.numbers == 0) {
                return Err(QuestionError::NoNumbers { name: name.clone() });
            }
        }
        let left_out = all().filter(|one| one.others > 0);
        let gaps = left_out.map(|argument| CounterGap {
            counter: argument.name.clone(),
            values: argument.others,
        });
        Ok(gaps.collect())
    }

    /// Appends the values of a hit.
    pub(crate) fn put(&mut self, hit: RowHit<'_>, tracks: &mut Tracks, out: &mut Proto) {
        for argument in self.events.get_mut(hit.row.event).into_iter().flatten() {
            let Some(value) = hit.values.get(argument.place) else {
                continue;
            };
            let value = TypedValue::new(&argument.form, value);
            match value {
                TypedValue::Unsigned(_) | TypedValue::Signed(_) | TypedValue::Float(_) => {
                    argument.numbers += 1;
                }
                TypedValue::Missing(_) => continue,
                TypedValue::Bool(_) | TypedValue::Address(_) | TypedValue::String(_) => {
                    argument.others += 1;
                    continue;
                }
            }
            let pid = hit.row.pid;
            let key = CounterKey {
                pid,
                event: hit.row.event,
                place: argument.place,
            };
            let track = self.tracks.entry(key);
            let track =
                track.or_insert_with(|| tracks.of_counter(pid, &argument.name, argument.unit, out));
            let track = *track;
            out.message(packet::SELF, |sent| {
                sent.unsigned(packet::TIMESTAMP, hit.row.time);
                sent.unsigned(packet::SEQUENCE_ID, SEQUENCE);
                sent.message(packet::TRACK_EVENT, |event| {
                    event.unsigned(track_event::KIND, event_type::COUNTER);
                    event.unsigned(track_event::TRACK, track);
                    put_value(event, &value);
                });
            });
        }
    }
}

/// Appends a value. There are no unsigned ones: those that signed ones do not have are floats.
fn put_value(event: &mut Proto, value: &TypedValue<'_>) {
    match value {
        TypedValue::Signed(number) => event.signed(track_event::COUNTER, *number),
        TypedValue::Unsigned(number) => match i64::try_from(*number) {
            Ok(number) => event.signed(track_event::COUNTER, number),
            Err(_) => event.double(track_event::FLOAT_COUNTER, *number as f64),
        },
        TypedValue::Float(number) => event.double(track_event::FLOAT_COUNTER, *number),
        _ => {}
    }
}
