//! Lines of a template.

use usdtrec_format::escape::quote;
use usdtrec_format::perf::Sample;
use usdtrec_format::{Missing, Value};

use crate::events::order::before::Before;
use crate::trace::session::Session;
use crate::trace::session::ids::Target;
use crate::trace::session::resolver::Resolver;
use crate::view::script::fields::Field;
use crate::view::script::location::{file_name, symbol_name};
use crate::view::script::template::spec::{Align, Kind, Spec};
use crate::view::script::template::style::{Part, TemplateStyle};
use crate::view::script::times::{Times, TimesOfDay};
use crate::view::text::buffer::Text;
use crate::view::text::form::Form;

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct TemplateLines<'s> {
    style: &'s TemplateStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    resolver: Resolver<'s>,
    /// An argument of a site that is not known.
    unknown: Value,
}

impl<'s> TemplateLines<'s> {
    pub(crate) fn new(session: &'s Session, style: &'s TemplateStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
            unknown: Value::Missing(Missing::Operand("site not known".to_owned())),
        }
    }

    /// Appends a sample's line.
    #[inline]
    pub(crate) fn line(
        &mut self,
        target: Target,
        sample: &Sample<'_>,
        before: Before,
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
                Part::Literal(text) => out.piece(text),
                Part::Field(field, spec) => {
                    self.field(*field, *spec, (target, sample, before), out)
                }
                Part::Since(times, spec) => self.since(*times, *spec, (sample, before), out),
                Part::Argument(place, form, spec) => {
                    argument(form, *spec, self.value(site, *place), out);
                }
                Part::Arguments(names, spec) => {
                    let start = out.len();
                    for (place, (name, form)) in names.iter().enumerate() {
                        out.piece(name);
                        out.formed(form, self.value(site, place));
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
        times: Times,
        spec: Spec,
        (sample, before): (&Sample<'_>, Before),
        out: &mut Text,
    ) {
        let start = out.len();
        let digits = spec.precision.unwrap_or(self.style.digits);
        out.since(times.of(sample.time, before), (0, digits));
        pad_number(start, spec, out);
    }

    #[inline]
    fn field(
        &mut self,
        field: Field,
        spec: Spec,
        (target, sample, before): (Target, &Sample<'_>, Before),
        out: &mut Text,
    ) {
        match field {
            Field::Comm => self.comm(spec, sample, out),
            Field::Tid => signed(sample.tid.into(), spec, out),
            Field::Pid => signed(sample.pid.into(), spec, out),
            Field::Cpu => unsigned(sample.cpu.into(), spec, out),
            Field::Time => self.since(self.style.times, spec, (sample, before), out),
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
            // Worked out for the event, or no part of templates.
            Field::Event | Field::Args | Field::Span => {}
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

/// Appends a text that is harmless already.
pub(crate) fn text(text: &str, spec: Spec, out: &mut Text) {
    let start = out.len();
    let shown = first_chars(text.as_bytes(), spec.precision);
    if spec.kind == Kind::Quoted {
        let mut quoted = String::new();
        quote(&mut quoted, shown);
        out.string(&quoted);
    } else {
        out.bytes(shown);
    }
    pad(start, spec, Align::Left, out);
}

#[inline]
fn unsigned(number: u64, spec: Spec, out: &mut Text) {
    let start = out.len();
    if spec.kind == Kind::Hex {
        out.hex(number);
    } else {
        out.unsigned(number);
    }
    pad_number(start, spec, out);
}

#[inline]
fn signed(number: i64, spec: Spec, out: &mut Text) {
    let start = out.len();
    if number < 0 {
        out.byte(b'-');
    }
    if spec.kind == Kind::Hex {
        out.hex(number.unsigned_abs());
    } else {
        out.unsigned(number.unsigned_abs());
    }
    pad_number(start, spec, out);
}

fn hex(number: u64, spec: Spec, out: &mut Text) {
    let start = out.len();
    out.hex(number);
    pad_number(start, spec, out);
}

/// Appends an argument.
#[inline]
fn argument(form: &Form, spec: Spec, value: &Value, out: &mut Text) {
    let start = out.len();
    match (spec.kind, form, value) {
        (Kind::Hex, _, Value::Unsigned(number)) => return unsigned(*number, spec, out),
        (Kind::Hex, _, Value::Signed(number)) => return signed(*number, spec, out),
        (Kind::Hex, _, Value::String(text)) => return hex(text.address, spec, out),
        (_, Form::Plain, Value::Unsigned(number)) => return unsigned(*number, spec, out),
        (_, Form::Plain, Value::Signed(number)) => return signed(*number, spec, out),
        (_, Form::Plain, Value::Float32(_) | Value::Float64(_)) => {
            float(value, spec.precision, out);
            return pad_number(start, spec, out);
        }
        (kind, form, Value::String(text)) if !matches!(form, Form::Address | Form::Bytes) => {
            let readable = form.readable(value);
            let bytes = readable.as_ref().map_or(&text.bytes[..], String::as_bytes);
            let shown = first_chars(bytes, spec.precision);
            let cut = text.cut && shown.len() == bytes.len();
            if kind == Kind::Quoted {
                out.quoted(shown, cut);
            } else {
                out.unquoted(shown, cut);
            }
        }
        _ => {
            out.formed(form, value);
            if matches!(form, Form::Time(_) | Form::Memory(_))
                && !matches!(value, Value::Missing(_))
            {
                return pad(start, spec, Align::Right, out);
            }
        }
    }
    pad(start, spec, Align::Left, out);
}

fn float(value: &Value, precision: Option<usize>, out: &mut Text) {
    match (precision, value) {
        (Some(digits), Value::Float32(number)) => out.string(&format!("{number:.digits$}")),
        (Some(digits), Value::Float64(number)) => out.string(&format!("{number:.digits$}")),
        _ => out.value(value),
    }
}

/// The first characters of a text; each byte that is no UTF-8 is one.
fn first_chars(text: &[u8], most: Option<usize>) -> &[u8] {
    let Some(mut left) = most.filter(|most| *most < text.len()) else {
        return text;
    };
    let mut end = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return text.get(..end).unwrap_or_default();
            }
            left -= 1;
            end += c.len_utf8();
        }
        let bytes = chunk.invalid().len().min(left);
        left -= bytes;
        end += bytes;
    }
    text.get(..end).unwrap_or_default()
}

/// Fills up with blanks what was appended from `start` on.
#[inline]
fn pad(start: usize, spec: Spec, default: Align, out: &mut Text) {
    if spec.width == 0 {
        return;
    }
    let missing = spec.width.saturating_sub(out.columns(start));
    let before = match spec.align.unwrap_or(default) {
        Align::Left => 0,
        Align::Middle => missing / 2,
        Align::Right => missing,
    };
    out.pad(start, (before, missing - before), b' ');
}

/// Fills up with blanks or zeros the number that was appended from `start` on.
#[inline]
fn pad_number(start: usize, spec: Spec, out: &mut Text) {
    if spec.zeros && spec.align.is_none() {
        let missing = spec.width.saturating_sub(out.columns(start));
        let digits = start + usize::from(out.byte_at(start).is_some_and(|first| *first == b'-'));
        out.pad(digits, (missing, 0), b'0');
    } else {
        pad(start, spec, Align::Right, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use usdtrec_format::StringAt;

    fn shown(spec: &str, form: &Form, value: &Value) -> String {
        let mut out = Text::default();
        out.byte(b'|');
        argument(form, Spec::parse(spec).unwrap(), value, &mut out);
        out.byte(b'|');
        out.into_string()
    }

    #[test]
    fn numbers_stand_right_and_are_filled_up() {
        for (spec, expected) in [
            ("", "|-42|"),
            ("5", "|  -42|"),
            ("<5", "|-42  |"),
            ("^6", "| -42  |"),
            ("06", "|-00042|"),
            ("<06", "|-42   |"),
            ("2", "|-42|"),
            ("x", "|-2a|"),
            ("06x", "|-0002a|"),
            (".1?", "|-42|"),
        ] {
            assert_eq!(shown(spec, &Form::Plain, &Value::Signed(-42)), expected);
        }
        let most = Value::Unsigned(u64::MAX);
        assert_eq!(shown("x", &Form::Address, &most), "|ffffffffffffffff|");
        assert_eq!(shown("20", &Form::Address, &most), "|0xffffffffffffffff  |");
        assert_eq!(
            shown("7", &Form::Time(1000), &Value::Unsigned(312)),
            "|  312us|"
        );
        let float = Value::Float64(2.0 / 3.0);
        assert_eq!(shown("8.3", &Form::Plain, &float), "|   0.667|");
        assert_eq!(shown(".0", &Form::Plain, &Value::Float32(1.5)), "|2|");
        assert_eq!(shown("", &Form::Plain, &Value::Float32(1.5)), "|1.5|");
        assert_eq!(
            shown(".2", &Form::Plain, &Value::Float64(f64::NAN)),
            "|NaN|"
        );
    }

    #[test]
    fn texts_stand_left_and_are_harmless() {
        let text = |bytes: &[u8], cut| {
            Value::String(StringAt {
                address: 0x7f10,
                bytes: bytes.to_vec(),
                cut,
                guessed: false,
            })
        };
        let get = text(b"GET \"\xffx\n\xc3\xa9", true);
        for (spec, expected) in [
            ("", "|GET \"\\xffx\\né…|"),
            ("?", "|\"GET \\\"\\xffx\\né\"…|"),
            (".3", "|GET|"),
            (".7?", "|\"GET \\\"\\xffx\"|"),
            (".8", "|GET \"\\xffx\\n|"),
            (".9", "|GET \"\\xffx\\né…|"),
            (">6.3", "|   GET|"),
            ("05.3", "|GET  |"),
            ("x", "|7f10|"),
        ] {
            assert_eq!(shown(spec, &Form::TextAddress, &get), expected, "{spec}");
        }
        assert_eq!(
            shown("^5.1", &Form::Plain, &text("éa".as_bytes(), false)),
            "|  é  |"
        );
        let missing = Value::Missing(Missing::Register("xmm0"));
        assert_eq!(
            shown("4.1x", &Form::Plain, &missing),
            "|<xmm0 not captured>|"
        );
    }
}
