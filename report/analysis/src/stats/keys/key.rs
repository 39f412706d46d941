//! What samples can be grouped by, and the words that encode it in a group's key.

use std::cmp::Ordering;

use usdtrec_format::perf::Sample;
use usdtrec_format::{IntegerBits, Missing, SourceLine, StringAt, Value};
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::calls::paths::CallPath;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::site_samples::{SiteSamples, TimedThread};
use usdtrec_trace::fields::process_field_named;
use usdtrec_trace::form::Form;
use usdtrec_trace::process::DsoId;
use usdtrec_trace::process::names::NameId;
use usdtrec_trace::process::process_field::{ProcessField, ProcessValue};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;
use usdtrec_trace::symbols::NameOfSymbol;
use usdtrec_trace::symbols::known_inlining::FoundInlining;
use usdtrec_trace::unwind::stack::StackPart;

use crate::stats::keys::argument_name::{column, places};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::script::ScriptKey;
use crate::stats::keys::value::KeyValue;
use crate::stats::shape::shape;
use crate::stats::timeline::Timeline;

/// Something to group by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The event.
    Event,
    /// The name of the thread.
    Comm,
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The CPU.
    Cpu,
    /// A field about the process.
    Process(&'static ProcessField),
    /// The file of the hit.
    Dso,
    /// The function of the hit.
    Sym,
    /// The line of source of the hit.
    Source,
    /// The function that called that of the hit.
    Caller,
    /// The whole stack.
    Stack,
    /// The function of the script that called the innermost one.
    ScriptCaller(ScriptKey),
    /// The functions of the script that the thread is in.
    ScriptStack(ScriptKey),
    /// The interval of a timeline.
    Interval(Timeline),
    /// An argument: its name, its index in each event, if that has it, and how it is shown, as the first event says.
    Argument(String, Vec<Option<usize>>, Form),
    /// What is left of a string without its numbers and quoted strings: its name (`query:shape`), and where it is.
    Shape(String, Vec<Option<usize>>),
}

/// What an argument's name ends with if its shape is meant.
const SHAPE: &str = ":shape";

/// Kinds of values; the second word says which value of the kind.
mod kind {
    pub(crate) const ABSENT: u64 = 0;
    pub(crate) const UNSIGNED: u64 = 1;
    pub(crate) const SIGNED: u64 = 2;
    pub(crate) const FLOAT32: u64 = 3;
    pub(crate) const FLOAT64: u64 = 4;
    pub(crate) const MISSING: u64 = 5;
    pub(crate) const KNOWN: u64 = 6;
    pub(crate) const UNKNOWN: u64 = 7;
    pub(crate) const STRING: u64 = 8;
    /// A string beyond those that are counted one by one.
    pub(crate) const OTHER_STRING: u64 = 9;
    pub(crate) const STACK: u64 = 10;
    /// A stack beyond those that are counted one by one.
    pub(crate) const OTHER_STACK: u64 = 11;
    /// A string of which only the beginning was captured. It is a value of its own: a whole string is another one.
    pub(crate) const CUT_STRING: u64 = 12;
}

/// The value of one key in a group's key, as two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyWords {
    /// What kind of value it is.
    pub(crate) kind: u64,
    /// Which value of that kind.
    pub(crate) word: u64,
}

impl KeyWords {
    pub(crate) const fn new(kind: u64, word: u64) -> Self {
        Self { kind, word }
    }

    /// The words of a process that is known by its number, whether or not it has a name.
    pub(crate) const fn by_number(self) -> Self {
        Self::new(kind::KNOWN, self.word)
    }

    /// Whether they are of one value alone.
    pub(crate) const fn is_distinct(self) -> bool {
        !matches!(
            self.kind,
            kind::ABSENT | kind::MISSING | kind::UNKNOWN | kind::OTHER_STRING | kind::OTHER_STACK
        )
    }
}

impl Key {
    /// A key by its name.
    pub(crate) fn parse(
        name: &str,
        session: &TraceSession,
        rows: &Rows,
    ) -> Result<Self, ReportError> {
        Ok(match name {
            "event" => Self::Event,
            "comm" => Self::Comm,
            "pid" => Self::Pid,
            "tid" => Self::Tid,
            "cpu" => Self::Cpu,
            "dso" => Self::Dso,
            "sym" | "symbol" => Self::Sym,
            "srcline" => Self::Source,
            "caller" | "caller:native" | "caller:script" | "stack" | "stack:native"
            | "stack:script" => Self::of_stacks(name, session, rows)?,
            name if name.ends_with(SHAPE) => {
                let argument = name.strip_suffix(SHAPE).unwrap_or(name);
                Self::Shape(name.to_owned(), places(argument, session, rows)?)
            }
            name => {
                if let Some(field) = process_field_named(name)
                    && session.has_of_process(field)
                {
                    return Ok(Self::Process(field));
                }
                let places = places(name, session, rows)?;
                let mut events = session.events().events.iter().zip(&places);
                let first = events.find_map(|(event, place)| event.arguments.get((*place)?));
                let form = first.map(Form::new);
                Self::Argument(column(name), places, form.unwrap_or_default())
            }
        })
    }

    /// A key about stacks: `stack` or `caller`, of recorded call chains (`:native`), of the functions of scripts (`:script`), or what there is.
    fn of_stacks(name: &str, session: &TraceSession, rows: &Rows) -> Result<Self, ReportError> {
        let (what, kind) = name.split_once(':').unwrap_or((name, ""));
        let is_caller = what == "caller";
        let mut events = session.events().events.iter().zip(&rows.of_event);
        if kind != "script" && events.any(|(event, row)| row.is_some() && event.has_chain()) {
            return Ok(if is_caller { Self::Caller } else { Self::Stack });
        }
        let calls = (kind != "native").then(|| ScriptCalls::from_session(session));
        let what = name.to_owned();
        let Some(calls) = calls.flatten() else {
            return Err(match kind {
                "script" => QuestionError::NoScriptCalls { what },
                _ => QuestionError::NoStacks { what },
            }
            .into());
        };
        let key = ScriptKey { name: what, calls };
        Ok(match is_caller {
            true => Self::ScriptCaller(key),
            false => Self::ScriptStack(key),
        })
    }

    /// The calls of scripts that its words need.
    pub(crate) fn calls(&self) -> Option<&ScriptCalls> {
        match self {
            Self::ScriptCaller(key) | Self::ScriptStack(key) => Some(&key.calls),
            _ => None,
        }
    }

    /// The form of its values.
    pub const fn form(&self) -> &Form {
        match self {
            Self::Argument(_, _, form) => form,
            _ => &Form::Plain,
        }
    }

    /// The heading of its column, as perf has it.
    pub fn heading(&self) -> &str {
        match self {
            Self::Event => "Event",
            Self::Comm => "Command",
            Self::Pid => "Pid:Command",
            Self::Tid => "Tid",
            Self::Cpu => "CPU",
            Self::Process(field) => field.heading,
            Self::Dso => "Shared Object",
            Self::Sym => "Symbol",
            Self::Source => "Source:Line",
            Self::Caller | Self::ScriptCaller(_) => "Caller",
            Self::Stack | Self::ScriptStack(_) => "Stack",
            Self::Interval(_) => "Interval",
            Self::Argument(name, ..) | Self::Shape(name, _) => name,
        }
    }

    /// Its name in JSON and CSV.
    pub fn name(&self) -> &str {
        match self {
            Self::Event => "event",
            Self::Comm => "comm",
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Cpu => "cpu",
            Self::Process(field) => field.name,
            Self::Dso => "dso",
            Self::Sym => "sym",
            Self::Source => "srcline",
            Self::Caller => "caller",
            Self::Stack => "stack",
            Self::ScriptCaller(key) | Self::ScriptStack(key) => &key.name,
            Self::Interval(_) => "interval",
            Self::Argument(name, ..) | Self::Shape(name, _) => name,
        }
    }

    /// The words for a sample.
    #[inline]
    pub(crate) fn words(
        &self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
        dictionary: &Dictionary,
    ) -> KeyWords {
        match self {
            Self::Event => {
                let row = rows.of_event.get(target.event as usize).copied().flatten();
                KeyWords::new(kind::KNOWN, row.unwrap_or(0) as u64)
            }
            Self::Comm => {
                let Sample { tid, time, .. } = *sample;
                comm(TimedThread { tid, time }, resolver)
            }
            Self::Pid => {
                let name = resolver.name(sample.pid, sample.time);
                let name = name.map_or(kind::UNKNOWN, |name| kind::KNOWN | u64::from(name.0) << 8);
                KeyWords::new(name, u64::from(sample.pid as u32))
            }
            Self::Tid => KeyWords::new(kind::KNOWN, u64::from(sample.tid as u32)),
            Self::Cpu => KeyWords::new(kind::KNOWN, u64::from(sample.cpu)),
            Self::Process(field) => match resolver.process_value(field, sample) {
                Ok(ProcessValue::Number(number)) => KeyWords::new(kind::UNSIGNED, number),
                Ok(string) => {
                    of_string(string.escaped().unwrap_or_default().as_bytes(), dictionary)
                }
                Err(reason) => {
                    let number = field.reasons.iter().position(|known| *known == reason);
                    KeyWords::new(kind::UNKNOWN, number.map_or(0, |number| number as u64 + 1))
                }
            },
            Self::Dso => match resolver.place(sample).file {
                Some(file) => KeyWords::new(kind::KNOWN, u64::from(file.0)),
                None => KeyWords::new(kind::UNKNOWN, 0),
            },
            Self::Sym => symbol_words(resolver, target, sample, dictionary),
            Self::Source => source_words(resolver, sample, dictionary),
            Self::Caller => caller_words(resolver, target, sample, dictionary),
            Self::Stack => {
                let session = resolver.session();
                match has_chain(session, target) {
                    true => stack_words(resolver.stack(target, sample), session, dictionary),
                    false => KeyWords::new(kind::ABSENT, 0),
                }
            }
            Self::ScriptCaller(key) => {
                let path = resolver.path().and_then(|path| key.caller(path));
                path_words(key, path, dictionary)
            }
            Self::ScriptStack(key) => path_words(key, resolver.path(), dictionary),
            // A span of which a part is in the timeline may have begun before.
            Self::Interval(timeline) => match timeline.place_from_begin(sample.time) {
                Some(interval) => KeyWords::new(kind::KNOWN, interval as u64),
                None => KeyWords::new(kind::ABSENT, 0),
            },
            Self::Argument(_, places, _) => {
                match argument_value(places, resolver, target, sample) {
                    Some(value) => of_value(value, dictionary),
                    None => KeyWords::new(kind::ABSENT, 0),
                }
            }
            Self::Shape(_, places) => match argument_value(places, resolver, target, sample) {
                Some(Value::String(string)) => {
                    of_captured(&shape(&string.bytes), string.cut, dictionary)
                }
                Some(value) => of_value(value, dictionary),
                None => KeyWords::new(kind::ABSENT, 0),
            },
        }
    }

    /// Replaces the words of a column by those for samples, one after the other.
    pub(crate) fn fill<'k>(
        &self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        samples: SiteSamples<'_>,
        dictionary: &Dictionary,
        column: impl Iterator<Item = &'k mut KeyWords>,
    ) {
        let target = samples.target;
        match self {
            Self::Comm => {
                let both = column.zip(samples.threads());
                both.for_each(|(words, thread)| *words = comm(thread, resolver));
            }
            Self::Argument(_, places, _)
                if let Some(place) = places.get(target.event as usize).copied().flatten()
                    && let Some(integers) = samples.integers(resolver.session(), place) =>
            {
                for (at, (words, integer)) in column.zip(integers.values()).enumerate() {
                    *words = match integer {
                        Some(integer) => of_integer(integer),
                        None => self.words(rows, resolver, target, &samples.sample(at), dictionary),
                    };
                }
            }
            _ => {
                for (words, sample) in column.zip(samples.samples()) {
                    *words = self.words(rows, resolver, target, &sample, dictionary);
                }
            }
        }
    }

    /// The value that words encode.
    pub(crate) fn value(
        &self,
        words: KeyWords,
        session: &TraceSession,
        rows: &Rows,
        dictionary: &Dictionary,
    ) -> KeyValue {
        let KeyWords { kind, word } = words;
        let id = word as u32;
        match self {
            Self::Event => {
                let row = rows.rows.get(word as usize);
                KeyValue::Name(row.map_or_else(String::new, |row| row.name.clone()))
            }
            Self::Comm if kind == kind::UNKNOWN => KeyValue::Name(format!(":{}", id as i32)),
            Self::Comm => KeyValue::Name(name(session, NameId(id)).to_owned()),
            Self::Pid => KeyValue::Process {
                pid: id as i32,
                comm: match kind & 0xff {
                    kind::KNOWN => name(session, NameId((kind >> 8) as u32)).to_owned(),
                    _ => format!(":{}", id as i32),
                },
            },
            Self::Tid => KeyValue::Integer(i128::from(id as i32)),
            Self::Cpu => KeyValue::Cpu(id),
            Self::Process(field) => match kind {
                kind::UNKNOWN if word > 0 => {
                    let reason = field.reasons.get(word as usize - 1).copied();
                    let reason = reason.unwrap_or_default().trim_matches(['<', '>']);
                    KeyValue::Missing(reason.to_owned())
                }
                kind::UNSIGNED => KeyValue::Integer(word.into()),
                kind::STRING => {
                    let string = dictionary.string_of(word);
                    KeyValue::Name(String::from_utf8_lossy(&string).into_owned())
                }
                kind::OTHER_STRING => KeyValue::OtherStrings,
                _ => KeyValue::Absent,
            },
            Self::Dso => {
                let file = (kind == kind::KNOWN).then(|| session.mappings().file(DsoId(id)));
                KeyValue::File(file.flatten().map(|file| file.path.clone()))
            }
            Self::Sym if kind == kind::UNKNOWN => KeyValue::Address(word),
            Self::Sym | Self::Caller => caller(kind, word, session, dictionary),
            Self::Source => source(kind, word, dictionary),
            Self::Stack => match kind {
                kind::STACK => KeyValue::Stack(dictionary.stack_of(word, session)),
                kind::OTHER_STACK => KeyValue::OtherStacks,
                _ => KeyValue::Absent,
            },
            Self::ScriptStack(key) => match kind {
                kind::STACK => KeyValue::Stack(key.stack(word)),
                kind::OTHER_STACK => KeyValue::OtherStacks,
                _ => KeyValue::Absent,
            },
            Self::ScriptCaller(key) => match kind {
                kind::STACK => {
                    let caller = key.stack(word).frames.into_iter().next();
                    caller.map_or(KeyValue::Absent, KeyValue::Frame)
                }
                kind::OTHER_STACK => KeyValue::OtherStacks,
                _ => KeyValue::Absent,
            },
            Self::Interval(_) if kind == kind::ABSENT => KeyValue::Absent,
            Self::Interval(_) => KeyValue::Integer(word.into()),
            Self::Shape(..) | Self::Argument(..) => argument(kind, word, dictionary),
        }
    }

    /// The order of groups that are equal otherwise: that of the values of their keys, then of what else tells these apart.
    pub(crate) fn compare(keys: &[Self], a: &[KeyValue], b: &[KeyValue]) -> Ordering {
        let values = || keys.iter().zip(a.iter().zip(b));
        let orders = values().map(|(key, (a, b))| a.order(key.form()).cmp(&b.order(key.form())));
        let rests = values().map(|(_, (a, b))| a.rest().cmp(&b.rest()));
        let mut all = orders.chain(rests);
        all.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// The words of the name of a thread.
#[inline]
fn comm(TimedThread { tid, time }: TimedThread, resolver: &mut Resolver<'_>) -> KeyWords {
    match resolver.name(tid, time) {
        Some(name) => KeyWords::new(kind::KNOWN, u64::from(name.0)),
        None => KeyWords::new(kind::UNKNOWN, u64::from(tid as u32)),
    }
}

/// Whether an event's samples have call chains.
fn has_chain(session: &TraceSession, target: SampleTarget) -> bool {
    let event = session.events().events.get(target.event as usize);
    event.is_some_and(Event::has_chain)
}

/// The words of a stack, or of a part of one.
fn stack_words(stack: &[StackPart], session: &TraceSession, dictionary: &Dictionary) -> KeyWords {
    let number = dictionary.stack(stack, session);
    number.map_or(KeyWords::new(kind::OTHER_STACK, 0), |number| {
        KeyWords::new(kind::STACK, number)
    })
}

/// The words of a path of calls.
fn path_words(key: &ScriptKey, path: Option<CallPath>, dictionary: &Dictionary) -> KeyWords {
    match path {
        None | Some(CallPath::EMPTY) => KeyWords::new(kind::ABSENT, 0),
        Some(CallPath::OTHERS) => KeyWords::new(kind::OTHER_STACK, 0),
        Some(path) => KeyWords::new(kind::STACK, key.word(path, dictionary)),
    }
}

/// The words of the function with the probe: where stacks were recorded, the one that is inlined there.
fn symbol_words(
    resolver: &mut Resolver<'_>,
    target: SampleTarget,
    sample: &Sample<'_>,
    dictionary: &Dictionary,
) -> KeyWords {
    let session = resolver.session();
    if has_chain(session, target)
        && let Some(inlined) = resolver.inlined_hit(sample)
    {
        return stack_words(&[inlined], session, dictionary);
    }
    match &resolver.place(sample).symbol {
        Some(symbol) => KeyWords::new(kind::KNOWN, dictionary.symbol(session, symbol.id)),
        None => KeyWords::new(kind::UNKNOWN, sample.ip),
    }
}

/// The words of the line of source of a hit: of the innermost function that is inlined there.
fn source_words(
    resolver: &mut Resolver<'_>,
    sample: &Sample<'_>,
    dictionary: &Dictionary,
) -> KeyWords {
    let (_, found) = resolver.inlining_of_hit(sample);
    match found.and_then(FoundInlining::innermost) {
        Some(SourceLine { file, line }) => {
            of_string(format!("{file}:{line}").as_bytes(), dictionary)
        }
        None => KeyWords::new(kind::UNKNOWN, 0),
    }
}

/// The line of source that words encode.
fn source(kind: u64, word: u64, dictionary: &Dictionary) -> KeyValue {
    match kind {
        kind::STRING => {
            let string = dictionary.string_of(word);
            let string = String::from_utf8_lossy(&string);
            let parts = string.rsplit_once(':');
            KeyValue::Source(parts.and_then(|(file, line)| {
                Some(SourceLine {
                    file: file.to_owned(),
                    line: line.parse().ok()?,
                })
            }))
        }
        kind::OTHER_STRING => KeyValue::OtherStrings,
        _ => KeyValue::Source(None),
    }
}

/// The words of a caller: callers are the same if their names are, as functions with probes are.
fn caller_words(
    resolver: &mut Resolver<'_>,
    target: SampleTarget,
    sample: &Sample<'_>,
    dictionary: &Dictionary,
) -> KeyWords {
    let session = resolver.session();
    if !has_chain(session, target) {
        return KeyWords::new(kind::ABSENT, 0);
    }
    match resolver.caller(target, sample) {
        None => KeyWords::new(kind::ABSENT, 0),
        Some(
            StackPart::Function {
                name,
                inlined: false,
                ..
            }
            | StackPart::Made { name },
        ) => KeyWords::new(kind::KNOWN, dictionary.symbol(session, name)),
        Some(part) => stack_words(&[part], session, dictionary),
    }
}

/// The caller that words encode.
fn caller(kind: u64, word: u64, session: &TraceSession, dictionary: &Dictionary) -> KeyValue {
    match kind {
        kind::KNOWN => {
            let name = session.symbols().name(NameOfSymbol(word as u32));
            KeyValue::Function(name.unwrap_or_default())
        }
        kind::STACK => {
            let mut stack = dictionary.stack_of(word, session);
            match (stack.frames.pop(), stack.cut) {
                (Some(frame), _) => KeyValue::Frame(frame),
                (None, Some(cut)) => KeyValue::Cut(cut),
                (None, None) => KeyValue::Absent,
            }
        }
        kind::OTHER_STACK => KeyValue::OtherStacks,
        _ => KeyValue::Absent,
    }
}

fn name(session: &TraceSession, id: NameId) -> &str {
    session.processes().name(id).map_or("", |name| name.text)
}

/// The argument of a sample that is at its event's place.
#[inline]
pub(crate) fn argument_value<'r>(
    places: &[Option<usize>],
    resolver: &'r mut Resolver<'_>,
    target: SampleTarget,
    sample: &Sample<'_>,
) -> Option<&'r Value> {
    let place = places.get(target.event as usize).copied().flatten()?;
    let site = resolver.session().site_of(target, sample)?;
    resolver.value(site, place, sample)
}

fn of_string(string: &[u8], dictionary: &Dictionary) -> KeyWords {
    let number = dictionary.string(string);
    number.map_or(KeyWords::new(kind::OTHER_STRING, 0), |number| {
        KeyWords::new(kind::STRING, number)
    })
}

/// The words of a string of an argument.
fn of_captured(string: &[u8], is_cut: bool, dictionary: &Dictionary) -> KeyWords {
    match of_string(string, dictionary) {
        KeyWords {
            kind: kind::STRING,
            word,
        } if is_cut => KeyWords::new(kind::CUT_STRING, word),
        words => words,
    }
}

/// One number is one group, whether its site calls it signed or not.
#[inline]
const fn of_integer(IntegerBits { bits, is_negative }: IntegerBits) -> KeyWords {
    KeyWords::new(
        match is_negative {
            true => kind::SIGNED,
            false => kind::UNSIGNED,
        },
        bits,
    )
}

fn of_value(value: &Value, dictionary: &Dictionary) -> KeyWords {
    match value {
        Value::Unsigned(number) => of_integer(IntegerBits {
            bits: *number,
            is_negative: false,
        }),
        Value::Signed(number) => of_integer(IntegerBits {
            bits: number.cast_unsigned(),
            is_negative: *number < 0,
        }),
        // Of NaN, sign and payload are not shown.
        Value::Float32(number) if number.is_nan() => {
            KeyWords::new(kind::FLOAT32, u64::from(f32::NAN.to_bits()))
        }
        Value::Float64(number) if number.is_nan() => {
            KeyWords::new(kind::FLOAT64, f64::NAN.to_bits())
        }
        Value::Float32(number) => KeyWords::new(kind::FLOAT32, u64::from(number.to_bits())),
        Value::Float64(number) => KeyWords::new(kind::FLOAT64, number.to_bits()),
        Value::Missing(Missing::Absent) => KeyWords::new(kind::ABSENT, 0),
        Value::Missing(missing) => KeyWords::new(kind::MISSING, dictionary.reason(missing)),
        Value::String(string) => of_captured(&string.bytes, string.cut, dictionary),
        _ => KeyWords::new(kind::ABSENT, 0),
    }
}

/// The value that words of an argument encode.
fn argument(kind: u64, word: u64, dictionary: &Dictionary) -> KeyValue {
    KeyValue::Argument(match kind {
        kind::UNSIGNED => Value::Unsigned(word),
        kind::SIGNED => Value::Signed(word as i64),
        kind::FLOAT32 => Value::Float32(f32::from_bits(word as u32)),
        kind::FLOAT64 => Value::Float64(f64::from_bits(word)),
        kind::STRING | kind::CUT_STRING => Value::String(StringAt {
            cut: kind == kind::CUT_STRING,
            ..StringAt::of_bytes(dictionary.string_of(word).to_vec())
        }),
        kind::MISSING => {
            let reason = dictionary.reason_of(word);
            return match reason == Missing::Null.to_string() {
                true => KeyValue::Null,
                false => KeyValue::Missing(reason),
            };
        }
        kind::OTHER_STRING => return KeyValue::OtherStrings,
        _ => return KeyValue::Absent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is cut begins as a whole string may, and is no group with it.
    #[test]
    fn a_cut_string_is_a_value_of_its_own() {
        let dictionary = Dictionary::default();
        let string = |cut| {
            Value::String(StringAt {
                cut,
                ..StringAt::of_bytes(b"SELECT".to_vec())
            })
        };
        let words = [false, true].map(|cut| of_value(&string(cut), &dictionary));
        assert_ne!(words[0], words[1]);
        for (words, cut) in words.into_iter().zip([false, true]) {
            let value = argument(words.kind, words.word, &dictionary);
            assert_eq!(value, KeyValue::Argument(string(cut)));
        }
    }

    #[test]
    fn all_nan_are_one_group() {
        let dictionary = Dictionary::default();
        let of = |value: Value| of_value(&value, &dictionary);
        let singles = [f32::NAN, -f32::NAN, f32::from_bits(0x7fc0_0001)];
        let doubles = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff8_0000_0000_0001)];
        for nan in singles {
            assert_eq!(of(Value::Float32(nan)), of(Value::Float32(f32::NAN)));
        }
        for nan in doubles {
            assert_eq!(of(Value::Float64(nan)), of(Value::Float64(f64::NAN)));
        }
        assert_ne!(of(Value::Float64(-0.0)), of(Value::Float64(0.0)));
    }
}
