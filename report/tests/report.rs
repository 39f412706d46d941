//! `report` on recordings made by hand.

use crate::support::{self, DONE, HIT, Hit, REQUEST_INLINED, Recorded, Recording};
use serde_json::{Value, json};
use usdtrec_format::trace::{Shortfall, ShortfallKind};
use usdtrec_report::HintWords;
use usdtrec_report::ReportError;
use usdtrec_report::question::{GroupOrder, Question};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::{Format, Sentences};
use usdtrec_testing::test;

/// 4,000 hits of `request` by two processes in 4 s, 1,000 of `done`; 17 of `done` lost.
fn recorded() -> Recorded {
    let mut recording = Recording::usual();
    recording.comm(0, (200, 200), "client", false);
    recording.mmap(0, 200, "/opt/app");
    for at in 0..4000 {
        let second = at % 4 == 3;
        recording.hit(Hit {
            id: if second {
                REQUEST_INLINED
            } else {
                support::REQUEST
            },
            pid: if second { 200 } else { 100 },
            tid: if second { 200 } else { 101 },
            time: 5_000_000_000 + at * 1_000_000,
            ax: at,
            si: at % 3,
            cpu: (at % 2) as u32,
            ..HIT
        });
        if at % 4 == 0 {
            recording.hit(Hit {
                id: DONE,
                time: 5_000_000_000 + at * 1_000_000 + 1,
                ax: 5,
                ..HIT
            });
        }
        if at % 500 == 0 {
            recording.flush();
        }
    }
    recording.finish_with(&[(1, DONE, 17), (0, support::REQUEST, 0)])
}

#[test]
fn it_answers_first() {
    let recorded = recorded();
    let text = recorded.report_as(Format::Text, &[]);
    let file = recorded.path.display();
    let expected = format!(
        "# {file}: 5000 events in 4s from first to last, 17 lost
# host db7, x86_64, Linux 6.18.44, 2026-11-18 11:06:40 UTC, engine perf
# usdtrec record -a

Probe        Events    /s  Share  Processes              Lost
app:request    4000  1000  80.0%  server (1) and 1 more     0
app:done       1000   250  20.0%  server (1)               17

Span     Count  p50  p90  p99  p99.9  max  Sum  Self  Total  Open
request   1000  1ns  1ns  1ns    1ns  1ns  1us   1us    1us     2
WARNING: 3000 of 4000 begins of request (75.0%) have no end: hits were lost; the
  next one began, so they had ended; they were open when the recording ended
  begins without an end: request 2998
  hits of these probes were lost: some spans, most likely the longest, may have
  another one's end

Argument      Type     What it holds
request.arg1  s32      min -5, median ~1330, p99 ~3940, max 3998
request.arg2  u64      3 values: 33.4% 0, 33.3% 1, 33.3% 2
request.arg3  s64/u16  2 values: 75.0% 2, 25.0% 3
request.arg4  f64/u32  3000 missing: xmm0 not captured; 1000 missing: red zone
                       not captured
done.arg1     u64      always 5
~ means: within 1 %

Process  PID  Events    /s  Share  Probes
server   100    4000  1000  80.0%       2
client   200    1000   250  20.0%       1

Lost
  app:done: 17 of 1017 (1.7%)

Next
"
    );
    assert_eq!(text.split("  Next {").next().unwrap(), expected);
    assert!(text.contains("question: Processes"), "{text}");
}

#[test]
fn json_has_it_all() {
    let text = recorded().report_as(Format::Json, &[]);
    assert_eq!(text.lines().count(), 1);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["events"], 5000);
    assert_eq!(report["lost"], 17);
    assert_eq!(report["lost_exact"], true);
    assert_eq!(report["start"], "2026-11-18T11:06:40Z");
    assert_eq!(report["first_ns"], 5_000_000_000_u64);
    assert_eq!(report["command"], json!(["usdtrec", "record", "-a"]));
    let request = &report["probes"][0];
    assert_eq!(request["event"], "sdt_app:request");
    assert_eq!(
        (&request["count"], &request["share"]),
        (&json!(4000), &json!(0.8))
    );
    assert_eq!(
        request["processes"],
        json!([{"comm": "server", "processes": 1, "count": 3000},
               {"comm": "client", "processes": 1, "count": 1000}])
    );
    let arguments = &request["arguments"];
    assert_eq!(
        (&arguments[0]["min"], &arguments[0]["max"]),
        (&json!(-5), &json!(3998))
    );
    assert_eq!(arguments[0]["exact"], false);
    assert_eq!(
        arguments[1]["values"][0],
        json!({"value": 0, "count": 1334})
    );
    assert_eq!(arguments[1]["exact"], true);
    assert_eq!(arguments[3]["count"], 0);
    assert_eq!(
        arguments[3]["missing"][0],
        json!({"reason": "xmm0 not captured", "count": 3000})
    );
}

#[test]
fn csv_has_a_line_for_each_argument() {
    let text = recorded().report_as(Format::Csv, &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 4 + 1);
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    assert!(
        lines[2].starts_with("sdt_app:request,4000,"),
        "{}",
        lines[2]
    );
    assert!(
        lines[2].ends_with(",0,arg2,u64,4000,0,1,2,2,2,true,0,0,0,"),
        "{}",
        lines[2]
    );
    assert!(
        lines[4].ends_with(",arg4,f64/u32,0,,,,,,true,0,4000,0,"),
        "{}",
        lines[4]
    );
}

#[test]
fn groups_look_like_perfs() {
    let text = recorded().report_as(Format::Text, &["comm", "arg2"]);
    let tables = text.split_once("#\n# Samples").unwrap().1;
    let expected = ": 4000  of event 'sdt_app:request'
# Event count (approx.): 4000
#
# Overhead       Samples  Command  arg2
# ........  ............  .......  ....
#
    25.00%          1000  worker      0
    25.00%          1000  worker      1
    25.00%          1000  worker      2
     8.35%           334  client      0
     8.33%           333  client      1
     8.33%           333  client      2


# Samples: 1000  of event 'sdt_app:done'
# Event count (approx.): 1000
#
# Overhead       Samples  Command  arg2
# ........  ............  .......  ....
#
   100.00%          1000  worker   -


";
    assert_eq!(tables, expected);
}

#[test]
fn groups_by_event_are_one_table() {
    let text = recorded().report_as(Format::Csv, &["event", "pid", "tid", "cpu", "arg4"]);
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines.remove(0),
        "overhead,samples,event,pid,tid,cpu,arg4,others,doubtful"
    );
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "0.2,1000,sdt_app:done,100,101,1,,false,",
            "0.2,1000,sdt_app:request,100,101,1,,false,",
            "0.2,1000,sdt_app:request,200,200,1,,false,",
            "0.4,2000,sdt_app:request,100,101,0,,false,",
        ]
    );
}

#[test]
fn groups_in_json_are_typed() {
    let text = recorded().report_as(Format::Json, &["dso", "sym", "cpu", "arg1"]);
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        json!({"event": "sdt_app:request", "overhead": 0.25, "samples": 1000,
               "dso": "/opt/app", "sym": "0x555500001020", "cpu": 1, "arg1": -5})
    );
}

#[test]
fn unknown_keys_are_refused_with_the_known_ones() {
    let question = Question::Groups {
        sort: vec!["arg9".to_owned()],
        value: None,
        top: None,
        order: GroupOrder::default(),
    };
    let options = ReportOptions::default();
    let error = recorded().report(&question, &options).unwrap_err();
    assert!(matches!(error, ReportError::Question(_)));
    let text = error.to_string();
    assert!(
        text.contains("\"arg9\"") && text.contains("arg1, arg2"),
        "{text}"
    );
}

#[test]
fn losses_that_were_not_counted_are_said_to_be_unknown() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    recording.flush();
    let text = recording.kill().report_as(Format::Text, &[]);
    // The head folds where the name of the temporary directory makes it long.
    let text = text.replace("\n#   ", " ");
    assert!(
        text.contains("1 event in 0ns from first to last, losses not known"),
        "{text}"
    );
    let unfolded = text.replace("\n  ", " ");
    assert!(unfolded.contains("lost events were not counted"), "{text}");
}

#[test]
fn an_empty_recording_says_so() {
    let text = Recording::usual().finish().report_as(Format::Text, &[]);
    assert!(text.ends_with("\nNo events.\n"), "{text}");
}

#[test]
fn groups_beyond_the_bound_are_counted_together() {
    let mut recording = Recording::usual();
    for at in 0..300_000 {
        recording.hit(Hit {
            id: DONE,
            time: at,
            ax: at,
            ..HIT
        });
        if at % 50_000 == 0 {
            recording.flush();
        }
    }
    let text = recording.finish().report_as(Format::Text, &["arg1"]);
    let counted: u64 = text
        .lines()
        .filter(|line| line.contains('%'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[1].parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(counted, 300_000);
    assert!(text.contains("all other groups"), "no word of the others");
}

/// A later record of a number replaces an earlier one; hits are missing then, and nobody counted them.
#[test]
fn what_the_recorder_found_not_to_work_is_a_notice() {
    let mut recording = Recording::start();
    recording.mmap(0, 100, "/opt/app");
    let shortfall = |number, kind, processes| Shortfall {
        number,
        kind,
        path: "/opt/app".into(),
        pids: vec![100],
        processes,
        found: "found \u{1b}[1m".to_owned(),
        effect: "effect".to_owned(),
        ..Shortfall::default()
    };
    recording.shortfall(1, &shortfall(0, ShortfallKind::Semaphore, 1));
    recording.flush();
    recording.shortfall(2, &shortfall(1, ShortfallKind::NotChecked, 9));
    recording.shortfall(3, &shortfall(0, ShortfallKind::Semaphore, 7));
    let recorded = recording.finish_with(&[]);
    let options = ReportOptions {
        format: Format::Json,
        ..ReportOptions::default()
    };
    let (json, notices) = recorded.report(&Question::Summary, &options).unwrap();
    assert_eq!(
        notices.sentences(HintWords::default()),
        [
            "process 100 and 6 more: /opt/app: found \\x1b[1m; effect",
            "process 100 and 8 more: /opt/app: found \\x1b[1m; effect",
        ]
    );
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["lost_exact"], false);
    assert_eq!(report["shortfalls"][0]["processes"], 7);
    let options = ReportOptions::default();
    let text = recorded.report(&Question::Summary, &options).unwrap().0;
    assert!(text.contains("not exact: probes did not work"), "{text}");
}
