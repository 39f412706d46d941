//! The values of keys in tables, JSON and CSV.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Map, Value as Json, json};
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_analysis::stats::keys::value::KeyValue;
use usdtrec_format::escape::{escape, escape_bytes};
use usdtrec_format::{StringAt, Value};
use usdtrec_trace::form::Form;

use crate::frames::{cut_text, frame_text, stack_json, stack_line};
use crate::stack_cut::reason;
use crate::text::buffer::Text;
use crate::text::quoted::Csv;
use crate::text::scalar::json_of_decimal;

/// The empty string in text.
pub(crate) const EMPTY: &str = "\"\"";

/// A key's value in a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The value in text.
    pub(crate) text: String,
    /// The value in JSON and CSV.
    datum: Datum,
    /// Whether the text is the readable form of a mangled name, which the datum is.
    pub(crate) is_demangled: bool,
    /// Whether it is a string of which only the beginning is known: the text ends in `…`.
    pub(crate) is_cut: bool,
    /// Why the stack is cut that the value is of.
    pub(crate) stack_cut: Option<String>,
}

/// The value in JSON and CSV.
#[derive(Clone, Debug, PartialEq)]
enum Datum {
    /// Shown as in text.
    Same,
    /// Another text.
    Text(String),
    /// Shown as in text in CSV, and as this in JSON.
    Json(Json),
    /// A number, in decimal.
    Number(String),
    /// No value: the event does not have the argument, or it is missing.
    None,
}

/// The cells of the values of keys.
pub fn cells<'k>(
    keys: impl IntoIterator<Item = &'k Key>,
    values: &[KeyValue],
    human: bool,
) -> Vec<Cell> {
    let both = keys.into_iter().zip(values);
    both.map(|(key, value)| Cell::new(key, value, human))
        .collect()
}

/// An object with the values of keys by their names: a number, a string, `null` where there is no value, or of `stack` a list of frames, the innermost first;
/// and with the readable names of those that are mangled names, which strings are cut, and why the stack is.
pub(crate) fn json<'n>(names: impl Iterator<Item = &'n str>, cells: Vec<Cell>) -> Json {
    let mut values = Map::new();
    let mut demangled = Map::new();
    let mut cut = Map::new();
    let mut stack_cut = None;
    for (name, cell) in names.zip(cells) {
        values.insert(name.to_owned(), cell.json());
        if cell.is_demangled {
            demangled.insert(name.to_owned(), cell.text.into());
        }
        if cell.is_cut {
            cut.insert(name.to_owned(), true.into());
        }
        stack_cut = cell.stack_cut.or(stack_cut);
    }
    if !demangled.is_empty() {
        values.insert("demangled".to_owned(), demangled.into());
    }
    if !cut.is_empty() {
        values.insert("cut".to_owned(), cut.into());
    }
    values.extend(stack_cut.map(|cut| ("stack_cut".to_owned(), cut.into())));
    values.into()
}

/// An object without values: that of groups that are not shown.
pub(crate) fn json_without_values<'n>(names: impl Iterator<Item = &'n str>) -> Json {
    names.map(|name| (name, Json::Null)).collect()
}

/// The values of a group in a line.
pub fn group_name(cells: &[Cell]) -> String {
    let cells: Vec<&str> = cells.iter().map(|cell| cell.text.trim_start()).collect();
    cells.join("  ")
}

impl Cell {
    /// The cell of a key's value. With `human`, text has numbers with a unit as times and sizes.
    pub(crate) fn new(key: &Key, value: &KeyValue, human: bool) -> Self {
        match value {
            KeyValue::Name(name) => Self::text(name),
            KeyValue::Process { pid, comm } => {
                let text = format!("{pid:7}:{comm}");
                Self::text(&text).with(Datum::Number(pid.to_string()))
            }
            KeyValue::Integer(number) => Self::number(number.to_string()),
            KeyValue::Cpu(cpu) => {
                Self::text(&format!("{cpu:03}")).with(Datum::Number(cpu.to_string()))
            }
            KeyValue::File(None) => Self::text("[unknown]").with(Datum::None),
            KeyValue::File(Some(path)) => {
                let base = path.file_name().unwrap_or(path.as_os_str());
                let whole = escape_bytes(path.as_os_str().as_bytes()).into_owned();
                Self::text(&base.to_string_lossy()).with(Datum::Text(whole))
            }
            KeyValue::Function(name) => {
                Self::text(&format!("[.] {name}")).with(Datum::Text(name.to_string()))
            }
            KeyValue::Address(address) => Self::text(&format!("[.] {address:#018x}"))
                .with(Datum::Text(format!("{address:#x}"))),
            KeyValue::Source(None) => Self::text("[unknown]").with(Datum::None),
            KeyValue::Source(Some(source)) => {
                let base = source.file.rsplit('/').next().unwrap_or(&source.file);
                let whole = escape(&source.to_string()).into_owned();
                Self::text(&format!("{base}:{}", source.line)).with(Datum::Text(whole))
            }
            KeyValue::Stack(stack) => Self {
                stack_cut: stack.cut.as_ref().map(|cut| reason(cut).into_owned()),
                ..Self::text(&stack_line(stack)).with(Datum::Json(stack_json(stack)))
            },
            KeyValue::Frame(frame) => Self::text(&format!("[.] {}", frame_text(frame)))
                .with(Datum::Text(frame_text(frame))),
            KeyValue::Cut(cut) => Self {
                stack_cut: Some(reason(cut).into_owned()),
                ..Self::text(&cut_text(cut)).with(Datum::None)
            },
            KeyValue::OtherStacks => Self::text("<other stacks>").with(Datum::None),
            KeyValue::Argument(value) if human => argument(value, key.form()),
            KeyValue::Argument(value) => argument(value, &key.form().clone().plain()),
            KeyValue::Missing(reason) => Self::without_value(&format!("<{reason}>")),
            KeyValue::Null => Self::without_value("NULL"),
            KeyValue::OtherStrings => Self::without_value("<other strings>"),
            KeyValue::Absent => Self::without_value("-"),
        }
    }

    /// Whether the text is a plain number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(&self.datum, Datum::Number(number) if *number == self.text)
    }

    /// The value in JSON.
    pub(crate) fn json(&self) -> Json {
        match &self.datum {
            Datum::Same => json!(self.text),
            Datum::Text(text) => json!(text),
            Datum::Json(value) => value.clone(),
            Datum::Number(number) => json_of_decimal(number),
            Datum::None => Json::Null,
        }
    }

    /// The value as a field of CSV; nothing for no value.
    pub(crate) fn csv(&self, csv: Csv) -> Cow<'_, str> {
        match &self.datum {
            Datum::Json(Json::String(string)) if string.is_empty() => csv.string(""),
            Datum::Same | Datum::Json(_) => csv.string(&self.text),
            Datum::Text(text) | Datum::Number(text) => csv.string(text),
            Datum::None => Cow::Borrowed(""),
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        let shown = escape(text);
        let datum = if shown == text {
            Datum::Same
        } else {
            Datum::Json(text.into())
        };
        Self {
            text: shown.into_owned(),
            datum,
            is_demangled: false,
            is_cut: false,
            stack_cut: None,
        }
    }

    /// A string that is shorter than what JSON and CSV have.
    pub(crate) fn shortened(text: &str, whole: &str) -> Self {
        Self::text(text).with(Datum::Text(whole.to_owned()))
    }

    pub(crate) fn number(text: String) -> Self {
        Self {
            datum: Datum::Number(text.clone()),
            text,
            is_demangled: false,
            is_cut: false,
            stack_cut: None,
        }
    }

    /// A text in place of a value.
    pub(crate) fn without_value(text: &str) -> Self {
        Self::text(text).with(Datum::None)
    }

    /// The value of an argument, which is there.
    pub(crate) fn argument(value: &Value, form: &Form) -> Self {
        argument(value, form)
    }

    fn with(self, datum: Datum) -> Self {
        Self { datum, ..self }
    }
}

fn argument(value: &Value, form: &Form) -> Cell {
    if let Value::String(string) = value {
        return captured(string, value, form);
    }
    let mut number = Text::default();
    number.value(value);
    let number = number.into_string();
    if *form == Form::Plain {
        return Cell::number(number);
    }
    let mut shown = Text::default();
    shown.formed(form, value);
    let shown = shown.into_string();
    match (form, value) {
        (Form::Time(_) | Form::Memory(_), _) => Cell::text(&shown).with(Datum::Number(number)),
        (form, Value::Unsigned(address)) if form.is_string() => address_cell(&shown, *address),
        (form, Value::Signed(address)) if form.is_string() => {
            address_cell(&shown, address.cast_unsigned())
        }
        _ if shown == number => Cell::number(number),
        _ => Cell::text(&shown).with(json_of(form, value)),
    }
}

fn address_cell(shown: &str, address: u64) -> Cell {
    Cell::text(shown).with(Datum::Text(format!("{address:#x}")))
}

/// A captured string, or bytes.
fn captured(string: &StringAt, value: &Value, form: &Form) -> Cell {
    let (bytes, is_cut) = (&*string.bytes, string.cut);
    let readable = form.readable(value);
    let is_demangled = readable.is_some();
    let mut text = match form {
        Form::Bytes => {
            let mut shown = Text::default();
            shown.formed(form, value);
            shown.into_string()
        }
        _ if let Some(name) = readable => escape(&name).into_owned(),
        _ if bytes.is_empty() => EMPTY.to_owned(),
        _ => escape_bytes(bytes).into_owned(),
    };
    // Bytes have the mark within their brackets.
    if is_cut && *form != Form::Bytes {
        text.push('…');
    }
    Cell {
        text,
        datum: json_of(form, value),
        is_demangled,
        is_cut,
        stack_cut: None,
    }
}

/// A value as `script` has it in JSON.
fn json_of(form: &Form, value: &Value) -> Datum {
    let mut json = Text::default();
    json.formed_json(form, value);
    serde_json::from_str(&json.into_string()).map_or(Datum::Same, Datum::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_string_is_shown_as_one() {
        let cell = |form, cut| {
            let value = Value::String(StringAt {
                cut,
                ..StringAt::of_bytes(b"GET".to_vec())
            });
            argument(&value, &form)
        };
        let cut = cell(Form::Plain, true);
        assert_eq!([&*cut.text, &cut.csv(Csv::Raw)], ["GET…"; 2]);
        let row = json(["url"].into_iter(), vec![cut]);
        assert_eq!(row, json!({"url": "GET", "cut": {"url": true}}));
        let row = json(["url"].into_iter(), vec![cell(Form::Plain, false)]);
        assert_eq!(row, json!({"url": "GET"}));
        assert_eq!(cell(Form::Bytes, true).text, "[47 45 54 …]");
    }
}
