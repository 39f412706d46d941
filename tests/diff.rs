//! `usdtrec diff` of recordings of real programs.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::common::{Build, Lab, Postgres, Recorder, run, test};

/// What `diff --format json` says of `a` and `b`.
#[track_caller]
fn diff(lab: &Lab) -> Value {
    let diff = lab
        .usdtrec(["diff", "a", "b", "--format", "json"])
        .success();
    serde_json::from_str(&diff.stdout).expect("JSON")
}

/// The figures of an event or span of one name.
fn figures<'d>(diff: &'d Value, name: &str, figure: &str) -> Vec<&'d Value> {
    let all = diff["figures"].as_array().expect("figures").iter();
    let is_one = |one: &&Value| one["name"] == name && one["figure"] == figure;
    let found: Vec<&Value> = all.filter(is_one).collect();
    assert!(!found.is_empty(), "no {figure} of {name}: {diff}");
    found
}

/// Probes of another build at other addresses are the same probes; what the program does as before has not changed, and what it did not
/// do before is new.
#[test]
fn two_builds() {
    let lab = Lab::privileged();
    let slow = Build {
        options: &["-O0"],
        ..Build::USUAL
    };
    let record = |build: Build, trace: &str, more: &[&str]| {
        let program = build.make(&lab, "requests.c", trace);
        lab.usdtrec(["buildid-cache", "--add", trace]).success();
        let event = format!("sdt_requests:*@{}", program.display());
        let output = lab.file(&format!("{trace}.data"));
        let mut command = lab.command(["record", "-m", "64M", "-e", &event, "-o"]);
        command
            .arg(output)
            .arg("--")
            .arg(&program)
            .args(["40000", "1"])
            .args(more);
        run(command).success().complains(" 0 lost");
    };
    record(slow, "old", &[]);
    record(Build::USUAL, "new", &["log"]);
    std::fs::rename(lab.file("old.data"), lab.file("a")).expect("a trace");
    std::fs::rename(lab.file("new.data"), lab.file("b")).expect("a trace");
    let diff = diff(&lab);
    let left_out = diff["left_out"].as_array().expect("a list").iter();
    let left_out: Vec<_> = left_out
        .map(|one| (one["name"].as_str(), one["argument"].as_str()))
        .collect();
    let requests = ["sdt_requests:request__done", "sdt_requests:request__start"];
    // A thread counts its requests; those of several would be ids where they run in step.
    assert_eq!(
        left_out,
        requests.map(|name| (Some(name), Some("arg1"))),
        "{diff}"
    );
    for (name, shares) in [
        ("request__start", 7),
        ("request__done", 5),
        ("function__entry", 3),
    ] {
        let figures = figures(&diff, &format!("sdt_requests:{name}"), "share");
        assert_eq!(figures.len(), shares);
        for figure in figures {
            let (a, b) = (figure["a"].as_f64(), figure["b"].as_f64());
            assert!(
                (a.expect("a share") - b.expect("a share")).abs() < 1e-3,
                "{figure}"
            );
            assert_ne!(figure["verdict"], "beyond");
        }
    }
    let new = figures(&diff, "sdt_requests:job__begin", "rate");
    assert_eq!((&new[0]["a"], &new[0]["change"]), (&0.into(), &Value::Null));
    let text = lab.usdtrec(["diff", "a", "b"]).success().stdout;
    assert!(text.contains("requests:job__begin"), "{text}");
}

/// An index makes queries faster, and that is said first.
#[test]
fn an_index() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    postgres.client("pgbench", ["-i", "-q", "-s", "1", "-I", "dtg"]);
    let script = postgres.script(
        "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    );
    let script = script.to_str().expect("a path");
    let program = Postgres::program();
    lab.usdtrec(["buildid-cache", "--add", program.to_str().expect("a path")])
        .success();
    let record = |trace: &str, transactions: &str| {
        // Room for all hits, however late they are read.
        let options = ["-a", "-m", "32M", "-o", trace];
        let events = ["-e", "postgresql:query__start,postgresql:query__done"];
        let recorder = Recorder::start(&lab, options.into_iter().chain(events));
        postgres.client("pgbench", ["-n", "-t", transactions, "-f", script]);
        recorder.stop().complains(" 0 lost");
    };
    record("a", "300");
    postgres.client("pgbench", ["-i", "-q", "-I", "p"]);
    record("b", "20000");
    let diff = diff(&lab);
    for name in ["p50", "p90"] {
        let figure = figures(&diff, "postgresql:query", name)[0];
        // On a busy host a part of a trace may have any p90.
        assert!(name == "p90" || figure["verdict"] == "beyond", "{figure}");
        assert!(figure["change"].as_f64() < Some(-0.5), "{figure}");
    }
    for side in ["a", "b"] {
        let report = ["report", "-i", side, "--span", "query", "--format", "json"];
        let report = lab.usdtrec(report).success().stdout;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        for (figure, member) in [("p50", "p50_ns"), ("p99", "p99_ns"), ("max", "max_ns")] {
            let figure = figures(&diff, "postgresql:query", figure)[0];
            assert_eq!(figure[side], report["spans"][0][member], "{side}: {figure}");
        }
    }
    let rate = figures(&diff, "sdt_postgresql:query__start", "rate")[0];
    assert!(rate["change"].as_f64() > Some(2.0), "{rate}");
    let text = lab.usdtrec(["diff", "a", "b"]).success().stdout;
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Beyond noise"));
    let told = |line: &&str| line.starts_with("postgresql:query ") && line.contains("p50");
    assert!(lines.any(|line| told(&line)), "{text}");
}

/// A recording of `spin`: five endpoints, each so much slower.
fn spin(lab: &Lab, trace: &str, more: &str) {
    let program = Build::USUAL.make(lab, "spin.c", "spin");
    let event = format!("sdt_spin:*@{}", program.display());
    let mut command = lab.command(["record", "-q", "-e", &event, "-o", trace, "--"]);
    command.arg(program).args(["1500", "40", more, "5"]);
    run(command).success();
}

/// 60 µs more are found in each endpoint, whatever else the machine does, and said first. A status says so to other programs.
#[test]
fn each_of_five_endpoints() {
    let lab = Lab::privileged();
    spin(&lab, "a", "0");
    spin(&lab, "b", "60");
    let by = ["diff", "a", "b", "--by", "op__start.arg2"];
    let diff = lab.usdtrec([&by[..], &["--format", "json"]].concat());
    let diff: Value = serde_json::from_str(&diff.success().stdout).expect("JSON");
    let figures = figures(&diff, "spin:op", "p50");
    assert_eq!(figures.len(), 1 + 5);
    for figure in figures {
        assert_eq!(figure["verdict"], "beyond", "{figure}");
        let member = |name: &str| figure[name].as_f64().expect(name);
        let (low, high) = (member("change_low"), member("change_high"));
        assert!(
            0.0 < low && low <= member("change") && member("change") <= high,
            "{figure}"
        );
    }
    let text = lab.usdtrec(by).success().stdout;
    assert!(
        text.starts_with("Slower, 99% sure: spin:op p50 +"),
        "{text}"
    );
    assert!(text.contains("; 5 of 5 groups: "), "{text}");

    let fails = |words: &[&str]| lab.usdtrec([&["diff"], words].concat());
    fails(&["a", "b", "--fail-above", "5%"])
        .exits(1)
        .complains("beyond noise by more than 5%");
    fails(&["a", "b", "--fail-above", "100000"]).success();
    fails(&["a", "a", "--fail-above", "0", "--format", "json"]).success();
    fails(&["a", "none", "--fail-above", "5%"])
        .exits(2)
        .complains("none");
    for nonsense in ["-5%", "five", "inf", "nan", ""] {
        fails(&["a", "a", &format!("--fail-above={nonsense}")])
            .exits(2)
            .complains("expected a percentage");
    }
}

/// `--min` is a time, as in other verbs.
#[test]
fn the_least_percentage_has_a_name_of_its_own() {
    let lab = Lab::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    let words = ["diff", demo, demo];
    lab.usdtrec([&words[..], &["--percent-limit", "5%"]].concat())
        .success();
    lab.usdtrec([&words[..], &["--min", "5%"]].concat())
        .exits(2)
        .complains("expected a time");
}

/// A trace of 200 queries, each of a thread of its own; one in four fails, and takes so many milliseconds.
fn queries(lab: &Lab, trace: &str, slow: u64) {
    let mut lines = String::new();
    for at in 0..200_u64 {
        let (took, status) = if at % 4 == 0 { (slow, 500) } else { (1, 200) };
        for (probe, after, argument) in [
            ("start", 0, String::new()),
            ("done", took, format!("\tstatus={status}")),
        ] {
            let (time, tid) = (1_000_000_000_000 + (at * 10 + after) * 1_000_000, 200 + at);
            let data = format!(
                "{time}\t0\tusdt:/bin/x:app:query__{probe}\t100\t{tid}\tworker{argument}\n"
            );
            let line = serde_json::json!({"type": "printf", "data": data});
            let _ = writeln!(lines, "{line}");
        }
    }
    fs::write(lab.file("in.json"), lines).expect("a file");
    lab.usdtrec(["import", "in.json", "-o", trace]).success();
}

/// Spans that only one trace has differ by no percentage that anything could say, and a status says so.
#[test]
fn spans_of_one_trace_are_not_within_a_percentage() {
    let lab = Lab::new();
    queries(&lab, "a", 2);
    queries(&lab, "b", 200);
    let fails = |a: &str, b: &str, more: &[&str]| {
        let words = ["diff", a, b, "--fail-above", "1000%"];
        lab.usdtrec([&words[..], more].concat())
    };
    for (a, b, which) in [("a", "b", "B"), ("b", "a", "A")] {
        let diff = fails(a, b, &["--min", "100ms"]);
        let line = format!("Not compared: app:query: only in {which}: 50 spans\n");
        assert!(diff.stdout.contains(&line), "{}", diff.stdout);
        diff.exits(2)
            .complains("only one of both traces has spans app:query");
    }
    fails("a", "a", &["--min", "100ms"]).success();
}

/// `--filter` with an argument of what ends spans selects them, as of `report --span`.
#[test]
fn spans_are_selected_by_their_ends() {
    let lab = Lab::new();
    queries(&lab, "a", 2);
    queries(&lab, "b", 200);
    for span in [&[][..], &["--span", "query"]] {
        let words = ["diff", "a", "b", "--filter", "status == 500"];
        let json = [&words[..], &["--format", "json"], span].concat();
        let diff = lab.usdtrec(json).success().stdout;
        let diff: Value = serde_json::from_str(&diff).expect("JSON");
        let count = figures(&diff, "app:query", "count")[0];
        assert_eq!((&count["a"], &count["b"]), (&50.into(), &50.into()));
        let median = figures(&diff, "app:query", "p50")[0];
        assert_eq!(median["verdict"], "beyond", "{median}");
    }
}
