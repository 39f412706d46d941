//! One JSON object a line; `report/FIELDS.md` describes its members.

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::process::names::EscapedName;
use usdtrec_trace::session::TraceSession;

use crate::json_arguments::{JsonArgument, put_arguments};
use crate::script::options::ScriptOptions;
use crate::script::span_lines::arguments::of_events;
use crate::text::buffer::{Piece, Text};
use crate::text::quoted::json_string;

/// Settings for all lines.
pub(crate) struct SpanJson {
    fields: Fields,
    /// Names of the spans as JSON strings.
    names: Vec<String>,
    /// Names of the events as JSON strings.
    events: Vec<String>,
    arguments: Vec<Vec<JsonArgument>>,
}

impl SpanJson {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        fields: Fields,
        options: &ScriptOptions,
    ) -> Self {
        let arguments = of_events(session, pairs, options);
        let json = |argument: crate::script::span_lines::arguments::SpanArgument| JsonArgument {
            place: argument.place,
            name: Piece::new((json_string(&argument.name) + ":").as_bytes()),
            form: argument.form,
        };
        let arguments = arguments.into_iter();
        Self {
            // Others have pids, too.
            fields: fields.with(Fields::from_slice(&[Field::Pid])),
            names: pairs.iter().map(|pair| json_string(&pair.name)).collect(),
            events: session
                .events()
                .events
                .iter()
                .map(|event| json_string(&event.name))
                .collect(),
            arguments: arguments
                .map(|of_event| of_event.into_iter().map(json).collect())
                .collect(),
        }
    }

    /// Appends the line of a span.
    pub(crate) fn line(&self, session: &TraceSession, span: &SpanRow<'_>, out: &mut Text) {
        out.fixed(b"{\"span\":");
        out.string(self.names.get(span.pair).map_or("null", String::as_str));
        out.fixed(b",\"span_ns\":");
        match span.end {
            Some(end) => out.unsigned(end.duration),
            None => out.fixed(b"null"),
        }
        out.fixed(b",\"fate\":\"");
        out.string(span.fate.word());
        out.fixed(b"\",\"begin\":");
        self.hit(session, span.begin, out);
        out.fixed(b",\"end\":");
        match span.end {
            Some(end) => self.hit(session, end.hit, out),
            None => out.fixed(b"null"),
        }
        out.fixed(b"}\n");
    }

    fn hit(&self, session: &TraceSession, hit: RowHit<'_>, out: &mut Text) {
        let RowHit { row, values, .. } = hit;
        let has = |field| self.fields.has(field);
        let start = out.len();
        if has(Field::Time) {
            out.fixed(b",\"time_ns\":");
            out.unsigned(row.time);
        }
        if has(Field::Cpu) {
            out.fixed(b",\"cpu\":");
            match row.cpu {
                Some(cpu) => out.unsigned(cpu.into()),
                None => out.fixed(b"null"),
            }
        }
        for (field, key, number) in [
            (Field::Pid, &b",\"pid\":"[..], row.pid),
            (Field::Tid, b",\"tid\":", row.tid),
        ] {
            if has(field) {
                out.bytes(key);
                out.signed(number.into());
            }
        }
        if has(Field::Comm) {
            out.fixed(b",\"comm\":");
            let name = row.comm.and_then(|name| session.processes().name(name));
            match name.map(EscapedName::unescaped) {
                Some(name) => out.json_string(name),
                None => out.string(&format!("\":{}\"", row.tid)),
            }
        }
        if has(Field::Event) {
            out.fixed(b",\"event\":");
            out.string(self.events.get(row.event).map_or("null", String::as_str));
        }
        if has(Field::Args) {
            out.byte(b',');
            let arguments = self.arguments.get(row.event).map_or(&[][..], Vec::as_slice);
            put_arguments(arguments, |at| values.get(at), out);
        }
        // In place of the first comma.
        match out.byte_at(start) {
            Some(comma) => *comma = b'{',
            None => out.byte(b'{'),
        }
        out.byte(b'}');
    }
}
