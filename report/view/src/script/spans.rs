//! The field `span`: which span an event ends, and how long that lasted.
//!
//! It is the last one of an event's line, in front of the callers below it. A window's lines are made without knowing what began before it, so it leaves holes in its text,
//! which are filled when the windows are joined. Of a stream, a window is what is shown at once.

use usdtrec_analysis::spans::ends::{ClosedSpan, EndsWorker, SpanEnd, SpanEnds};
use usdtrec_analysis::spans::matcher::{OpenSpans, Segment};
use usdtrec_format::escape::escape;
use usdtrec_format::trace::TimeRange;
use usdtrec_format::{TimePart, TimeParts};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::Window;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};

use crate::format::Format;
use crate::numbers::parts_or_reason;
use crate::script::line_field::LineField;
use crate::script::options::ScriptOptions;
use crate::script::row_writer::RowWriter;
use crate::script::times::TimeOrigin;
use crate::text::buffer::Text;
use crate::text::quoted::json_string;

/// Settings for all lines of a trace.
pub(crate) struct SpanColumn {
    pub(crate) ends: SpanEnds,
    /// Names of the spans as the format has them.
    names: Vec<String>,
    format: Format,
    /// Whether CSV has columns of the parts of their time.
    has_parts: bool,
    /// Whether lines have no other field.
    is_alone: bool,
}

/// What a window shows.
#[derive(Default)]
pub(crate) struct WindowText {
    pub(crate) text: Text,
    /// Samples that were too short for what their event says.
    pub(crate) short: u64,
    /// Of each end that is left of the window, where in the text its span belongs; `None` if its line is not requested.
    holes: Vec<Option<usize>>,
    left: Vec<Segment<()>>,
}

impl WindowText {
    pub(crate) fn new(text: Text, short: u64) -> Self {
        Self {
            text,
            short,
            ..Self::default()
        }
    }

    /// Ends the window.
    pub(crate) fn end(&mut self, worker: &mut EndsWorker<'_>) {
        self.left = worker.take();
    }
}

impl SpanColumn {
    /// `None` if the field is not requested.
    ///
    /// # Errors
    /// [`ReportError::Question`] with options that it cannot be combined with.
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        options: &ScriptOptions,
    ) -> Result<Option<Self>, ReportError> {
        let fields = options.fields.apply(Fields::default());
        if options.template.is_some() || !fields.has(Field::Span) {
            return Ok(None);
        }
        let Some(ends) = SpanEnds::new(session, filter) else {
            return Err(QuestionError::NoSpanEnds.into());
        };
        let mut events = 0..session.events().events.len();
        let all = filter.is_simple()
            && events.all(|event| filter.event(event))
            && filter.time() == TimeRange::ALL;
        if options.times != TimeOrigin::Clock && !all {
            return Err(QuestionError::TimesBesideSpans.into());
        }
        let mut column = Self {
            names: Vec::new(),
            ends,
            format: options.format,
            has_parts: session.has_waits(),
            is_alone: LineField::of_hits(options).is_empty()
                && !options.data_fields().has(Field::Args),
        };
        column.add_names();
        Ok(Some(column))
    }

    /// Adds the spans of events that were added to a stream.
    pub(crate) fn add_events(&mut self, session: &TraceSession, filter: &SampleFilter) {
        self.ends.add_events(session, filter);
        self.add_names();
    }

    /// Adds the names of spans that have none yet.
    fn add_names(&mut self) {
        let format = self.format;
        let name = |name: &String| match format {
            Format::Text => escape(name).into_owned(),
            Format::Json => json_string(name),
            format => format.csv().field(name).into_owned(),
        };
        let new = self.ends.names.iter().skip(self.names.len());
        self.names.extend(new.map(name));
    }

    /// Appends the lines of a window.
    pub(crate) fn window<'s>(
        &self,
        session: &'s TraceSession,
        filter: &SampleFilter,
        window: Window<'_>,
        lines: &mut dyn RowWriter<'s>,
        worker: &mut EndsWorker<'s>,
        text: Text,
    ) -> WindowText {
        let mut shown = WindowText::new(text, 0);
        let mut before = window.before;
        for (number, body) in window.bodies().enumerate() {
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                shown.short += 1;
                continue;
            };
            let context = window.context(number);
            worker.resolver.set_context(context);
            let asked = filter.early(target, sample.time)
                && (filter.is_simple() || filter.late(target, &sample, &mut worker.resolver));
            let hit = Hit {
                target,
                sample: &sample,
            };
            let line = asked.then(|| shown.text.len());
            if asked {
                lines.resolver().set_context(context);
                lines.event(hit, before, &mut shown.text);
                before.pass(sample.time);
            }
            self.sample(worker, hit, line, &mut shown);
        }
        shown.end(worker);
        shown
    }

    /// Takes a sample, after whose lines nothing is yet. They start at `line`; `None` if they are not requested.
    pub(crate) fn sample(
        &self,
        worker: &mut EndsWorker<'_>,
        hit: Hit<'_>,
        line: Option<usize>,
        shown: &mut WindowText,
    ) {
        let WindowText { text, holes, .. } = shown;
        let place = line.map(|line| place_of_field(self.format, text, line));
        let asked = line.is_some();
        let ends = self.ends.sample(worker, hit, asked, |end| match end {
            SpanEnd::Matched(span) => {
                if let Some(place) = place {
                    self.put(&span, place, text);
                }
            }
            SpanEnd::Open { is_shown } => holes.push(place.filter(|_| is_shown)),
        });
        if asked && !ends && matches!(self.format, Format::Csv | Format::CsvRaw) {
            text.drop_last(1);
            self.put_no_span(text);
            text.byte(b'\n');
        }
    }

    /// Puts the field into the lines that were just written.
    fn put(&self, span: &ClosedSpan, place: usize, out: &mut Text) {
        let after = out.as_slice().get(place..).unwrap_or_default().to_vec();
        out.drop_last(after.len());
        self.field(span, out);
        out.bytes(&after);
    }

    /// Appends the cells of an event that ends no span.
    fn put_no_span(&self, out: &mut Text) {
        self.put_separator(out);
        out.byte(b',');
        if self.has_parts {
            TimePart::ALL.iter().for_each(|_| out.byte(b','));
        }
    }

    /// Separates the field's cells from those before them.
    fn put_separator(&self, out: &mut Text) {
        if !self.is_alone {
            out.byte(b',');
        }
    }

    /// Appends the field; there is no time if the beginning is not known.
    fn field(&self, &ClosedSpan { span, time }: &ClosedSpan, out: &mut Text) {
        let name = self.names.get(span as usize).map_or("", String::as_str);
        let duration = time.map(|time| time.duration);
        let parts = time.and_then(|time| time.parts.ok());
        match self.format {
            Format::Text => {
                out.fixed(b" span=");
                out.string(name);
                out.byte(b'(');
                match duration {
                    Some(duration) => put_time(duration, out),
                    None => out.fixed(b"<beginning not known>"),
                }
                if let Some(parts) = time.and_then(|time| parts_or_reason(time.parts)) {
                    out.string(&format!(": {parts}"));
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
                if self.has_parts {
                    put_json_parts(parts, out);
                }
            }
            Format::Csv | Format::CsvRaw => {
                self.put_separator(out);
                out.string(name);
                out.byte(b',');
                if let Some(duration) = duration {
                    out.unsigned(duration);
                }
                if self.has_parts {
                    out.byte(b',');
                    put_csv_parts(parts, out);
                    out.drop_last(1);
                }
            }
        }
    }

    /// Fills the holes of a window, one window after the other.
    pub(crate) fn fill(&self, shown: WindowText, open: &mut OpenSpans<()>) -> Text {
        let bytes = shown.text.as_slice();
        let mut text = Text::default();
        let (mut done, mut is_changed) = (0, false);
        for (closed, hole) in self.ends.close(shown.left, open).zip(shown.holes) {
            if let Some(at) = hole {
                text.bytes(bytes.get(done..at).unwrap_or_default());
                (done, is_changed) = (at, true);
                self.field(&closed, &mut text);
            }
        }
        if !is_changed {
            return shown.text;
        }
        text.bytes(bytes.get(done..).unwrap_or_default());
        text
    }
}

/// Where the field belongs in the lines from `line` on: at the end of the first one.
fn place_of_field(format: Format, text: &Text, line: usize) -> usize {
    match format {
        // Callers follow it, a line each.
        Format::Text => {
            let lines = text.as_slice().get(line..).unwrap_or_default();
            let end = lines.iter().position(|byte| *byte == b'\n');
            line + end.unwrap_or(lines.len())
        }
        Format::Csv | Format::CsvRaw => text.len().saturating_sub(1),
        Format::Json => text.len().saturating_sub(2),
    }
}

/// Appends the members of the parts of a span's time, with a comma before each.
pub(crate) fn put_json_parts(parts: Option<TimeParts>, out: &mut Text) {
    for part in TimePart::ALL {
        out.string(&format!(",\"{}\":", part.spec().column));
        match parts {
            Some(parts) => out.unsigned(parts.get(part)),
            _ => out.fixed(b"null"),
        }
    }
}

/// Appends the cells of the parts, with a comma after each.
pub(crate) fn put_csv_parts(parts: Option<TimeParts>, out: &mut Text) {
    for part in TimePart::ALL {
        if let Some(parts) = parts {
            out.unsigned(parts.get(part));
        }
        out.byte(b',');
    }
}

/// Appends a time: `610ns`, `1.234us`, `12.345s`; cut off, not rounded.
pub(crate) fn put_time(ns: u64, out: &mut Text) {
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
    fn the_field_is_in_front_of_the_callers() {
        let place = |format, lines: &str| {
            let mut text = Text::default();
            text.string("an earlier line\n");
            let start = text.len();
            text.string(lines);
            place_of_field(format, &text, start) - start
        };
        assert_eq!(place(Format::Text, "app: a=1\n"), 8);
        assert_eq!(place(Format::Text, "app: a=1\n\t  401136 main\n\n"), 8);
        assert_eq!(place(Format::Csv, "app,\"a\nb\"\n"), 9);
        assert_eq!(place(Format::Json, "{\"a\":1}\n"), 6);
        assert_eq!(place(Format::Csv, "\n"), 0);
    }

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
