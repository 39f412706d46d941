//! The field `span`: which span an event ends, and how long that lasted.
//!
//! It is the last one of a line. A window's lines are made without knowing what began before it, so it leaves holes in its text,
//! which are filled when the windows are put one behind the other. Of a stream, a window is what is shown at once.

use usdtrec_format::escape::escape;
use usdtrec_format::perf::Sample;

use super::fields::{Field, Fields};
use super::{Format, Lines, ScriptOptions};
use crate::error::ReportError;
use crate::order::Window;
use crate::report::groups::Dictionary;
use crate::report::summary::Rows;
use crate::script::times::Times;
use crate::select::Filter;
use crate::session::{Resolver, Session, Target};
use crate::span::{BracketKey, Brackets, OpenSpans, Pair, Role, SpanKey};
use crate::text::{Text, csv_field, json_string};

/// What is the same for all lines of a trace.
pub(super) struct SpanColumn {
    /// Names of the spans as the format has them.
    names: Vec<String>,
    roles: Vec<Vec<Role>>,
    /// Of each span, what its beginning and end have in common.
    keys: Vec<SpanKey>,
    rows: Rows,
    dictionary: Dictionary,
    format: Format,
}

/// What a thread has in hand.
pub(super) struct Hand<'s> {
    /// Beginnings and ends since the window began.
    pub(super) brackets: Brackets<u64>,
    pub(super) resolver: Resolver<'s>,
}

impl<'s> Hand<'s> {
    pub(super) fn new(session: &'s Session) -> Self {
        Self {
            brackets: Brackets::default(),
            resolver: Resolver::new(session),
        }
    }
}

/// What a window shows.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) text: Text,
    /// Samples that were too short for what their event says.
    pub(super) short: u64,
    holes: Vec<Hole>,
    begun: Vec<(BracketKey, u64)>,
}

/// An end whose beginning is not in its window.
struct Hole {
    /// Where in the text; `None` if the line is not asked for.
    at: Option<usize>,
    key: BracketKey,
    time: u64,
}

impl Shown {
    pub(super) fn new(text: Text, short: u64) -> Self {
        Self {
            text,
            short,
            ..Self::default()
        }
    }

    /// Ends the window.
    pub(super) fn end(&mut self, brackets: &mut Brackets<u64>) {
        self.begun = brackets.take_open().collect();
        brackets.ends.clear();
    }
}

impl SpanColumn {
    /// `None` if the field is not asked for.
    ///
    /// # Errors
    /// [`ReportError::Ask`] beside what it cannot stand.
    pub(super) fn new(
        session: &Session,
        filter: &Filter,
        options: &ScriptOptions,
    ) -> Result<Option<Self>, ReportError> {
        let fields = options.fields.apply(Fields::default());
        if options.template.is_some() || !fields.has(Field::Span) {
            return Ok(None);
        }
        let mut pairs = Pair::find(session, |_| true);
        pairs.retain(|pair| pair.dones.iter().any(|&done| filter.event(done)));
        if pairs.is_empty() {
            return Err(ReportError::Ask(
                "no event that is asked for ends a span, as query__done ends what query__start began".to_owned(),
            ));
        }
        let events = session.events().events.len();
        let all = filter.is_simple() && (0..events).all(|event| filter.event(event));
        if options.times != Times::Clock && !all {
            return Err(ReportError::Ask(
                "times since another line beside spans are of all events: leave out what chooses some of them".to_owned(),
            ));
        }
        let name = |pair: &Pair| match options.format {
            Format::Text => escape(&pair.name).into_owned(),
            Format::Json => json_string(&pair.name),
            Format::Csv => csv_field(&pair.name).into_owned(),
        };
        let rows = Rows::new(session, |_| true);
        let keys = pairs.iter().map(|pair| pair.own_key(session, &rows));
        Ok(Some(Self {
            keys: keys.collect(),
            rows,
            dictionary: Dictionary::default(),
            names: pairs.iter().map(name).collect(),
            roles: Role::of(&pairs, events),
            format: options.format,
        }))
    }

    /// Whether an event begins or ends a span.
    pub(super) fn has_role(&self, event: usize) -> bool {
        self.roles.get(event).is_some_and(|roles| !roles.is_empty())
    }

    /// The filter for what is read: beginnings, too, that are not shown.
    pub(super) fn relaxed(&self, filter: &Filter) -> Filter {
        filter.relaxed(|event| filter.event(event) || self.has_role(event))
    }

    /// Appends the lines of a window.
    pub(super) fn window<'s>(
        &self,
        (session, filter): (&'s Session, &Filter),
        window: Window<'_>,
        (lines, hand): (&mut Lines<'s>, &mut Hand<'s>),
        text: Text,
    ) -> Shown {
        let mut shown = Shown::new(text, 0);
        let mut before = window.before;
        for body in window.bodies() {
            let Some((target, sample)) = session.sample(body) else {
                shown.short += 1;
                continue;
            };
            let asked = filter.event(target.event as usize)
                && (filter.is_simple() || filter.late(target, &sample, &mut hand.resolver));
            if asked {
                lines.line(target, &sample, before, &mut shown.text);
                before.pass(sample.time);
            }
            self.sample(hand, (target, &sample), asked, &mut shown);
        }
        shown.end(&mut hand.brackets);
        shown
    }

    /// Takes a sample, behind whose line, if it is asked for, nothing is yet.
    pub(super) fn sample(
        &self,
        Hand { brackets, resolver }: &mut Hand<'_>,
        (target, sample): (Target, &Sample<'_>),
        asked: bool,
        shown: &mut Shown,
    ) {
        let mut ends = false;
        for role in self.roles.get(target.event as usize).into_iter().flatten() {
            let key = self.keys.get(role.pair as usize);
            let key = key.unwrap_or(&SpanKey::Thread);
            let words = key.words(&self.rows, resolver, (target, sample), &self.dictionary);
            let Some(words) = words else {
                continue;
            };
            let key = (role.pair, words);
            if role.begins {
                brackets.begin(key, sample.time);
                continue;
            }
            let first = asked && !std::mem::replace(&mut ends, true);
            match brackets.end(key, sample.time) {
                Some(begin) if first => {
                    let duration = sample.time.saturating_sub(begin);
                    self.put(role.pair, Some(duration), &mut shown.text);
                }
                Some(_) => {}
                None => shown.holes.push(Hole {
                    at: first.then(|| shown.text.len() - self.tail().len()),
                    key,
                    time: sample.time,
                }),
            }
        }
        if asked && !ends && self.format == Format::Csv {
            shown.text.drop_last(1);
            shown.text.fixed(b",,\n");
        }
    }

    /// What stands behind the field.
    const fn tail(&self) -> &'static [u8] {
        match self.format {
            Format::Text | Format::Csv => b"\n",
            Format::Json => b"}\n",
        }
    }

    /// Puts the field into the line that was just written.
    fn put(&self, pair: u32, duration: Option<u64>, out: &mut Text) {
        out.drop_last(self.tail().len());
        self.field(pair, duration, out);
        out.bytes(self.tail());
    }

    /// Appends the field; there is no duration if the beginning is not known.
    fn field(&self, pair: u32, duration: Option<u64>, out: &mut Text) {
        let name = self.names.get(pair as usize).map_or("", String::as_str);
        match self.format {
            Format::Text => {
                out.fixed(b" span=");
                out.string(name);
                out.byte(b'(');
                match duration {
                    Some(duration) => put_time(duration, out),
                    None => out.fixed(b"<beginning not known>"),
                }
                out.byte(b')');
            }
            Format::Json => {
                if out.as_slice().last() != Some(&b'{') {
                    out.byte(b',');
                }
                out.fixed(b"\"span\":");
                out.string(name);
                out.fixed(b",\"span_ns\":");
                match duration {
                    Some(duration) => out.unsigned(duration),
                    None => out.fixed(b"null"),
                }
            }
            Format::Csv => {
                out.byte(b',');
                out.string(name);
                out.byte(b',');
                if let Some(duration) = duration {
                    out.unsigned(duration);
                }
            }
        }
    }

    /// Fills the holes of a window, one window after the other.
    pub(super) fn fill(&self, shown: Shown, open: &mut OpenSpans<u64>) -> Text {
        let text = if shown.holes.is_empty() {
            shown.text
        } else {
            self.filled(&shown, open)
        };
        // In a stream that never ends, so may others never do.
        if open.is_full(shown.begun.len()) {
            open.forget_older();
        }
        for (key, time) in shown.begun {
            open.begin(key, time);
        }
        text
    }

    fn filled(&self, shown: &Shown, open: &mut OpenSpans<u64>) -> Text {
        let bytes = shown.text.as_slice();
        let mut text = Text::default();
        let mut done = 0;
        for hole in &shown.holes {
            let begin = open.end(hole.key);
            if let Some(at) = hole.at {
                text.bytes(bytes.get(done..at).unwrap_or_default());
                done = at;
                let duration = begin.map(|begin| hole.time.saturating_sub(begin));
                self.field(hole.key.0, duration, &mut text);
            }
        }
        text.bytes(bytes.get(done..).unwrap_or_default());
        text
    }
}

/// Appends a time: `610ns`, `1.234us`, `12.345s`; cut off, not rounded.
fn put_time(ns: u64, out: &mut Text) {
    let (unit, name): (u64, &[u8]) = match ns {
        0..1_000 => {
            out.unsigned(ns);
            return out.bytes(b"ns");
        }
        1_000..1_000_000 => (1_000, b"us"),
        1_000_000..1_000_000_000 => (1_000_000, b"ms"),
        _ => (1_000_000_000, b"s"),
    };
    out.unsigned(ns / unit);
    out.byte(b'.');
    let billionths = ns % unit * (1_000_000_000 / unit);
    out.fraction(billionths as u32, 3);
    out.bytes(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_off() {
        let shown = |ns| {
            let mut out = Text::default();
            put_time(ns, &mut out);
            out.into_string()
        };
        assert_eq!([0, 999].map(shown), ["0ns", "999ns"]);
        assert_eq!([1000, 999_999].map(shown), ["1.000us", "999.999us"]);
        assert_eq!(shown(1_999_999_999), "1.999s");
        assert_eq!(shown(u64::MAX), "18446744073.709s");
    }
}
