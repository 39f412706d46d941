//! What `FIELDS.md` names, held against what questions answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use usdtrec_report::Format;

/// Objects whose members are arguments.
const BY_ARGUMENT: [&str; 4] = ["args", "missing", "cut", "bytes"];

/// A section of the document.
struct Section<'d> {
    text: &'d str,
    /// Of each member, by its path: its type, and when it is null or absent.
    members: BTreeMap<&'d str, (&'d str, &'d str)>,
    columns: Vec<&'d str>,
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

impl<'d> Section<'d> {
    fn with_title(title: &str) -> Self {
        let document: &'d str = include_str!("../../FIELDS.md");
        let start = format!("\n## {title}\n");
        let (_, text) = document.split_once(&start).unwrap();
        let text = text.split("\n## ").next().unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let mut members = BTreeMap::new();
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for path in quoted(cells[1]) {
                let twice = members.insert(path, (cells[2], cells[3]));
                assert_eq!(twice, None, "{title}: {path} is there twice");
            }
        }
        let columns = text
            .lines()
            .find_map(|line| line.strip_prefix("CSV columns: "));
        Self {
            text,
            members,
            columns: quoted(columns.unwrap()).collect(),
        }
    }
}

/// What was met of a member.
#[derive(Default)]
pub(super) struct Met {
    kinds: BTreeSet<&'static str>,
    times: usize,
    parent: String,
}

/// What a question answered.
#[derive(Default)]
pub(super) struct Answers {
    /// Keys and arguments that were asked for.
    pub(super) keys: Vec<&'static str>,
    /// Whether columns of arguments have the names of two events before them.
    pub(super) names_both: bool,
    /// The argument of `--value`.
    pub(super) value: Option<&'static str>,
    pub(super) lines: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) objects: BTreeMap<String, usize>,
    pub(super) members: BTreeMap<String, Met>,
}

impl Answers {
    pub(super) fn add(&mut self, ask: impl Fn(Format) -> String) {
        for line in ask(Format::Json).lines() {
            self.walk("", &serde_json::from_str(line).unwrap());
            self.lines.push(line.to_owned());
        }
        let csv = ask(Format::Csv);
        let header = csv.lines().next().unwrap();
        let columns = |line: &str| line.split(',').count();
        // Without quotes there are no commas in fields.
        let plain = csv.lines().filter(|line| !line.contains('"'));
        for line in plain {
            assert_eq!(columns(line), columns(header), "{header}\n{line}");
        }
        self.headers.push(header.to_owned());
    }

    /// A name as the document has it.
    fn name(&self, name: &str) -> String {
        if self.keys.contains(&name) {
            return "KEY".to_owned();
        }
        let figure = self.value.and_then(|value| name.strip_prefix(value));
        match figure.and_then(|figure| figure.strip_prefix('.')) {
            Some(figure) => format!("ARG.{figure}"),
            None => name.to_owned(),
        }
    }

    fn walk(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(object) => {
                *self.objects.entry(path.to_owned()).or_default() += 1;
                let last = path.rsplit('.').next().unwrap();
                for (name, value) in object {
                    let name = if BY_ARGUMENT.contains(&last) {
                        "NAME".to_owned()
                    } else {
                        self.name(name)
                    };
                    let dot = if path.is_empty() { "" } else { "." };
                    let member = format!("{path}{dot}{name}");
                    let met = self.members.entry(member.clone()).or_default();
                    met.kinds.insert(kind(value));
                    met.times += 1;
                    met.parent = path.to_owned();
                    self.walk(&member, value);
                }
            }
            Value::Array(list) => {
                let objects = list.iter().filter(|value| value.is_object());
                objects.for_each(|value| self.walk(&format!("{path}[]"), value));
            }
            _ => {}
        }
    }

    /// Compares with the document, which may name members that these recordings have not.
    pub(super) fn check(&self, title: &str, unmet: &[&str]) {
        let section = Section::with_title(title);
        for (path, met) in &self.members {
            let documented = section.members.get(&**path);
            let (kinds, when) = documented.unwrap_or_else(|| panic!("{title}: no {path}"));
            for kind in &met.kinds {
                let known = match *kind {
                    "null" => when.contains("null"),
                    "integer" => kinds.contains("integer") || kinds.contains("number"),
                    kind => kinds.contains(kind),
                };
                let any = *kinds == "any" && *kind != "null";
                assert!(known || any, "{title}: {path} is {kind}");
            }
            let always = met.times >= self.objects[&met.parent];
            assert!(
                always || when.contains("absent") || path.ends_with("NAME"),
                "{title}: {path} is not always there"
            );
        }
        for path in section.members.keys() {
            let met = self.members.contains_key(*path);
            assert_ne!(met, unmet.contains(path), "{title}: {path}");
        }
        self.check_columns(title, &section, unmet);
        let (_, examples) = section.text.split_once("```json\n").unwrap();
        let (examples, _) = examples.split_once("```").unwrap();
        let lines: Vec<&str> = self.lines.iter().take(10).map(String::as_str).collect();
        let lines = lines.join("\n");
        for example in examples.lines() {
            let example = without_offset(example);
            assert!(
                self.lines
                    .iter()
                    .any(|line| without_offset(line) == example),
                "{title}: {example} is none of\n{lines}"
            );
        }
    }

    fn check_columns(&self, title: &str, section: &Section<'_>, unmet: &[&str]) {
        let mut met = BTreeSet::new();
        for header in &self.headers {
            let mut last = 0;
            for column in header.split(',') {
                let script = title == "script" && column.starts_with("arg");
                let of_side = column.split_once(".args.").filter(|_| self.names_both);
                let name = match of_side {
                    _ if script => "NAME".to_owned(),
                    Some((side, _)) => format!("{side}.args.NAME"),
                    None => self.name(column),
                };
                let place = section.columns.iter().position(|known| *known == name);
                let place = place.unwrap_or_else(|| panic!("{title}: no column {column}"));
                // As a key, the event has another place.
                assert!(
                    place >= last || name == "event",
                    "{title}: {column} in {header}"
                );
                if name != "event" {
                    last = place;
                }
                met.insert(name);
            }
        }
        for column in &section.columns {
            let is_met = met.contains(*column) || unmet.contains(column);
            assert!(is_met, "{title}: never a column {column}");
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// A line without the places in the file, which are others where the sizes of types or of what is stored before are.
fn without_offset(line: &str) -> String {
    let mut parts = line.split("\"offset\":");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}
