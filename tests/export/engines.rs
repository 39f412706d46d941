//! `sql`: engines that read the datasets of several hosts and days answer what `report` prints of each trace.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use usdtrec_testing::is_deep;

use super::nasty::Nasty;
use super::readers::{Packages, READERS, SPARK};
use crate::common::{Lab, need_parquet, need_tool, run, test};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/engines.py");
const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fleet");
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
const SECOND: &str = "second-host";
/// The days of the recordings: the test must not depend on when it runs.
const DAYS: [&str; 2] = ["2100-01-01", "2100-01-02"];

/// A trace in the dataset.
struct Recording<'a> {
    trace: &'a str,
    host: &'a str,
    day: &'a str,
}

/// A dataset, and the answers of `report`.
struct Fleet {
    lab: Lab,
    expected: Vec<Json>,
}

impl Fleet {
    /// Two hosts that were recorded on one day, the second also on the next one, and the trace that is a part of the program.
    fn record() -> Self {
        let lab = Nasty::record(600, &["-g"]).lab;
        record_second(&lab);
        let mut fleet = Self {
            lab,
            expected: Vec::new(),
        };
        let first = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let [day, next] = DAYS;
        let recording = |trace, host, day| Recording { trace, host, day };
        fleet.add(&recording("trace", first.trim(), day));
        fleet.add(&recording("second", SECOND, day));
        fleet.add(&recording("second", SECOND, next));
        let demo = recording(DEMO, "vm", "2026-11-20");
        fleet.export(&demo);
        fleet.expect_spans(&demo, &["request", "gc"]);
        fleet
    }

    /// Adds a recording to the dataset, as if it were of its day.
    fn export(&self, recording: &Recording<'_>) {
        let export = [
            "export",
            "-i",
            recording.trace,
            "--to",
            "parquet",
            "-o",
            "part",
        ];
        self.lab.usdtrec(export).success();
        // The rows are the same on every day: the folder has its name.
        let script = r#"
            for folder in $(find part -name 'date=*'); do
                to="dataset/$(dirname "${folder#part/}")/date=$1"
                mkdir -p "$(dirname "$to")" && cp -r "$folder" "$to"
            done && rm -r part"#;
        let copy = ["-ec", script, "sh", recording.day];
        run(self.lab.at_home(Path::new("sh"), copy)).success();
    }

    /// Adds a recording of the program, with the answers about its spans and arguments.
    fn add(&mut self, recording: &Recording<'_>) {
        self.export(recording);
        self.expect_spans(recording, &["work", "job"]);
        let by = ["report", "--span", "work", "--by", "text"];
        let groups = self.ask(recording, &by)["spans"][0].take();
        self.expected
            .push(json!({"by": [recording.host, recording.day, groups]}));
        for (event, argument) in [
            ("sdt_nasty:work__done", "status"),
            ("sdt_nasty:work__start", "key"),
        ] {
            let sums = [
                "report", "-e", event, "--sort", "event", "--value", argument,
            ];
            let sums = self.ask(recording, &sums);
            self.expected
                .push(json!({"arguments": [recording.host, recording.day, sums]}));
        }
    }

    fn ask(&self, recording: &Recording<'_>, report: &[&str]) -> Json {
        let tail = ["-i", recording.trace, "--format", "json"];
        let answer = self.lab.usdtrec([report, &tail].concat()).success();
        serde_json::from_str(&answer.stdout).expect("JSON")
    }

    fn expect_spans(&mut self, recording: &Recording<'_>, names: &[&str]) {
        for name in names {
            let answer = self.ask(recording, &["report", "--span", name])["spans"][0].take();
            self.expected
                .push(json!({"spans": [recording.host, recording.day, answer]}));
        }
    }

    /// Compares what an engine answers; `more` are further arguments of the script.
    #[track_caller]
    fn compare(&self, packages: &Packages, engine: &str, more: &[&str]) {
        let sql = ["sql", "--engine", engine, "dataset"];
        let sql = self.lab.usdtrec(sql).success().stdout;
        fs::write(self.lab.file("questions.sql"), sql).expect("a file");
        let lines = self.expected.iter().map(|line| format!("{line}\n"));
        fs::write(self.lab.file("expected"), lines.collect::<String>()).expect("a file");
        let arguments = [SCRIPT, engine, "questions.sql", "expected"];
        let python = packages.program("python");
        let compared = self.lab.at_home(&python, [&arguments, more].concat());
        let compared = run(compared).success().stdout;
        assert!(compared.contains(" 0 differ"), "{compared}");
    }
}

/// Records the program on a host with another name.
fn record_second(lab: &Lab) {
    need_tool("unshare");
    let script = r#"echo "$1" >/proc/sys/kernel/hostname && shift && exec "$@""#;
    let program = lab.file("nasty");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_nasty:*@{program}");
    let mut command = lab.at_home(Path::new("unshare"), ["--uts", "sh", "-c", script, "sh"]);
    command.args([SECOND, env!("CARGO_BIN_EXE_usdtrec"), "record", "-g"]);
    command.args(["--schema", "nasty.toml", "--strlen", "4096", "-o", "second"]);
    command.args(["-e", &event, "--", program, "99"]);
    run(command).success().complains(" 0 lost");
}

/// A command with the binary under test and programs of packages in PATH.
fn with_programs(mut command: Command, packages: &Packages) -> Command {
    let ours = Path::new(env!("CARGO_BIN_EXE_usdtrec")).parent();
    let mut folders = vec![ours.expect("a folder").to_path_buf(), packages.folder()];
    let usual = env::var_os("PATH").unwrap_or_default();
    folders.extend(env::split_paths(&usual));
    command.env("PATH", env::join_paths(folders).expect("a path"));
    command
}

#[test]
fn engines_answer_what_report_does() {
    need_parquet();
    let fleet = Fleet::record();
    fleet.compare(&READERS, "duckdb", &[]);
    let script = format!("{FLEET}/duckdb_report.sh");
    let report = fleet.lab.at_home(Path::new("sh"), [&*script, "dataset"]);
    let report = run(with_programs(report, &READERS)).success().stdout;
    for word in ["p99_ns", SECOND, "spans_before", "stack_line", "work__done"] {
        assert!(report.contains(word), "{word}: {report}");
    }
    // Its package takes minutes to install.
    if is_deep() {
        compare_spark(&fleet);
    }
}

/// Spark, and the job for Spark.
fn compare_spark(fleet: &Fleet) {
    need_tool("java");
    let sql = ["sql", "--engine", "spark", "dataset"];
    let sql = fleet.lab.usdtrec(sql).success().stdout;
    fs::write(fleet.lab.file("job.sql"), sql).expect("a file");
    let job = format!("{FLEET}/spark_report.py");
    let few = ["--conf", "spark.sql.shuffle.partitions=2"];
    let submit = [
        "--master", "local[2]", few[0], few[1], &job, "job.sql", "stats",
    ];
    let submit = fleet.lab.at_home(Path::new("spark-submit"), submit);
    let report = run(with_programs(submit, &SPARK)).success().stdout;
    for word in ["p99_ns", SECOND, "spans_before", "stack_line", "work__done"] {
        assert!(report.contains(word), "{word}: {report}");
    }
    fleet.compare(&SPARK, "spark", &["stats"]);
}
