//! Lines of a template.

use usdtrec_format::perf::Sample;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::fields::{Field, FieldValues};
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;
use usdtrec_trace::symbols::known_inlining::FoundInlining;

use crate::script::arguments::of_unknown_site;
use crate::script::location::{file_name, source_text, symbol_name};
use crate::script::template::layout::{argument, hex, pad, pad_number, signed, text, unsigned};
use crate::script::template::spec::{Align, Spec};
use crate::script::template::style::{LinePart, TemplateStyle};
use crate::script::times::{TimeOrigin, TimesOfDay};
use crate::text::buffer::Text;

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct TemplateLines<'s> {
    style: &'s TemplateStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    pub(crate) resolver: Resolver<'s>,
    /// An argument of a site that is not known.
    unknown: Value,
}

impl<'s> TemplateLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s TemplateStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
            unknown: of_unknown_site(),
        }
    }

    /// Appends a sample's line.
    #[inline]
    pub(crate) fn line(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let style = self.style;
        let Some(event) = style.events.get(target.event as usize) else {
            return;
        };
        let mut site = None;
        if event.has_arguments {
            site = self.resolver.session().site_of(target, sample);
            if let Some(site) = site {
                self.resolver.values(site, sample);
            }
        }
        for part in &event.parts {
            match part {
                LinePart::Literal(text) => out.piece(text),
                LinePart::Field(field, spec) => {
                    let hit = Hit { target, sample };
                    self.field(*field, *spec, hit, before, out);
                }
                LinePart::Since(times, spec) => self.since(*times, *spec, sample.time, before, out),
                LinePart::Argument(place, form, spec) => {
                    argument(form, *spec, self.value(site, *place), out);
                }
                LinePart::Arguments(names, spec) => {
                    let start = out.len();
                    for (place, (name, form)) in names.iter().enumerate() {
                        let value = self.value(site, place);
                        if *value == Value::Missing(Missing::Absent) {
                            continue;
                        }
                        out.piece(name);
                        out.formed(form, value);
                    }
                    pad(start, *spec, Align::Left, out);
                }
            }
        }
    }

    #[inline]
    fn value(&self, site: Option<usize>, place: usize) -> &Value {
        let values = site.map(|site| self.resolver.decoded(site));
        values
            .and_then(|values| values.get(place))
            .unwrap_or(&self.unknown)
    }

    fn since(
        &self,
        times: TimeOrigin,
        spec: Spec,
        time: u64,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let start = out.len();
        let digits = spec.precision.unwrap_or(self.style.digits);
        out.since(times.difference(time, before), 0, digits);
        pad_number(start, spec, out);
    }

    #[inline]
    fn field(
        &mut self,
        field: Field,
        spec: Spec,
        Hit { target, sample }: Hit<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        match field {
            Field::Comm => self.comm(spec, sample, out),
            Field::Tid => signed(sample.tid.into(), spec, out),
            Field::Pid => signed(sample.pid.into(), spec, out),
            Field::Cpu => unsigned(sample.cpu.into(), spec, out),
            Field::Time => self.since(self.style.times, spec, sample.time, before, out),
            Field::Tod => {
                let start = out.len();
                let digits = spec.precision.unwrap_or(self.style.digits);
                if let Some(times_of_day) = &mut self.times_of_day {
                    times_of_day.put(sample.time, digits, out);
                }
                pad(start, spec, Align::Left, out);
            }
            Field::Period => {
                let weight = self.resolver.session().weight(target, sample);
                unsigned(weight, spec, out);
            }
            Field::Ip => hex(sample.ip, spec, out),
            Field::Sym | Field::Symoff | Field::Dso => self.place(field, spec, sample, out),
            Field::Srcline => {
                let (_, found) = self.resolver.inlining_of_hit(sample);
                let source = found.and_then(FoundInlining::innermost);
                text(&source.map(source_text).unwrap_or_default(), spec, out);
            }
            // Others are worked out for the event, or no part of templates.
            field => {
                if let FieldValues::Process(field) = field.spec().values {
                    match self.resolver.process_value(field, sample) {
                        Ok(ProcessValue::Number(number)) => unsigned(number, spec, out),
                        Ok(found) => text(found.escaped().unwrap_or_default(), spec, out),
                        Err(_) => text("", spec, out),
                    }
                }
            }
        }
    }

    fn comm(&mut self, spec: Spec, sample: &Sample<'_>, out: &mut Text) {
        let processes = self.resolver.session().processes();
        let name = self.resolver.name(sample.tid, sample.time);
        text(&processes.name_or_number(name, sample.tid), spec, out);
    }

    fn place(&mut self, field: Field, spec: Spec, sample: &Sample<'_>, out: &mut Text) {
        let session = self.resolver.session();
        let place = self.resolver.place(sample);
        match (field, &place.symbol) {
            (Field::Symoff, Some(symbol)) => hex(symbol.offset, spec, out),
            (Field::Dso, _) => text(&file_name(session, place), spec, out),
            _ => text(&symbol_name(place), spec, out),
        }
    }
}
