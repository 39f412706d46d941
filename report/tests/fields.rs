//! `FIELDS.md` names the members and columns that there are, and there are those that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::support::{DONE, HIT, Hit, REQUEST, REQUEST_INLINED, Recorded, Recording};
use serde_json::{Value, json};
use usdtrec_format::Pattern;
use usdtrec_format::schema::Labels;
use usdtrec_report::Format;
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::question::{Question, Scale, SpanQuestion, Subject, ValueOrder};
use usdtrec_report::report::{self, ReportOptions};
use usdtrec_report::script::{self, ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, HintWords, Sources, TraceSession};
use usdtrec_testing::test;

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
    fn of(title: &str) -> Self {
        let document: &'d str = include_str!("../FIELDS.md");
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
struct Met {
    kinds: BTreeSet<&'static str>,
    times: usize,
    parent: String,
}

/// What a question answered.
#[derive(Default)]
struct Answers {
    /// Keys and arguments that were asked for.
    keys: Vec<&'static str>,
    /// The argument of `--value`.
    value: Option<&'static str>,
    lines: Vec<String>,
    headers: Vec<String>,
    objects: BTreeMap<String, usize>,
    members: BTreeMap<String, Met>,
}

impl Answers {
    fn add(&mut self, ask: impl Fn(Format) -> String) {
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
    fn check(&self, title: &str, unmet: &[&str]) {
        let section = Section::of(title);
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
        self.check_columns(title, &section);
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

    fn check_columns(&self, title: &str, section: &Section<'_>) {
        let mut met = BTreeSet::new();
        for header in &self.headers {
            let mut last = 0;
            for column in header.split(',') {
                let script = title == "script" && column.starts_with("arg");
                let name = if script {
                    "NAME".to_owned()
                } else {
                    self.name(column)
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
            assert!(met.contains(*column), "{title}: never a column {column}");
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// A recording whose `request` lacks an argument at one of its sites, and whose `done` has words for its argument.
fn start() -> Recording {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        let [request, done] = &mut info.definitions.as_mut().unwrap().probes[..] else {
            panic!("expected two probes");
        };
        // A register that is not sampled.
        request.sites[1].site.args = "-4@$-5 8@%rdx 2@16(%rsp) 4@-4(%rsp)".to_owned();
        let words = [(5, "late".to_owned())];
        done.arguments[0].labels = Some(Labels::Enum(Arc::new(words.into())));
    });
    recording.comm(0, (100, 100), "server", false);
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap(0, 100, "/opt/app");
    recording
}

/// Two requests that are done.
fn few() -> Recorded {
    let mut recording = start();
    for at in 0..4 {
        recording.hit(Hit {
            id: if at % 2 == 0 { REQUEST } else { DONE },
            time: HIT.time + at * at * 1000,
            ax: 5 + at / 3,
            si: 512 << at,
            ..HIT
        });
    }
    recording.finish()
}

/// Eight seconds with a burst, a pause, and losses.
fn many() -> Recorded {
    let mut recording = start();
    for at in 0..8000_u64 {
        let hits = match at {
            3000..3250 => 5,
            6000..6500 => 0,
            _ => 1,
        };
        for hit in 0..hits {
            recording.hit(Hit {
                id: if at % 4 == 3 {
                    REQUEST_INLINED
                } else {
                    REQUEST
                },
                time: HIT.time + at * 1_000_000 + hit,
                ax: at,
                si: at % 3,
                ..HIT
            });
        }
        if at % 2 == 0 {
            recording.hit(Hit {
                id: DONE,
                time: HIT.time + at * 1_000_000 + 1000 + at,
                ax: 5 + at % 3,
                ..HIT
            });
        }
        if at % 500 == 0 {
            recording.flush();
        }
    }
    recording.finish_with(&[(1, DONE, 17), (0, REQUEST, 0)])
}

/// A recording with a byte changed in one of its blocks.
fn damaged() -> Recorded {
    let recorded = many();
    let session = recorded.session();
    let blocks = session.trace().blocks().iter();
    let block = blocks.max_by_key(|block| block.samples).unwrap();
    let middle = (block.offset + block.len / 2) as usize;
    let mut bytes = std::fs::read(&recorded.path).unwrap();
    bytes[middle] ^= 0xff;
    std::fs::write(&recorded.path, bytes).unwrap();
    recorded
}

/// A recording without events: a process runs another version of a file, and no process maps the other file.
fn silent() -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        let definitions = info.definitions.as_mut().unwrap();
        let mut gone = definitions.files[0].clone();
        gone.path = "/opt/gone".into();
        definitions.files.push(gone);
        let [request, done] = &mut definitions.probes[..] else {
            panic!("expected two probes");
        };
        request.needs = Some("SWITCH=1".to_owned());
        request.filter = Some("arg1 > 5".to_owned());
        done.file = 1;
    });
    recording.mmap(0, 100, "/opt/app (deleted)");
    recording.finish()
}

fn done() -> EventSelection {
    EventSelection {
        events: vec![Pattern::parse("sdt_app:done").unwrap()],
        ..EventSelection::default()
    }
}

fn ask(
    recorded: &Recorded,
    selection: &EventSelection,
    question: &Question,
    format: Format,
) -> String {
    let options = ReportOptions {
        question: question.clone(),
        format,
        ..ReportOptions::default()
    };
    let mut out = Vec::new();
    report::print(&recorded.session(), selection, &options, &mut out).unwrap();
    named(out, recorded, "trace.data")
}

/// An answer with another name for the file.
fn named(out: Vec<u8>, recorded: &Recorded, name: &str) -> String {
    let text = String::from_utf8(out).unwrap();
    text.replace(recorded.path.to_str().unwrap(), name)
}

fn questions(title: &str, keys: &[&'static str], questions: &[Question], unmet: &[&str]) {
    let mut answers = Answers {
        keys: keys.to_vec(),
        value: Some("arg2"),
        ..Answers::default()
    };
    for recorded in [few(), many()] {
        for question in questions {
            answers.add(|format| ask(&recorded, &EventSelection::default(), question, format));
        }
    }
    answers.check(title, unmet);
}

/// A recording of stock perf with copies of stacks, whose program is not here.
fn stacks(format: Format) -> String {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/traces");
    let path = traces.join("stock-7.2-regs-stack.data");
    let session = TraceSession::open(&path, &Sources::default()).unwrap();
    let options = ScriptOptions {
        fields: "+sym,+symoff,+dso".parse().unwrap(),
        format,
        ..ScriptOptions::default()
    };
    let mut out = Vec::new();
    script::print(&session, &EventSelection::default(), &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn of_script() {
    let mut answers = Answers::default();
    for (fields, times) in [
        ("+span", TimeOrigin::Clock),
        ("+sym,+symoff,+dso,+period,+tod", TimeOrigin::First),
        ("+cpu", TimeOrigin::Previous),
    ] {
        for recorded in [few(), many()] {
            answers.add(|format| {
                let options = ScriptOptions {
                    fields: fields.parse().unwrap(),
                    times,
                    format,
                    ..ScriptOptions::default()
                };
                recorded.script(&EventSelection::default(), &options).0
            });
        }
    }
    answers.add(stacks);
    let unmet = [
        "demangled",
        "demangled.NAME",
        "symoff",
        "stack[].symoff",
        "cut",
        "cut.NAME",
        "bytes",
        "bytes.NAME",
        "numbers",
        "numbers.NAME",
    ];
    answers.check("script", &unmet);
}

#[test]
fn of_report() {
    let mut answers = Answers::default();
    let question = Question::Summary;
    answers.add(|format| ask(&few(), &done(), &question, format));
    for recorded in [many(), damaged(), start().finish(), silent()] {
        answers.add(|format| ask(&recorded, &EventSelection::default(), &question, format));
    }
    // No argument of these recordings is a text.
    let texts = [
        "count",
        "different",
        "exact",
        "cut",
        "values",
        "values[].value",
        "values[].count",
        "values[].demangled",
    ];
    let texts = texts.map(|name| format!("probes[].arguments[].texts.{name}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    answers.check("report", &texts);
}

#[test]
fn of_groups() {
    let top = |sort: &[&str], value: Option<&str>, top| Question::Groups {
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
        value: value.map(str::to_owned),
        top,
        order: ValueOrder::default(),
    };
    let groups = |sort: &[&str], value| top(sort, value, None);
    let keys = ["comm", "pid", "tid", "cpu", "dso", "sym", "arg2", "arg4"];
    questions(
        "report --sort",
        &keys,
        &[
            groups(&["comm", "arg2"], None),
            groups(&["comm"], Some("arg2")),
            top(&["arg2"], Some("arg2"), Some(1)),
            groups(&["event", "pid", "tid", "cpu", "dso", "sym", "arg4"], None),
        ],
        &["demangled", "demangled.KEY"],
    );
}

#[test]
fn why_there_are_no_events_is_data_without_words_of_a_program() {
    let (recorded, mut out) = (silent(), Vec::new());
    let options = ReportOptions {
        format: Format::Json,
        hints: HintWords(|hint| format!("OPTION {hint:?}")),
        ..ReportOptions::default()
    };
    let selection = EventSelection::default();
    report::print(&recorded.session(), &selection, &options, &mut out).unwrap();
    let report: Value = serde_json::from_slice(&out).unwrap();
    let expected = json!([
        {"kind": "other_version", "file": "/opt/app", "pids": [100]},
        {"kind": "unmapped", "file": "/opt/gone"},
        {"kind": "unmet", "events": ["sdt_app:request"], "needs": "SWITCH=1", "filter": "arg1 > 5"},
    ]);
    assert_eq!(report["no_events"], expected);
    let reasons = report["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 3);
    assert!(
        !report["reasons"].to_string().contains("OPTION"),
        "{report}"
    );
}

fn span(by: &[&str]) -> SpanQuestion {
    SpanQuestion {
        span: "request".to_owned(),
        by: by.iter().map(|&key| key.to_owned()).collect(),
        top: Some(1),
        ..SpanQuestion::default()
    }
}

#[test]
fn of_spans() {
    let by_argument = SpanQuestion {
        key: vec!["arg1".to_owned()],
        ..span(&[])
    };
    let never = SpanQuestion {
        min: 1 << 60,
        ..span(&[])
    };
    let asked = [
        by_argument,
        never,
        span(&[]),
        span(&["cpu", "arg2", "arg4"]),
    ];
    questions(
        "report --span",
        &["cpu", "arg2", "arg4"],
        &asked.map(Question::Spans),
        &[
            "spans[].groups[].demangled",
            "spans[].groups[].demangled.KEY",
            "spans[].slowest[].demangled",
            "spans[].slowest[].demangled.NAME",
        ],
    );
}

#[test]
fn of_histograms() {
    let of = |scale| Question::Histogram {
        of: Subject::Argument("arg1".to_owned()),
        scale,
    };
    let of_spans = Question::Histogram {
        of: Subject::Span(span(&[])),
        scale: Scale::Auto,
    };
    let asked = [
        of(Scale::Value),
        of(Scale::Log2),
        of(Scale::Linear),
        of_spans,
    ];
    questions("report --hist", &[], &asked, &["buckets[].demangled"]);
}

#[test]
fn of_heatmaps() {
    let of = [
        Subject::Argument("arg2".to_owned()),
        Subject::Span(span(&[])),
    ];
    questions("report --heatmap", &[], &of.map(Question::Heatmap), &[]);
}

#[test]
fn of_rates() {
    let rate = |sort: &[&str]| Question::Rate {
        interval: 1_000_000_000,
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
    };
    let asked = [rate(&[]), rate(&["comm", "arg2"]), rate(&["event"])];
    // These are too few for others.
    questions(
        "report --rate",
        &["comm", "arg2"],
        &asked,
        &["others", "doubtful", "demangled", "demangled.KEY"],
    );
}

#[test]
fn of_diff() {
    let mut answers = Answers::default();
    let compare =
        |(a, b): (&Recorded, &Recorded), selection: &EventSelection, by: &[&str], format| {
            let options = DiffOptions {
                by: by.iter().map(|&key| key.to_owned()).collect(),
                format,
                ..DiffOptions::default()
            };
            let mut out = Vec::new();
            let open = |recorded: &Recorded| {
                TraceSession::open(&recorded.path, &Sources::default()).unwrap()
            };
            diff::print(&open(a), &open(b), selection, &options, &mut out).unwrap();
            let out = named(out, a, "before.data");
            named(out.into_bytes(), b, "after.data")
        };
    let cases = [
        (few(), few(), done(), &[][..]),
        (many(), many(), EventSelection::default(), &["arg3"]),
        (many(), few(), EventSelection::default(), &["arg3"]),
        (many(), start().finish(), EventSelection::default(), &[]),
    ];
    for (a, b, selection, by) in &cases {
        answers.add(|format| compare((a, b), selection, by, format));
    }
    answers.check("diff", &["figures[].demangled"]);
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
