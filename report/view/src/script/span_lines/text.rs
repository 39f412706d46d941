//! Lines of text.
//!
//! ```text
//!         postgres  4711 [001]  3302.307456: postgresql:query: 245.310ms query="SELECT 1" rows=1
//! ```
//!
//! The first part is that of the hit which ends the span. Arguments of the end follow those of the begin; one that both have is shown once, or as
//! `end.NAME` where the end has another value.

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{SpanFate, SpanRow};
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::escape::escape;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;
use crate::script::span_lines::arguments::{
    SpanArgument, last_hit, of_events, of_hit, say_the_same,
};
use crate::script::span_lines::line_times::LineTimes;
use crate::script::spans::put_time;
use crate::script::times::{TimeOrigin, WallClock};
use crate::text::buffer::Text;

/// Settings for all lines.
pub(crate) struct SpanText {
    fields: Fields,
    times: TimeOrigin,
    digits: usize,
    pub(crate) clock: Option<WallClock>,
    /// Names of the spans.
    names: Vec<String>,
    arguments: Vec<Vec<SpanArgument>>,
}

impl SpanText {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        fields: Fields,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let tod = fields.has(Field::Tod);
        Ok(Self {
            fields,
            times: options.times,
            digits: if options.nanoseconds { 9 } else { 6 },
            clock: tod.then(|| WallClock::local(session)).transpose()?,
            names: names(pairs),
            arguments: of_events(session, pairs, options),
        })
    }

    /// Appends the line of a span.
    pub(crate) fn line(
        &self,
        session: &TraceSession,
        span: &SpanRow<'_>,
        times: &mut LineTimes<'_>,
        out: &mut Text,
    ) {
        let start = out.len();
        self.head(session, last_hit(span), times, out);
        if self.fields.has(Field::Event) {
            out.string(self.names.get(span.pair).map_or("", String::as_str));
            out.fixed(b": ");
        }
        if self.fields.has(Field::Span) {
            put_duration(span, out);
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

    /// Thread, CPU and time.
    fn head(
        &self,
        session: &TraceSession,
        RowHit { row, .. }: RowHit<'_>,
        times: &mut LineTimes<'_>,
        out: &mut Text,
    ) {
        let has = |field| self.fields.has(field);
        if has(Field::Comm) {
            let name = session.processes().name_or_number(row.comm, row.tid);
            out.right(&name, 16);
            out.byte(b' ');
        }
        match (has(Field::Pid), has(Field::Tid)) {
            (true, true) => out.string(&format!("{:5}/{:<5} ", row.pid, row.tid)),
            (true, false) => out.string(&format!("{:5} ", row.pid)),
            (false, true) => out.string(&format!("{:5} ", row.tid)),
            (false, false) => {}
        }
        if let (true, Some(cpu)) = (has(Field::Cpu), row.cpu) {
            out.string(&format!("[{cpu:03}] "));
        }
        if let Some(of_day) = &mut times.of_day {
            of_day.put(row.time, self.digits, out);
            out.byte(b' ');
        }
        if has(Field::Time) {
            out.since(
                self.times.difference(row.time, times.before),
                5,
                self.digits,
            );
            out.fixed(b": ");
        }
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
pub(crate) fn put_arguments(all: &[Vec<SpanArgument>], span: &SpanRow<'_>, out: &mut Text) {
    let of_begin = of_hit(all, span.begin);
    let mut put = |prefix: &str, argument: &SpanArgument, hit: RowHit<'_>| {
        let Some(value) = hit.values.get(argument.place) else {
            return;
        };
        out.string(prefix);
        out.string(&escape(&argument.name));
        out.byte(b'=');
        out.formed(&argument.form, value);
        out.byte(b' ');
    };
    for argument in of_begin {
        put("", argument, span.begin);
    }
    let Some(end) = span.end else {
        return;
    };
    for argument in of_hit(all, end.hit) {
        let same = of_begin.iter().find(|known| known.name == argument.name);
        let values = (
            same.and_then(|same| span.begin.values.get(same.place)),
            end.hit.values.get(argument.place),
        );
        match values {
            (Some(begun), Some(ended)) if say_the_same(begun, ended) => {}
            (Some(_), _) => put("end.", argument, end.hit),
            (None, _) => put("", argument, end.hit),
        }
    }
}
