//! `script` on recordings made by hand.

use crate::support::{self, DONE, HIT, Hit, REQUEST_INLINED, Recording};
use usdtrec_format::Pattern;
use usdtrec_report::Format;
use usdtrec_report::script::{self, ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, HintWords, ReportError, Sentences, TraceSession};
use usdtrec_testing::test;

#[test]
fn lines_are_perfs_with_arguments() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    recording.hit(Hit {
        id: REQUEST_INLINED,
        tid: 102,
        cpu: 12,
        time: 5_000_001_999,
        ..HIT
    });
    recording.hit(Hit {
        id: DONE,
        tid: 100,
        time: 123_456_000_000_000,
        ..HIT
    });
    let recorded = recording.finish();
    assert_eq!(
        recorded.script_as(Format::Text),
        "          \
         worker   101 [001]     5.000000: sdt_app:request: (555500001010) arg1=7 \
         arg2=18446744073709551615 arg3=2 arg4=<xmm0 not captured>\n            \
         :102   102 [012]     5.000001: sdt_app:request: (555500001020) arg1=-5 \
         arg2=18446744073709551615 arg3=3 arg4=<red zone 0x7ffbfffffffc not captured>\n          \
         server   100 [001] 123456.000000:    sdt_app:done: (555500001030) arg1=7\n"
    );
}

#[test]
fn fields_are_chosen_as_perf_does() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    let recorded = recording.finish();
    let line = |fields: &str, nanoseconds| {
        let options = ScriptOptions {
            fields: fields.parse().unwrap(),
            nanoseconds,
            ..ScriptOptions::default()
        };
        recorded.script(&EventSelection::default(), &options).0
    };
    assert_eq!(
        line("comm,pid,tid", false),
        "          worker   100/101   \n"
    );
    assert_eq!(line("pid", false), "  100 \n");
    assert_eq!(line("time,cpu", true), "[001]     5.000000000: \n");
    assert_eq!(
        line("period,event", false),
        "         1 sdt_app:request: \n"
    );
    assert_eq!(line("ip", false), "     555500001010\n");
    assert_eq!(
        line("event,ip,sym,symoff,dso", false),
        "sdt_app:request:      555500001010 [unknown] (/opt/app)\n"
    );
    assert_eq!(
        line("-comm,-tid,-cpu,-time,-args,+ip", false),
        "sdt_app:request:      555500001010\n"
    );
}

#[test]
fn times_count_from_other_lines_in_all_formats() {
    let mut recording = Recording::usual();
    for time in [5_000_000_000, 5_000_001_999, 12_000_002_000] {
        recording.hit(Hit { time, ..HIT });
        recording.hit(Hit {
            id: DONE,
            time,
            ..HIT
        });
    }
    let recorded = recording.finish();
    let selection = EventSelection {
        events: vec![Pattern::parse("app:request").unwrap()],
        ..EventSelection::default()
    };
    let shown = |format, times, fields: &str| {
        let options = ScriptOptions {
            fields: fields.parse().unwrap(),
            times,
            format,
            ..ScriptOptions::default()
        };
        recorded.script(&selection, &options).0
    };
    assert_eq!(
        shown(Format::Text, TimeOrigin::First, "time"),
        "    0.000000: \n    0.000001: \n    7.000002: \n"
    );
    assert_eq!(
        shown(Format::Text, TimeOrigin::Previous, "time,pid"),
        "  100     0.000000: \n  100     0.000001: \n  100     7.000000: \n"
    );
    assert_eq!(
        shown(Format::Json, TimeOrigin::First, "time,tod"),
        "{\"time_ns\":5000000000,\"reltime_ns\":0,\"tod\":\"2026-11-18T11:06:40.000000000Z\"}\n\
         {\"time_ns\":5000001999,\"reltime_ns\":1999,\"tod\":\"2026-11-18T11:06:40.000001999Z\"}\n\
         {\"time_ns\":12000002000,\"reltime_ns\":7000002000,\"tod\":\"2026-11-18T11:06:47.000002000Z\"}\n"
    );
    assert_eq!(
        shown(Format::Csv, TimeOrigin::Previous, "time,tod,cpu"),
        "time_ns,deltatime_ns,tod,cpu\n\
         5000000000,0,2026-11-18T11:06:40.000000000Z,1\n\
         5000001999,1999,2026-11-18T11:06:40.000001999Z,1\n\
         12000002000,7000000001,2026-11-18T11:06:47.000002000Z,1\n"
    );
}

#[test]
fn single_arguments_are_shown_in_the_order_asked_for() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    recording.hit(Hit { id: DONE, ..HIT });
    let recorded = recording.finish();
    let shown = |format, fields: &str| {
        let options = ScriptOptions {
            fields: fields.parse().unwrap(),
            format,
            ..ScriptOptions::default()
        };
        recorded.script(&EventSelection::default(), &options).0
    };
    assert_eq!(
        shown(Format::Text, "event,args.arg3,args.arg1"),
        "sdt_app:request: arg3=2 arg1=7\n   sdt_app:done: arg1=7\n"
    );
    assert_eq!(shown(Format::Text, "args.arg3"), "arg3=2\n\n");
    assert_eq!(
        shown(Format::Text, "-args.arg2,-args.arg4"),
        "          worker   101 [001]     5.000000: sdt_app:request: (555500001010) arg1=7 arg3=2\n          \
         worker   101 [001]     5.000000:    sdt_app:done: (555500001030) arg1=7\n"
    );
    assert_eq!(
        shown(Format::Json, "pid,args.arg4,args.arg1"),
        "{\"pid\":100,\"args\":{\"arg4\":null,\"arg1\":7},\"missing\":{\"arg4\":\"xmm0 not captured\"}}\n\
         {\"pid\":100,\"args\":{\"arg1\":7}}\n"
    );
    assert_eq!(
        shown(Format::Csv, "args.arg3,args.arg1"),
        "arg3,arg1,missing\n2,7,\n,7,\n"
    );
    assert_eq!(
        shown(
            Format::Csv,
            "-time,-cpu,-pid,-tid,-comm,-ip,-args.arg4,-args.arg2"
        ),
        "event,arg1,arg3,missing\nsdt_app:request,7,2,\nsdt_app:done,7,,\n"
    );
    let options = ScriptOptions {
        fields: "args.url".parse().unwrap(),
        ..ScriptOptions::default()
    };
    let error = script::print(
        &recorded.session(),
        &EventSelection::default(),
        &options,
        &mut Vec::new(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "no selected event has an argument \"url\"; arguments are: arg1, arg2, arg3, arg4"
    );
}

#[test]
fn templates_say_what_a_line_is() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    recording.hit(Hit {
        id: DONE,
        tid: 999,
        time: HIT.time + 1_234_567_891,
        ..HIT
    });
    let recorded = recording.finish();
    let run = |template: &str, selection: &EventSelection, nanoseconds| {
        let options = ScriptOptions {
            template: Some(template.parse().unwrap()),
            nanoseconds,
            ..ScriptOptions::default()
        };
        let mut out = Vec::new();
        script::print(&recorded.session(), selection, &options, &mut out)
            .map(|_| String::from_utf8(out).unwrap())
            .map_err(|error| error.to_string())
    };
    let shown = |template: &str| run(template, &EventSelection::default(), false).unwrap();
    assert_eq!(
        shown("{comm:?}\\t{pid:>6}/{tid:<5}|{cpu:03}|{time}|{reltime:.3}|{deltatime:9.1}|"),
        "\"worker\"\t   100/101  |001|5.000000|0.000|      0.0|\n\
         \":999\"\t   100/999  |001|6.234567|1.234|      1.2|\n"
    );
    assert_eq!(
        shown("{event:^19.11}|{ip:x}|{dso}|{sym}|{period}|{{}}"),
        "    sdt_app:req    |555500001010|/opt/app|[unknown]|1|{}\n\
         \u{20}   sdt_app:don    |555500001030|/opt/app|[unknown]|1|{}\n"
    );
    assert_eq!(
        shown("{arg2:x}|{arg3:>3}|{args.arg4}|{arg1:03}"),
        "ffffffffffffffff|  2|<xmm0 not captured>|007\n-|  -|-|007\n"
    );
    assert_eq!(
        shown("{args:>20}{args.arg1}"),
        "arg1=7 arg2=18446744073709551615 arg3=2 arg4=<xmm0 not captured>7\n              arg1=77\n"
    );
    assert_eq!(
        run("{time} {deltatime}", &EventSelection::default(), true).unwrap(),
        "5.000000000 0.000000000\n6.234567891 1.234567891\n"
    );
    let done = EventSelection {
        events: vec![Pattern::parse("app:done").unwrap()],
        ..EventSelection::default()
    };
    let error = run("{arg2}", &done, false).unwrap_err();
    assert!(
        error.contains(
            "no selected event has an argument \"arg2\"; arguments are: arg1; fields are: time,"
        ),
        "{error}"
    );
    // No file of this recording exists.
    assert_eq!(run("{srcline}", &done, false).unwrap(), "\n");
}

#[test]
fn json_is_exact() {
    let mut recording = Recording::usual();
    recording.hit(HIT);
    recording.hit(Hit {
        id: DONE,
        tid: 999,
        time: HIT.time + 1,
        ax: u64::MAX,
        ..HIT
    });
    let text = recording.finish().script_as(Format::Json);
    assert_eq!(
        text,
        "{\"time_ns\":5000000000,\"cpu\":1,\"pid\":100,\"tid\":101,\"comm\":\"worker\",\
         \"event\":\"sdt_app:request\",\"ip\":\"0x555500001010\",\"args\":{\"arg1\":7,\
         \"arg2\":18446744073709551615,\"arg3\":2,\"arg4\":null},\
         \"missing\":{\"arg4\":\"xmm0 not captured\"}}\n\
         {\"time_ns\":5000000001,\"cpu\":1,\"pid\":100,\"tid\":999,\"comm\":\":999\",\
         \"event\":\"sdt_app:done\",\"ip\":\"0x555500001030\",\
         \"args\":{\"arg1\":18446744073709551615}}\n"
    );
}

#[test]
fn csv_has_a_column_for_each_argument() {
    let mut recording = Recording::start();
    recording.comm(0, (100, 101), "say \"a,b\"", false);
    recording.hit(HIT);
    recording.hit(Hit { id: DONE, ..HIT });
    assert_eq!(
        recording.finish().script_as(Format::Csv),
        "time_ns,cpu,pid,tid,comm,event,ip,arg1,arg2,arg3,arg4,missing\n\
         5000000000,1,100,101,\"say \"\"a,b\"\"\",sdt_app:request,0x555500001010,\
         7,18446744073709551615,2,,arg4: xmm0 not captured\n\
         5000000000,1,100,101,\"say \"\"a,b\"\"\",sdt_app:done,0x555500001030,7,,,,\n"
    );
}

#[test]
fn names_cannot_steer_a_terminal() {
    let mut recording = Recording::start();
    recording.comm(0, (100, 101), "\x1b[2J\nx", false);
    recording.hit(HIT);
    let recorded = recording.finish();
    assert!(
        recorded
            .script_as(Format::Text)
            .starts_with("      \\x1b[2J\\nx   101")
    );
    assert_eq!(
        recorded.json(&EventSelection::default())[0]["comm"],
        "\x1b[2J\nx"
    );
}

#[test]
fn names_hold_from_their_time_on_whatever_block_they_are_in() {
    let mut recording = Recording::start();
    recording.comm(0, (1, 1), "shell", false);
    for at in 1..=4 {
        recording.hit(Hit {
            pid: 2,
            tid: 2,
            time: at * 1000,
            ..HIT
        });
    }
    recording.flush();
    // Told after the samples that it is about, as when rings are drained one by one.
    recording.comm(3500, (2, 2), "app", true);
    recording.fork(1500, (2, 2), (1, 1));
    let recorded = recording.finish();
    let comms: Vec<_> = recorded
        .json(&EventSelection::default())
        .into_iter()
        .map(|line| line["comm"].clone())
        .collect();
    assert_eq!(comms, [":2", "shell", "shell", "app"]);
}

/// Samples of three threads, a millisecond each.
fn selectable() -> support::Recorded {
    let mut recording = Recording::usual();
    for at in 0..1000 {
        recording.hit(Hit {
            id: if at % 2 == 0 { support::REQUEST } else { DONE },
            pid: 100 + (at / 500) as i32,
            tid: 100 + (at % 3) as i32,
            cpu: (at % 4) as u32,
            time: 1_000_000_000 + at * 1_000_000,
            ax: at,
            ..HIT
        });
        if at % 100 == 99 {
            recording.flush();
        }
    }
    recording.finish()
}

#[track_caller]
fn selects(selection: EventSelection, fits: impl Fn(u64) -> bool) {
    let recorded = selectable();
    let found: Vec<u64> = recorded
        .json(&selection)
        .iter()
        .map(|line| line["args"]["arg1"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (0..1000).filter(|&at| fits(at)).collect();
    assert_eq!(found, expected);
}

#[test]
fn selections() {
    let some = EventSelection::default;
    selects(some(), |_| true);
    let time = Some("1.25,1.5".parse().unwrap());
    selects(EventSelection { time, ..some() }, |at| {
        (250..=500).contains(&at)
    });
    let time = Some(",1.0105".parse().unwrap());
    selects(EventSelection { time, ..some() }, |at| at <= 10);
    // From the first to the last sample are 999 ms.
    let time = Some("10%-20%".parse().unwrap());
    selects(EventSelection { time, ..some() }, |at| {
        (100..=199).contains(&at)
    });
    let time = Some("5,6".parse().unwrap());
    selects(EventSelection { time, ..some() }, |_| false);
    let pids = vec![101];
    selects(EventSelection { pids, ..some() }, |at| at >= 500);
    let tids = vec![100, 102];
    selects(EventSelection { tids, ..some() }, |at| at % 3 != 1);
    let cpus = Some("0-1,3".parse().unwrap());
    selects(EventSelection { cpus, ..some() }, |at| at % 4 != 2);
    let comms = vec!["worker".to_owned(), "nobody".to_owned()];
    selects(EventSelection { comms, ..some() }, |at| at % 3 == 1);
    let events = vec![Pattern::parse("app:d*").unwrap()];
    selects(EventSelection { events, ..some() }, |at| at % 2 == 1);
    for pattern in ["app:done@/opt/app", "app:d*@app"] {
        let events = vec![Pattern::parse(pattern).unwrap()];
        selects(EventSelection { events, ..some() }, |at| at % 2 == 1);
    }
    let both = EventSelection {
        events: vec![Pattern::parse("sdt_app:done").unwrap()],
        tids: vec![101],
        time: Some("1.9,".parse().unwrap()),
        ..some()
    };
    selects(both, |at| at % 2 == 1 && at % 3 == 1 && at >= 900);
}

#[test]
fn an_event_that_is_not_there_is_an_error_that_names_the_others() {
    let session = selectable().session();
    for pattern in ["app:doen", "app:done@/opt/other"] {
        let selection = EventSelection {
            events: vec![Pattern::parse(pattern).unwrap()],
            ..EventSelection::default()
        };
        let error = refusal(&session, &selection);
        assert!(
            error.contains(pattern) && error.contains("sdt_app:done"),
            "{error}"
        );
        assert!(!error.contains("dummy"), "{error}");
    }
}

fn refusal(session: &TraceSession, selection: &EventSelection) -> String {
    let options = ScriptOptions::default();
    let error = script::print(session, selection, &options, &mut Vec::new());
    error.unwrap_err().to_string()
}

/// A reader that goes away after some bytes.
struct ShortPipe(usize);

impl std::io::Write for ShortPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(rest) => self.0 = rest,
            None => return Err(std::io::ErrorKind::BrokenPipe.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_it() {
    let mut recording = Recording::usual();
    for at in 0..20_000 {
        recording.hit(Hit { time: at, ..HIT });
    }
    let session = recording.finish().session();
    for bytes in [0, 500_000] {
        let error = script::print(
            &session,
            &EventSelection::default(),
            &ScriptOptions::default(),
            &mut ShortPipe(bytes),
        );
        let Err(ReportError::Write(error)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn damage_costs_what_it_hits() {
    let mut recording = Recording::usual();
    for at in 0..3000 {
        recording.hit(Hit {
            time: at,
            ax: at,
            ..HIT
        });
        if at % 1000 == 999 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let session = recorded.session();
    let samples = |block: &&usdtrec_format::trace::Block| block.samples == Some(1000);
    let block = *session
        .trace()
        .blocks()
        .iter()
        .filter(samples)
        .nth(1)
        .unwrap();
    let mut bytes = std::fs::read(&recorded.path).unwrap();
    bytes[(block.offset + block.len / 2) as usize] ^= 0xff;
    std::fs::write(&recorded.path, bytes).unwrap();
    let (text, notices) = recorded.script(&EventSelection::default(), &ScriptOptions::default());
    assert_eq!(text.lines().count(), 2000);
    let sentences = notices.sentences(HintWords::default());
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(
        sentences[0].starts_with(&format!("offset {}: ", block.offset)),
        "{sentences:?}"
    );
}

#[test]
fn everything_that_a_killed_recorder_flushed_is_there() {
    let mut recording = Recording::usual();
    for at in 0..1500 {
        recording.hit(Hit { time: at, ..HIT });
        if at % 1000 == 999 {
            recording.flush();
        }
    }
    let text = recording.kill().script_as(Format::Text);
    assert_eq!(text.lines().count(), 1000);
}
