//! Traces of the output of bpftrace and of babeltrace2.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Babeltrace, Lab, need_tool, run, test};
use crate::export::nasty::Nasty;

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
            Value::String(text) => write!(line, "\t{name}:s={text}"),
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
    let of = |name: &str, argument: &str| -> Vec<String> {
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
    assert_eq!(of("tick", "counter"), expected("tick ", 2));
    assert_eq!(of("guarded", "n"), expected("guarded ", 1));
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
        "export", "--to", "chrome", "-i", "out.data", "-o", "out.json",
    ];
    lab.usdtrec(words).success();
    lab.usdtrec(["script", "--tod", "-i", "out.data"]).exits(1);
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
    for input in [bad, "", lost] {
        fs::write(lab.file("in.json"), input).expect("a file");
        lab.usdtrec(["import", "in.json", "-o", "none.data"])
            .exits(1);
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

/// The trace of a text, with what `import` says.
#[track_caller]
fn import_text(lab: &Lab, text: &[u8]) -> (Vec<Value>, String) {
    fs::write(lab.file("in.txt"), text).expect("a file");
    let imported = lab
        .usdtrec(["import", "in.txt", "-o", "out.data"])
        .success();
    (script(lab, &lab.file("out.data")), imported.stderr)
}

/// A float with the digits that babeltrace2 prints.
fn rounded(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => format!("{number:.5e}"),
        None => value.to_string(),
    }
}

/// What babeltrace2 prints of an event: `export` adds further fields to arguments that are cut or missing.
fn printed(event: &Value) -> String {
    let args = event["args"].as_object().expect("arguments").iter();
    let suffixes = ["_missing", "_cut", "_bytes", "_number"];
    let args: Vec<_> = args
        .filter(|(name, value)| {
            !value.is_null() && !suffixes.iter().any(|suffix| name.ends_with(suffix))
        })
        .map(|(name, value)| format!("{name}={}", rounded(value)))
        .collect();
    let members = ["time_ns", "cpu", "pid", "tid", "comm", "event"];
    format!("{:?} {args:?}", members.map(|member| &event[member]))
}

fn sorted(events: &[Value], shown: fn(&Value) -> String) -> Vec<String> {
    let mut shown: Vec<String> = events.iter().map(shown).collect();
    shown.sort();
    shown
}

/// A real recording, by way of Common Trace Format and the text of babeltrace2.
#[test]
fn a_recording_comes_back_from_babeltrace() {
    let Nasty { lab } = Nasty::record(200, &[]);
    let original = script(&lab, &lab.file("trace"));
    assert!(original.len() > 400);
    for (to, babeltrace) in [
        ("ctf", Babeltrace::installed()),
        ("ctf2", Babeltrace::later()),
    ] {
        lab.usdtrec(["export", "-i", "trace", "--to", to, "-o", to])
            .success();
        for options in [
            &["--clock-cycles"][..],
            &["--clock-cycles", "--no-delta", "--fields", "all"],
            &["--clock-cycles", "--names", "all", "--fields", "all"],
        ] {
            let text = babeltrace.text(&lab, options, to).stdout;
            let (again, says) = import_text(&lab, text.as_bytes());
            assert!(says.contains("times are cycles"), "{says}");
            assert!(!says.contains("left out"), "{says}");
            assert_eq!(sorted(&again, printed), sorted(&original, printed));
        }
    }
}

/// Booleans of version 2, which are texts beside other values, and addresses come back.
#[test]
fn booleans_and_addresses_of_babeltrace() {
    let lab = Lab::new();
    let line = |second: u8, args: &str| {
        format!("[00:00:0{second}.000000000] (+0.1) vm app:x: {{ cpu_id = 0 }}, {{ {args} }}\n")
    };
    let lines = line(
        1,
        "b = true, m = true, t = \"true\", p = 0xFFFFFFFFFFFFFFFF",
    ) + &line(2, "b = false, m = 1, t = \"\", p = 0x0");
    let (events, _) = import_text(&lab, lines.as_bytes());
    let args: Vec<String> = events
        .iter()
        .map(|event| event["args"].to_string())
        .collect();
    let expected = [
        r#"{"b":true,"m":"true","p":"0xffffffffffffffff","t":"true"}"#,
        r#"{"b":false,"m":"1","p":"0x0","t":""}"#,
    ];
    assert_eq!(args, expected);
    lab.usdtrec(["export", "-i", "out.data", "--to", "ctf2", "-o", "ctf2"])
        .success();
    let text = Babeltrace::later().text(&lab, &["--clock-cycles"], "ctf2");
    let (again, _) = import_text(&lab, text.stdout.as_bytes());
    let args: Vec<String> = again
        .iter()
        .map(|event| event["args"].to_string())
        .collect();
    assert_eq!(args, expected);
}

/// Times of the other forms are as far from each other as the cycles are.
#[test]
fn forms_of_time_of_babeltrace() {
    let babeltrace = Babeltrace::installed();
    let lab = Lab::new();
    let demo = testdata("demo.data");
    let demo = demo.to_str().expect("a path");
    lab.usdtrec(["export", "-i", demo, "--to", "ctf", "-o", "ctf"])
        .success();
    let times = |options: &[&str]| -> Vec<u64> {
        let (events, says) = import_text(
            &lab,
            babeltrace.text(&lab, options, "ctf").stdout.as_bytes(),
        );
        assert_eq!(
            says.contains("cycles"),
            options == ["--clock-cycles"],
            "{says}"
        );
        let times = events.iter().map(|event| event["time_ns"].as_u64());
        times.map(|time| time.expect("a time")).collect()
    };
    let cycles = times(&["--clock-cycles"]);
    let since_first = |times: &[u64]| -> Vec<u64> {
        let first = times.first().copied().unwrap_or_default();
        times.iter().map(|time| time - first).collect()
    };
    let seconds = times(&["--clock-seconds"]);
    assert_eq!(since_first(&seconds), since_first(&cycles));
    // Times of day are those of the original.
    let tod = |trace: &str| -> Vec<String> {
        let words = ["script", "--tod", "-F", "time", "-i", trace];
        let lines = lab.usdtrec(words).success().stdout;
        let of_day = |line: &str| {
            line.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        };
        lines.lines().map(of_day).collect()
    };
    assert_eq!(tod("out.data"), tod(demo));
    assert_eq!(times(&["--clock-date", "--clock-gmt"]), seconds);
    let of_day = times(&["--clock-gmt"]);
    assert_eq!(since_first(&of_day), since_first(&cycles));
    lab.usdtrec(["script", "--tod", "-i", "out.data"]).exits(1);
}

/// Output for a program with LTTng-UST.
#[test]
fn events_of_lttng() {
    let lab = Lab::new();
    let text = fs::read(testdata("lttng/app.txt")).expect("a file");
    let (events, says) = import_text(&lab, &text);
    assert_eq!(events.len(), 12);
    assert!(!says.contains("without"), "{says}");
    let first = &events[0];
    assert_eq!(first["time_ns"], 1_795_492_343_726_895_752_u64);
    assert_eq!(first["comm"], "app");
    assert_eq!(
        (&first["pid"], &first["tid"], &first["cpu"]),
        (&17768.into(), &17768.into(), &1.into())
    );
    assert_eq!(events[2]["args"]["path"], "/a \"b\" }, { c = 1\n\t\\x");
    let kinds: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "app:kinds")
        .collect();
    let of =
        |name: &str| -> Vec<&Value> { kinds.iter().map(|event| &event["args"][name]).collect() };
    let expected = |text: &str| -> Vec<Value> { serde_json::from_str(text).expect("JSON") };
    let check = |name: &str, text: &str| {
        let expected = expected(text);
        assert_eq!(of(name), expected.iter().collect::<Vec<_>>());
    };
    check("d", r#"[1.5, -1e300, "NaN", "inf", -0.0]"#);
    check(
        "i",
        "[-9223372036854775808, 9223372036854775807, -1, -1, 5]",
    );
    check("u", "[18446744073709551615, 0, 1, 1, 1]");
    check("h", r#"["0xffffffffffffffff", "0x0", "0x1", "0x1", "0x1"]"#);
    check(
        "state",
        r#"["IDLE(0)", "RUN \"fast\"(1)", "MANY, OVERLAP(8)", 100, -3]"#,
    );
    assert_eq!(kinds[0]["args"]["seq"], "[ [0] = 1, [1] = -2 ]");
    assert_eq!(kinds[0]["bytes"]["text"], "7465787420011b20ffc3a9207a");
    let words = [
        "report", "--span", "request", "--format", "json", "-i", "out.data",
    ];
    let report = lab.usdtrec(words).success().stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["spans"][0]["count"], 3, "{report}");
}

#[test]
fn what_babeltrace_does_not_say() {
    let lab = Lab::new();
    let good = "[00:00:01.000000000] (+0.1) vm app:x: { cpu_id = 0 }, { n = 1 }";
    let lost = "WARNING: Tracer discarded 7 events between [x] and [y]";
    let lines = [
        "hello",
        lost,
        good,
        "[00:00:02.000000000] (+0.1) vm app:x: { 0 }, { 1 }",
        good,
        "",
    ];
    fs::write(lab.file("in.txt"), lines.join("\n")).expect("a file");
    lab.usdtrec(["import", "in.txt", "-o", "out.data"])
        .success()
        .complains("line 1: expected [TIME]")
        .complains("line 4: expected a field NAME = VALUE (babeltrace2 --names default)")
        .complains("2 lines are left out")
        .complains("the tracer lost 7 events")
        .complains("events without vpid: 2; their process is -1")
        .complains("events without vtid: 2")
        .complains("lttng add-context");
    let events = script(&lab, &lab.file("out.data"));
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["pid"], -1);
    let line = |time: &str| format!("[{time}] vm app:x: {{ cpu_id = 0 }}, {{ n = 1 }}\n");
    let midnight = [line("23:59:59.999999999"), line("00:00:00.000000001")];
    fs::write(lab.file("in.txt"), midnight.concat()).expect("a file");
    lab.usdtrec(["import", "in.txt", "-o", "none.data"])
        .exits(1)
        .complains("line 2: expected a time after that of the line before")
        .complains("--clock-seconds");
    fs::write(lab.file("in.txt"), "hello\n[x] y\n").expect("a file");
    lab.usdtrec(["import", "in.txt", "-o", "none.data"])
        .exits(1)
        .complains("bpftrace -f json")
        .complains("babeltrace2");
    assert!(!lab.file("none.data").exists());
}

/// Bytes of a real output that are others, or cut: never a panic, and each event that is left is complete.
#[test]
fn damaged_output_of_babeltrace() {
    let lab = Lab::new();
    let text = fs::read(testdata("lttng/app.txt")).expect("a file");
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..40 {
        let mut other = text.clone();
        for _ in 0..=random(8) {
            let at = random(other.len());
            other[at] = b"\"\\{}[]() ,=\n\0\xff"[random(14)];
        }
        other.truncate(random(other.len() + 1));
        fs::write(lab.file("in.txt"), &other).expect("a file");
        let output = lab.usdtrec(["import", "in.txt", "-o", "out.data"]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
        if code == Some(0) {
            script(&lab, &lab.file("out.data"));
        }
    }
}
