//! `--to parquet`: DuckDB and pyarrow read what `script` and `report` print.

use std::fs;
use std::process::Command;

use super::nasty::Nasty;
use super::readers::READERS;
use crate::common::{Finished, Lab, need_parquet, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// Exports a trace as a dataset and compares it with what other verbs print.
#[track_caller]
pub(super) fn compare(lab: &Lab, trace: &str, spans: &[&str]) -> Finished {
    need_parquet();
    let print = |name: &str, args: &[&str]| {
        let printed = lab.usdtrec(args).success().stdout;
        fs::write(lab.file(name), printed).expect("a file");
        name.to_owned()
    };
    let dataset = ["export", "-i", trace, "--to", "parquet", "-o", "dataset"];
    lab.usdtrec(dataset).success();
    let script = ["script", "-i", trace, "--format", "json"];
    let timed = lab.usdtrec([&script[..], &["-F", "+tod"]].concat());
    match timed.status.success() {
        true => fs::write(lab.file("script"), timed.stdout).expect("a file"),
        // It does not have the time of day.
        false => drop(print("script", &script)),
    }
    let reports = spans.iter().map(|span| {
        let report = ["report", "-i", trace, "--span", span, "--format", "json"];
        print(&format!("report-{span}"), &report)
    });
    let reports: Vec<String> = reports.collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/parquet.py");
    let mut command = Command::new(READERS.program("python"));
    command.current_dir(lab.path()).arg(script);
    command.args(["dataset", "script"]).args(reports);
    let finished = run(command).success();
    fs::remove_dir_all(lab.file("dataset")).expect("a folder");
    finished
}

#[test]
fn readers_find_every_value_and_span() {
    let nasty = Nasty::record(600, &["-g"]);
    let compared = compare(&nasty.lab, "trace", &["work", "job"]);
    assert!(compared.stdout.contains(" 0 differ"), "{}", compared.stdout);
}

#[test]
fn traces_of_all_recorders_are_read() {
    let lab = Lab::new();
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/traces");
    for name in [
        "chunks.data",
        "chunks-killed.data",
        "mixed.data",
        "stock-6.1.data",
        "stock-7.2-regs-stack.data",
        "tracepoint.data",
        "tracepoint-regs.data",
    ] {
        compare(&lab, &format!("{traces}/{name}"), &[]);
    }
    compare(&lab, DEMO, &[]);
}

#[test]
fn a_dataset_is_complete_or_not_there() {
    need_parquet();
    let lab = Lab::new();
    let export = |options: &[&str]| {
        let head = ["export", "-i", DEMO, "--to", "parquet"];
        lab.usdtrec([&head, options].concat())
    };
    export(&["-o", "-"]).exits(2).complains("writes a folder");
    export(&["-o", "out", "--span", "nowhere"])
        .exits(1)
        .complains("nowhere");
    export(&["-o", "out", "--drop", "nothing"])
        .exits(1)
        .complains("\"nothing\"");
    export(&["-o", "missing/out"])
        .exits(1)
        .complains("missing/out");
    fs::create_dir(lab.file("there")).expect("a folder");
    export(&["-o", "there"]).exits(1).complains("exists");
    fs::write(lab.file("short"), "key").expect("a file");
    let short = ["-o", "out", "--hash", "arg1", "--hash-key", "short"];
    export(&short)
        .exits(2)
        .complains("expected 16 to 4096 bytes, found 3");
    let entries = fs::read_dir(lab.path()).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["short", "there"]);
}

#[test]
fn arguments_are_left_out_or_hashed() {
    need_parquet();
    let nasty = Nasty::record(3, &[]);
    let lab = &nasty.lab;
    fs::write(lab.file("key"), "a key of 16 byte").expect("a file");
    let redacted = [
        "--hash",
        "text",
        "--hash",
        "low",
        "--hash-key",
        "key",
        "--drop",
        "high",
    ];
    let dataset = ["export", "-i", "trace", "--to", "parquet", "-o", "dataset"];
    lab.usdtrec([&dataset[..], &redacted].concat()).success();
    let check = r"
import glob, hashlib, hmac, json
import pyarrow.parquet as parquet
def read(table, name):
    file, = glob.glob(f'dataset/table={table}/**/{name}/*.parquet', recursive=True)
    return parquet.ParquetFile(file).read().to_pylist()
def pseudonym(data):
    return hmac.new(b'a key of 16 byte', data, hashlib.sha256).hexdigest()[:32]
rows = read('events', 'probe=value')
assert len(rows) == 7
assert rows[1]['text'] == pseudonym(b'not \xff\xfe UTF-8'), rows[1]
assert rows[0]['low'] == pseudonym(b'-9223372036854775808'), rows[0]
assert [row['text__missing'] for row in rows[4:6]] == ['missing', 'missing'], rows
spans = read('spans', 'span=work')
assert pseudonym(b'ordinary') in [row['begin_text'] for row in spans], spans
files = glob.glob('dataset/**/*.parquet', recursive=True)
data = b''.join(open(file, 'rb').read() for file in files)
for file in files:
    for row in parquet.ParquetFile(file).read().to_pylist():
        assert 'high' not in row and 'ordinary' not in repr(row), row
";
    let mut command = Command::new(READERS.program("python"));
    command.current_dir(lab.path()).args(["-c", check]);
    run(command).success();
}

#[test]
fn sql_answers_what_report_does() {
    /// Its characters mean themselves.
    const NAME: &str = "data *?[set]{x,y}";
    need_parquet();
    let nasty = Nasty::record(600, &["-g"]);
    let lab = &nasty.lab;
    let dataset = ["export", "-i", "trace", "--to", "parquet", "-o", NAME];
    lab.usdtrec(dataset).success();
    let sql = |dataset: &str| lab.usdtrec(["sql", "--engine", "duckdb", dataset]);
    fs::write(lab.file("sql"), sql(NAME).success().stdout).expect("a file");
    let report = [
        "report", "-i", "trace", "--span", "work", "--format", "json",
    ];
    fs::write(lab.file("report"), lab.usdtrec(report).success().stdout).expect("a file");
    let script = ["script", "-i", "trace", "-F", "cgroup", "--format", "json"];
    fs::write(lab.file("script"), lab.usdtrec(script).success().stdout).expect("a file");
    let check = r"
import json
import duckdb
statements = [text.strip() for text in open('sql').read().split(';\n')]
answers = []
for statement in filter(None, statements):
    answer = duckdb.sql(statement)
    if 'CREATE OR REPLACE VIEW' not in statement:
        answers.append(answer.fetchall())
stats, builds, groups, losses, days, stacks, hits = answers
assert {row[1] for row in groups} == {json.loads(line)['cgroup'] for line in open('script')}, groups
expected, = json.load(open('report'))['spans']
columns = 'spans, self_ns, min_ns, max_ns, p50_ns, p99_ns, open_spans, unfinished_spans, lost'
work, = duckdb.sql(f'FROM span_stats SELECT {columns} WHERE span = $$work$$').fetchall()
names = ['count', 'self_ns', 'min_ns', 'max_ns', 'p50_ns', 'p99_ns', 'open', 'unfinished', 'lost']
found = dict(zip(names, work))
for name in names:
    # Percentiles of the report that are not exact are within 1/256.
    exact = expected['exact'] or not name.startswith('p')
    differ = abs(found[name] - expected[name])
    assert differ == 0 or not exact and differ * 256 <= found[name], (name, found, expected)
exported, = duckdb.sql('SELECT sum(exported) FROM losses').fetchall()
assert sum(row[-1] for row in hits) == exported[0], hits
assert any(';main;' in line or line.endswith(';start') for line, *_ in stacks), stacks
low, = duckdb.sql('SELECT min(low), max(high) FROM event_nasty_value').fetchall()
assert low == (-2**63, 2**64 - 1), low
texts, = duckdb.sql('SELECT count(begin_text) FROM span_nasty_work').fetchall()
assert texts[0] > 600
";
    let mut command = Command::new(READERS.program("python"));
    command.current_dir(lab.path()).args(["-c", check]);
    run(command).success();
    sql("nowhere").exits(1).complains("nowhere");
    let command = ["sql", "--engine", "spark", "s3://bucket/it's"];
    let printed = lab.usdtrec(command).success().stdout;
    assert!(
        printed.contains("s3://bucket/it") && !printed.contains("it's/"),
        "{printed}"
    );
}
