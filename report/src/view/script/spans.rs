//! The field `span`: which span an event ends, and how long that lasted.
//!
//! It is the last one of a line. A window's lines are made without knowing what began before it, so it leaves holes in its text,
//! which are filled when the windows are put one behind the other. Of a stream, a window is what is shown at once.

use usdtrec_format::escape::escape;
use usdtrec_format::perf::Sample;

use crate::analysis::spans::key::SpanKey;
use crate::analysis::spans::matcher::{Brackets, End, OpenSpans, Segment};
use crate::analysis::spans::own_keys::own_keys;
use crate::analysis::spans::pair::Pair;
use crate::analysis::spans::role::Role;
use crate::analysis::spans::stack::{Frame, Totals};
use crate::error::ReportError;
use crate::events::order::Window;
use crate::events::selection::Filter;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::Words;
use crate::trace::rows::Rows;
use crate::trace::session::Session;
use crate::trace::session::ids::Target;
use crate::trace::session::resolver::Resolver;
use crate::view::format::Format;
use crate::view::script::fields::{Field, Fields};
use crate::view::script::lines::Lines;
use crate::view::script::options::ScriptOptions;
use crate::view::script::times::Times;
use crate::view::text::buffer::Text;
use crate::view::text::quoted::json_string;

/// What is the same for all lines of a trace.
pub(crate) struct SpanColumn {
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
pub(crate) struct Hand<'s> {
    /// Beginnings and ends since the window began.
    pub(crate) brackets: Brackets<()>,
    pub(crate) resolver: Resolver<'s>,
}

impl<'s> Hand<'s> {
    pub(crate) fn new(session: &'s Session) -> Self {
        Self {
            brackets: Brackets::default(),
            resolver: Resolver::new(session),
        }
    }
}

/// What a window shows.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) text: Text,
    /// Samples that were too short for what their event says.
    pub(crate) short: u64,
    /// Of each end that is left of the window, where in the text its span belongs; `None` if its line is not asked for.
    holes: Vec<Option<usize>>,
    left: Vec<Segment<()>>,
}

/// How long the span is that ended.
#[derive(Default)]
struct Duration(Option<u64>);

impl Totals<()> for Duration {
    fn unfinished(&mut self, (): &()) {}

    fn finished(&mut self, _: &Frame<()>, duration: u64, _: u64) -> Option<Box<[Words]>> {
        self.0 = Some(duration);
        None
    }
}

impl Shown {
    pub(crate) fn new(text: Text, short: u64) -> Self {
        Self {
            text,
            short,
            ..Self::default()
        }
    }

    /// Ends the window.
    pub(crate) fn end(&mut self, brackets: &mut Brackets<()>) {
        self.left = brackets.take();
    }
}

impl SpanColumn {
    /// `None` if the field is not asked for.
    ///
    /// # Errors
    /// [`ReportError::Ask`] beside what it cannot stand.
    pub(crate) fn new(
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
            format => format.csv().field(&pair.name).into_owned(),
        };
        let rows = Rows::new(session, |_| true);
        Ok(Some(Self {
            keys: own_keys(&pairs, session, &rows),
            rows,
            dictionary: Dictionary::default(),
            names: pairs.iter().map(name).collect(),
            roles: Role::of(&pairs, events),
            format: options.format,
        }))
    }

    /// Whether an event begins or ends a span.
    pub(crate) fn has_role(&self, event: usize) -> bool {
        self.roles.get(event).is_some_and(|roles| !roles.is_empty())
    }

    /// The filter for what is read: beginnings, too, that are not shown.
    pub(crate) fn relaxed(&self, filter: &Filter) -> Filter {
        filter.relaxed(|event| filter.event(event) || self.has_role(event))
    }

    /// Appends the lines of a window.
    pub(crate) fn window<'s>(
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
    pub(crate) fn sample(
        &self,
        Hand { brackets, resolver }: &mut Hand<'_>,
        (target, sample): (Target, &Sample<'_>),
        asked: bool,
        shown: &mut Shown,
    ) {
        let mut ends = false;
        for role in self.roles.get(target.event as usize).into_iter().flatten() {
            let Some(key) = self.keys.get(role.pair as usize) else {
                continue;
            };
            let of_hit = key.of(&self.rows, resolver, (target, sample), &self.dictionary);
            let Some((words, marks)) = of_hit else {
                continue;
            };
            let key = (role.pair, words);
            if role.begins {
                brackets.begin(key, Frame::new(sample.time, marks, ()));
                continue;
            }
            let first = asked && !std::mem::replace(&mut ends, true);
            let mut span = Duration::default();
            if brackets.end(key, (sample.time, marks), &mut span) {
                if first {
                    self.put(role.pair, span.0, &mut shown.text);
                }
                continue;
            }
            let end = End {
                time: sample.time,
                marks,
                ..End::default()
            };
            brackets.leave(key, end);
            let at = first.then(|| shown.text.len() - self.tail().len());
            shown.holes.push(at);
        }
        if asked && !ends && matches!(self.format, Format::Csv | Format::CsvRaw) {
            shown.text.drop_last(1);
            shown.text.fixed(b",,\n");
        }
    }

    /// What stands behind the field.
    const fn tail(&self) -> &'static [u8] {
        match self.format {
            Format::Text | Format::Csv | Format::CsvRaw => b"\n",
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
            Format::Csv | Format::CsvRaw => {
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
    pub(crate) fn fill(&self, shown: Shown, open: &mut OpenSpans<()>) -> Text {
        let begun = shown.left.iter().map(|segment| segment.begun.len()).sum();
        // In a stream that never ends, so may others never do.
        if open.is_full(begun) {
            open.forget_older();
        }
        let bytes = shown.text.as_slice();
        let mut holes = shown.holes.iter();
        let mut text = Text::default();
        let mut done = 0;
        for mut segment in shown.left {
            let (pair, end) = (segment.key.0, segment.end.take());
            let mut span = Duration::default();
            open.take(segment, end.as_ref(), &mut span);
            if end.is_some()
                && let Some(&Some(at)) = holes.next()
            {
                text.bytes(bytes.get(done..at).unwrap_or_default());
                done = at;
                self.field(pair, span.0, &mut text);
            }
        }
        if done == 0 {
            return shown.text;
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
