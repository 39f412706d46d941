//! Comma-separated values, one line a span, with a header line; `report/FIELDS.md` describes the columns.

use std::collections::BTreeSet;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::fields::{BEGIN, END, FATE, FIELDS, Field, FieldSpec, Fields, SPAN, SPAN_NS};
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;
use crate::script::span_lines::arguments::{SpanArgument, of_events, of_hit};
use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// The fields of a hit before its arguments.
const OF_HITS: Fields =
    Fields::OF_SPANS.without(Fields::from_slice(&[Field::Tod, Field::Args, Field::Span]));

/// Settings for all lines.
pub(crate) struct SpanCsv {
    csv: Csv,
    fields: Fields,
    names: Vec<String>,
    events: Vec<String>,
    arguments: Vec<Vec<SpanArgument>>,
    /// Names of the arguments of begins, and of those of ends.
    columns: [Vec<String>; 2],
}

impl SpanCsv {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        fields: Fields,
        options: &ScriptOptions,
    ) -> Self {
        let csv = options.format.csv();
        let arguments = of_events(session, pairs, options);
        let columns = |side: fn(&Pair) -> &Vec<usize>| {
            let mut names: Vec<String> = Vec::new();
            let events = pairs.iter().flat_map(side);
            for argument in events.filter_map(|event| arguments.get(*event)).flatten() {
                if !names.contains(&argument.name) {
                    names.push(argument.name.clone());
                }
            }
            names
        };
        Self {
            csv,
            fields: fields.with(Fields::from_slice(&[Field::Pid])),
            names: pairs
                .iter()
                .map(|pair| csv.field(&pair.name).into_owned())
                .collect(),
            events: session
                .events()
                .events
                .iter()
                .map(|event| csv.field(&event.name).into_owned())
                .collect(),
            columns: [columns(|pair| &pair.starts), columns(|pair| &pair.dones)],
            arguments,
        }
    }

    /// Takes the columns of a header that was printed before events were added. Returns the arguments for which it has no column.
    pub(crate) fn keep_columns(&mut self, printed: &Self) -> BTreeSet<String> {
        let own = std::mem::replace(&mut self.columns, printed.columns.clone());
        let own = own.into_iter().zip(&self.columns);
        let hidden = own.flat_map(|(own, printed)| {
            let hidden = own.into_iter().filter(|name| !printed.contains(name));
            hidden.collect::<Vec<_>>()
        });
        match self.fields.has(Field::Args) {
            true => hidden.collect(),
            false => BTreeSet::new(),
        }
    }

    /// The fields of a hit that have columns before its arguments, in their order.
    fn fields_of_hits(&self) -> impl Iterator<Item = &'static FieldSpec> {
        let fields = self.fields;
        FIELDS
            .iter()
            .filter(move |spec| OF_HITS.has(spec.field) && fields.has(spec.field))
    }

    /// The header line.
    pub(crate) fn header(&self) -> String {
        let mut columns: Vec<String> = [SPAN, SPAN_NS, FATE].map(str::to_owned).to_vec();
        for (side, arguments) in [BEGIN, END].iter().zip(&self.columns) {
            let fixed = self.fields_of_hits();
            columns.extend(fixed.map(|spec| format!("{side}.{}", spec.column)));
            if self.fields.has(Field::Args) {
                let names = arguments.iter().map(|name| format!("{side}.args.{name}"));
                columns.extend(names.map(|name| self.csv.field(&name).into_owned()));
            }
        }
        if self.fields.has(Field::Args) {
            columns.push("missing".to_owned());
        }
        columns.join(",") + "\n"
    }

    /// Appends the line of a span.
    pub(crate) fn line(&self, session: &TraceSession, span: &SpanRow<'_>, out: &mut Text) {
        let mut reasons = String::new();
        out.string(self.names.get(span.pair).map_or("", String::as_str));
        out.byte(b',');
        if let Some(end) = span.end {
            out.unsigned(end.duration);
        }
        out.byte(b',');
        out.string(span.fate.word());
        let sides = [Some(span.begin), span.end.map(|end| end.hit)];
        for ((side, hit), columns) in [BEGIN, END].iter().zip(sides).zip(&self.columns) {
            for spec in self.fields_of_hits() {
                out.byte(b',');
                hit.iter()
                    .for_each(|hit| self.field(session, spec.field, *hit, out));
            }
            if self.fields.has(Field::Args) {
                for name in columns {
                    out.byte(b',');
                    if let Some(hit) = hit {
                        self.argument([side, name], hit, &mut reasons, out);
                    }
                }
            }
        }
        if self.fields.has(Field::Args) {
            out.byte(b',');
            out.string(&self.csv.field(&reasons));
        }
        out.byte(b'\n');
    }

    fn field(&self, session: &TraceSession, field: Field, hit: RowHit<'_>, out: &mut Text) {
        let row = hit.row;
        match field {
            Field::Time => out.unsigned(row.time),
            Field::Cpu => row.cpu.iter().for_each(|cpu| out.unsigned((*cpu).into())),
            Field::Pid => out.signed(row.pid.into()),
            Field::Tid => out.signed(row.tid.into()),
            Field::Comm => {
                let name = session.processes().name_or_number(row.comm, row.tid);
                out.string(&self.csv.field(&name));
            }
            _ => out.string(self.events.get(row.event).map_or("", String::as_str)),
        }
    }

    /// Appends an argument of a side, by their names, if the event has it, and why it is missing if it is.
    fn argument(
        &self,
        [side, name]: [&str; 2],
        hit: RowHit<'_>,
        reasons: &mut String,
        out: &mut Text,
    ) {
        let mut arguments = of_hit(&self.arguments, hit).iter();
        let Some(argument) = arguments.find(|argument| argument.name == name) else {
            return;
        };
        let Some(value) = hit.values.get(argument.place) else {
            return;
        };
        out.formed_csv(self.csv, &argument.form, value);
        if let Some(reason) = argument.form.missing(value) {
            let separator = if reasons.is_empty() { "" } else { "; " };
            reasons.push_str(&format!("{separator}{side}.{name}: {reason}"));
        }
    }
}
