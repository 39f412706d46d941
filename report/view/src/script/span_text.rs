//! Spans as lines of text.
//!
//! ```text
//!         postgres  4711 [001]  3302.307456: postgresql:query: 245.310ms query="SELECT 1" rows=1
//! ```
//!
//! After the duration is in brackets what it was spent on, if that was recorded. The first part is that of the hit which ends the span. Arguments of the end follow those of the begin; one that both have is shown once, or as
//! `end.NAME` where the end has another value.

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{SpanFate, SpanRow};
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::Value;
use usdtrec_format::escape::escape;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::session::TraceSession;

use crate::numbers::parts_or_reason;
use crate::script::arguments::LineArgument;
use crate::script::options::ScriptOptions;
use crate::script::spans::put_time;
use crate::script::times::{TextTimes, TimesOfDay};
use crate::text::buffer::Text;

/// Settings for all lines.
#[derive(Debug)]
pub(crate) struct SpanText {
    fields: Fields,
    times: TextTimes,
    /// Names of the spans.
    names: Vec<String>,
    arguments: Vec<Vec<LineArgument>>,
}

impl SpanText {
    pub(crate) fn new(session: &TraceSession, pairs: &[Pair], options: &ScriptOptions) -> Self {
        Self {
            fields: options.fields_of_spans(),
            times: options.text_times(),
            names: names(pairs),
            arguments: options.fields.arguments.of_events(session),
        }
    }

    /// Appends the line of a span.
    pub(crate) fn line(
        &self,
        session: &TraceSession,
        span: &SpanRow<'_>,
        before: PreviousTimes,
        times_of_day: &mut Option<TimesOfDay<'_>>,
        out: &mut Text,
    ) {
        let start = out.len();
        let row = span.last().row;
        let name = session.processes().name_or_number(row.comm, row.tid);
        put_thread(self.fields, 16, &name, [row.pid, row.tid], out);
        if let (true, Some(cpu)) = (self.fields.has(Field::Cpu), row.cpu) {
            out.string(&format!("[{cpu:03}] "));
        }
        self.times
            .put(self.fields, row.time, before, times_of_day, out);
        if self.fields.has(Field::Event) {
            out.string(self.names.get(span.pair).map_or("", String::as_str));
            out.fixed(b": ");
        }
        if self.fields.has(Field::Span) {
            put_duration(span, out);
            if let Some(parts) = parts_or_reason(span.parts()) {
                out.string(&format!(" ({parts})"));
            }
            out.byte(b' ');
        }
        if self.fields.has(Field::Args) {
            put_arguments(&self.arguments, span, out);
        }
        if out.len() > start {
            // The blank after the last field.
            out.drop_last(1);
        }
        out.byte(b'\n');
    }
}

/// Appends name, process and thread, with a blank after each.
pub(crate) fn put_thread(
    fields: Fields,
    width: usize,
    name: &str,
    [pid, tid]: [i32; 2],
    out: &mut Text,
) {
    if fields.has(Field::Comm) {
        out.right(name, width);
        out.byte(b' ');
    }
    match (fields.has(Field::Pid), fields.has(Field::Tid)) {
        (true, true) => out.string(&format!("{pid:5}/{tid:<5} ")),
        (true, false) => out.string(&format!("{pid:5} ")),
        (false, true) => out.string(&format!("{tid:5} ")),
        (false, false) => {}
    }
}

/// Names of spans, as text has them.
pub(crate) fn names(pairs: &[Pair]) -> Vec<String> {
    let names = pairs.iter().map(|pair| escape(&pair.name).into_owned());
    names.collect()
}

/// Appends how long a span lasted.
pub(crate) fn put_duration(span: &SpanRow<'_>, out: &mut Text) {
    match (span.end, span.fate) {
        (Some(end), _) => put_time(end.duration, out),
        (None, SpanFate::Open) => out.fixed(b"<open>"),
        (None, SpanFate::Paused) => out.fixed(b"<paused>"),
        (None, _) => out.fixed(b"<unfinished>"),
    }
}

/// Appends the arguments of the begin, and those of the end that say something else, each with a blank after it.
pub(crate) fn put_arguments(all: &[Vec<LineArgument>], span: &SpanRow<'_>, out: &mut Text) {
    let of_hit = |hit: RowHit<'_>| all.get(hit.row.event).map_or(&[][..], Vec::as_slice);
    let of_begin = of_hit(span.begin);
    for argument in of_begin {
        argument.put("", span.begin.values.get(argument.place), out);
    }
    let Some(end) = span.end else {
        return;
    };
    for argument in of_hit(end.hit) {
        let same = of_begin.iter().find(|known| known.name == argument.name);
        let begun = same.and_then(|same| span.begin.values.get(same.place));
        let ended = end.hit.values.get(argument.place);
        match (begun, ended) {
            (Some(begun), Some(ended)) if say_the_same(begun, ended) => {}
            (Some(_), _) => argument.put("end.", ended, out),
            (None, _) => argument.put("", ended, out),
        }
    }
}

/// Whether two values say the same: strings do, wherever they are.
fn say_the_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            one.bytes == other.bytes && one.cut == other.cut
        }
        (Value::Unsigned(one), Value::Signed(other))
        | (Value::Signed(other), Value::Unsigned(one)) => u64::try_from(*other) == Ok(*one),
        (one, other) => one == other,
    }
}
