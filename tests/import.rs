//! Traces of the output of bpftrace.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Lab, need_tool, run, test};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

/// The lines of `script --format json`.
#[track_caller]
fn script(lab: &Lab, trace: &Path) -> Vec<Value> {
    let trace = trace.to_str().expect("a path");
    let script = lab.usdtrec(["script", "--format", "json", "-i", trace]);
    let lines = script.success().stdout;
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    lines.lines().map(parse).collect()
}

#[track_caller]
fn import(lab: &Lab, lines: &str) -> Vec<Value> {
    fs::write(lab.file("in.json"), lines).expect("a file");
    lab.usdtrec(["import", "in.json", "-o", "out.data"])
        .success();
    script(lab, &lab.file("out.data"))
}

/// An event as a `printf` of bpftrace: the values that the event has.
fn line(event: &Value) -> String {
    let text = |member: &str| event[member].as_str().expect("a text").to_owned();
    let mut line = String::new();
    for member in ["time_ns", "cpu"] {
        let _ = write!(line, "{}\t", event[member]);
    }
    let _ = write!(
        line,
        "{}\t{}\t{}\t{}",
        text("event"),
        event["pid"],
        event["tid"],
        text("comm")
    );
    for (name, value) in event["args"].as_object().expect("arguments") {
        let _ = match value {
            Value::Null => Ok(()),
            Value::String(string) => write!(line, "\t{name}:s={string}"),
            Value::Number(number) if number.is_f64() => write!(line, "\t{name}:f={number}"),
            other => write!(line, "\t{name}={other}"),
        };
    }
    line.push('\n');
    serde_json::json!({"type": "printf", "data": line}).to_string()
}

/// What the round trip must keep of an event.
fn kept(event: &Value) -> String {
    let args = event["args"].as_object().expect("arguments").iter();
    let args: Vec<_> = args.filter(|(_, value)| !value.is_null()).collect();
    let members = ["time_ns", "cpu", "pid", "tid", "comm", "event"];
    format!("{:?} {args:?}", members.map(|member| &event[member]))
}

fn round_trip(trace: &Path) {
    let lab = Lab::new();
    let events = script(&lab, trace);
    assert!(!events.is_empty());
    let lines: Vec<String> = events.iter().map(line).collect();
    let again = import(&lab, &lines.join("\n"));
    let sorted = |events: &[Value]| {
        let mut kept: Vec<String> = events.iter().map(kept).collect();
        kept.sort();
        kept
    };
    assert_eq!(sorted(&again), sorted(&events));
}

#[test]
fn all_values_of_a_trace_come_back() {
    round_trip(&testdata("demo.data"));
}

/// The order of lines does not matter, also of many.
#[test]
fn lines_need_not_be_in_order() {
    let lab = Lab::new();
    let count = 60_000;
    let text = "x".repeat(50);
    let lines: Vec<String> = (0..count)
        .map(|at| {
            let time = 1 + (at * 7919) % count;
            format!(r#"{{"type": "printf", "data": "{time}\t0\tkprobe:x\t1\t1\ta\tq={text}\n"}}"#)
        })
        .collect();
    let events = import(&lab, &lines.join("\n"));
    let times: Vec<u64> = events
        .iter()
        .filter_map(|event| event["time_ns"].as_u64())
        .collect();
    assert_eq!(times, (1..=count).collect::<Vec<u64>>());
}

/// Output of the real program beside what the traced program itself printed.
#[test]
fn output_of_bpftrace() {
    let lab = Lab::new();
    let lines = fs::read_to_string(testdata("bpftrace/ticker.json")).expect("a file");
    let events = import(&lab, &lines);
    let imported = |name: &str, argument: &str| -> Vec<String> {
        let event = format!("sdt_ticker:{name}");
        let events = events.iter().filter(|known| known["event"] == *event);
        let shown = |event: &Value| match name {
            "tick" => {
                assert_eq!(event["args"]["text"], "ticker text");
                format!("{} {}", event["args"][argument], event["args"]["tid"])
            }
            _ => event["args"][argument].to_string(),
        };
        events.map(shown).collect()
    };
    let printed = fs::read_to_string(testdata("bpftrace/ticker.txt")).expect("a file");
    let expected = |name: &str, words: usize| -> Vec<String> {
        let own = printed
            .lines()
            .filter_map(|line| line.strip_prefix("fire "));
        let own = own.filter_map(|line| line.strip_prefix(name));
        own.map(|rest| {
            rest.split_whitespace()
                .take(words)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
    };
    assert_eq!(imported("tick", "counter"), expected("tick ", 2));
    assert_eq!(imported("guarded", "n"), expected("guarded ", 1));
    let worker = events.iter().filter(|event| event["comm"] == "worker");
    assert_eq!(worker.count(), 2);
}

#[test]
fn stock_perf_prints_them() {
    need_tool("perf");
    let lab = Lab::new();
    let lines = fs::read_to_string(testdata("bpftrace/ticker.json")).expect("a file");
    import(&lab, &lines);
    let mut perf = Command::new("perf");
    perf.args(["script", "-i"]).arg(lab.file("out.data"));
    let shown = run(perf).success().stdout;
    assert_eq!(shown.matches("sdt_ticker:tick").count(), 8, "{shown}");
    assert!(shown.contains("ticker text"), "{shown}");
}

#[test]
fn reports_and_exports_read_it() {
    let lab = Lab::new();
    let lines = fs::read_to_string(testdata("bpftrace/ticker.json")).expect("a file");
    import(&lab, &lines);
    let report = lab.usdtrec(["report", "--format", "json", "-i", "out.data"]);
    let report: Value = serde_json::from_str(&report.success().stdout).expect("JSON");
    assert_eq!(report["events"], 10);
    assert_eq!(report["engine"], "import");
    assert_eq!(report["start"], Value::Null);
    let words = [
        "export",
        "--to",
        "perfetto",
        "-i",
        "out.data",
        "-o",
        "out.pftrace",
    ];
    lab.usdtrec(words).success();
    lab.usdtrec(["script", "-F", "+tod", "-i", "out.data"])
        .exits(1);
}

#[test]
fn bad_lines_are_counted() {
    let lab = Lab::new();
    let good = r#"{"type": "printf", "data": "5\t0\tkprobe:x\t1\t1\ta\tn=1\n"}"#;
    let bad = r#"{"type": "printf", "data": "hello\n"}"#;
    let lost = r#"{"type": "lost_events", "data": {"events": 7}}"#;
    fs::write(lab.file("in.json"), [good, bad, "{", lost, good].join("\n")).expect("a file");
    lab.usdtrec(["import", "in.json", "-o", "out.data"])
        .success()
        .complains("line 2: expected a time")
        .complains("line 3: expected JSON")
        .complains("2 lines are left out")
        .complains("bpftrace lost 7 events");
    assert_eq!(script(&lab, &lab.file("out.data")).len(), 2);
    for input in [bad, "", lost, "[00:00:01] (+0.1) vm app:x: { }, { n = 1 }"] {
        fs::write(lab.file("in.json"), input).expect("a file");
        lab.usdtrec(["import", "in.json", "-o", "none.data"])
            .exits(1)
            .complains("expected lines of bpftrace -f json with events");
        assert!(!lab.file("none.data").exists());
    }
}

/// Events of one probe may have different arguments, and the extremes of integers come back.
#[test]
fn arguments_have_the_type_of_all_values() {
    let lab = Lab::new();
    let event = |time: u64, args: &str| {
        format!(r#"{{"type": "printf", "data": "{time}\t0\tkprobe:x\t1\t1\ta{args}\n"}}"#)
    };
    let (least, most) = (i64::MIN, u64::MAX);
    let long = "y".repeat(5000);
    let lines = [
        event(1, &format!("\\tn={least}\\tm={most}\\tb={least}\\tt=7")),
        event(2, &format!("\\tn=5\\tm=0\\tb={most}\\tt=x\\u0000y")),
        event(3, ""),
        event(4, &format!("\\tq={long}")),
    ];
    let events = import(&lab, &lines.join("\n"));
    assert_eq!(events[0]["args"]["n"], least);
    assert_eq!(events[0]["args"]["m"], most);
    assert_eq!(events[0]["args"]["b"], least.to_string());
    assert_eq!(events[1]["args"]["b"], most.to_string());
    assert_eq!(events[0]["args"]["t"], "7");
    assert_eq!(events[2]["args"], serde_json::json!({}));
    assert!(!events[3]["cut"]["q"].is_null(), "{}", events[3]);
    let kept = events[3]["args"]["q"].as_str().expect("a text");
    assert!(
        long.starts_with(kept.trim_end_matches('…')),
        "{}",
        kept.len()
    );
}

/// The process is a key also if its first thread has no hit, so that nothing names it.
#[test]
fn strings_and_numbers_of_one_argument_are_all_counted() {
    let lab = Lab::new();
    let line = |at: u64| {
        let of = match at % 4 {
            0 => format!("/opt/b:app:hit\t1\t1\tb\tx:s=word\ty:s={at}"),
            _ => format!("/opt/a:app:hit\t1\t1\ta\tx={}\ty:s=", at % 2),
        };
        let data = format!("{}\t0\tusdt:{of}\n", at * 1000);
        serde_json::json!({"type": "printf", "data": data}).to_string()
    };
    let lines: Vec<String> = (0..400).map(line).collect();
    import(&lab, &lines.join("\n"));

    let histogram = |name: &str| {
        let report = lab.usdtrec([
            "report", "-i", "out.data", "--hist", name, "--format", "json",
        ]);
        let lines = report.success().stdout;
        let of = |line: &str| {
            let json: Value = serde_json::from_str(line).expect("JSON");
            let buckets = json["buckets"].as_array().expect("buckets").iter();
            let counts = buckets.map(|bucket| bucket["count"].as_u64().expect("a number"));
            let counts: Vec<u64> = counts.collect();
            (counts, json["others"].as_u64().expect("a number"))
        };
        lines.lines().map(of).collect::<Vec<_>>()
    };
    assert_eq!(histogram("x"), [(vec![100, 200], 0), (vec![100], 0)]);
    // The 50 most frequent strings have a bucket.
    let mut most = vec![1; 50];
    most[0] = 300;
    assert_eq!(histogram("y"), [(most, 51)]);

    let diff = lab.usdtrec(["diff", "out.data", "out.data", "--format", "json"]);
    let diff: Value = serde_json::from_str(&diff.success().stdout).expect("JSON");
    let figures = diff["figures"].as_array().expect("figures").iter();
    let shares = figures.filter(|figure| figure["argument"] == "x");
    let shares: Vec<_> = shares
        .map(|figure| (&figure["value"], &figure["a"]))
        .collect();
    // The numbers of what is a string elsewhere are addresses.
    let (word, share) = (Value::from("word"), Value::from(0.25));
    assert_eq!(shares, [(&word, &share)]);
}

#[test]
fn spans_of_a_process_without_a_name() {
    let lab = Lab::new();
    let mut lines = String::new();
    for id in 0..6 {
        for (probe, after) in [("start", 0), ("done", 50)] {
            let time = 1_000_000_000_000_u64 + id * 1000 + after;
            let data =
                format!("{time}\t0\tusdt:/bin/x:app:query__{probe}\t100\t201\tworker\tid={id}\n");
            let _ = writeln!(
                lines,
                "{}",
                serde_json::json!({"type": "printf", "data": data})
            );
        }
    }
    import(&lab, &lines);
    for key in ["tid", "id", "pid", "pid,id"] {
        let how = ["--span", "query", "--key", key, "--format", "json"];
        let report = lab.usdtrec(["report", "-i", "out.data"].iter().chain(&how));
        let report: Value = serde_json::from_str(&report.success().stdout).expect("JSON");
        let span = &report["spans"][0];
        assert_eq!(
            (&span["count"], &span["unkeyed"]),
            (&6.into(), &0.into()),
            "{key}"
        );
    }
}
