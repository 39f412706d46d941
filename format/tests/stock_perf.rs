//! Stock `perf` (package `linux-perf`) on files of ours. `USDTREC_TEST_PERF` names another binary.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::support::added;
use crate::support::log::Log;
use crate::support::{self, EVENTS, LOSSES, info, push_round, rounds, time, trace_bytes};
use usdtrec_format::perf::{SampleType, TracepointFormat};
use usdtrec_format::trace::{Compression, TraceWriter};
use usdtrec_format::{RawLayout, ThreadWaits};

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd(1)];

fn program() -> OsString {
    std::env::var_os("USDTREC_TEST_PERF").unwrap_or_else(|| "perf".into())
}

/// Whether `perf` is there. Says so loudly if not, and fails where CI has to have it.
fn have_perf() -> bool {
    if Command::new(program()).arg("--version").output().is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "`perf` is not installed (Debian: apt install linux-perf)"
    );
    eprintln!("SKIPPED: `perf` is not installed (Debian: apt install linux-perf)");
    false
}

/// Runs perf on a file; it must succeed without a word on standard error.
fn perf(file: &Path, arguments: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(program())
        .args(arguments)
        .arg("-i")
        .arg(file)
        .env("HOME", home.path())
        .env("PERF_BUILDID_DIR", home.path())
        .env("PAGER", "cat")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {arguments:?}: {errors}");
    assert_eq!(errors, "", "perf {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every event, in order, with comm, CPU, time, name and registers.
fn check_script(file: &Path, samples: u64) {
    let script = perf(
        file,
        &[
            "script",
            "--ns",
            "-F",
            "comm,tid,cpu,time,event,ip,sym,uregs",
        ],
    );
    let lines: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len() as u64, samples);
    for (number, line) in lines.iter().enumerate() {
        let at = time(number as u64);
        let event = EVENTS[usize::from(number % 3 == 2)].0;
        let comm = ["app", "app-worker"][number % 2];
        for part in [
            comm,
            event,
            &format!("[{:03}]", number % 2),
            &format!("{}.{:09}:", at / 1_000_000_000, at % 1_000_000_000),
            &format!("AX:{number:#x}"),
        ] {
            assert!(
                line.contains(part),
                "{part} is not in line {number}: {line}"
            );
        }
    }
}

#[test]
fn every_event_in_order() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    for compression in BOTH {
        for finish in [false, true] {
            std::fs::write(&file, trace_bytes(&rounds(20, 1000), compression, finish)).unwrap();
            check_script(&file, 20_000);
            let report = perf(&file, &["report", "--stdio"]);
            assert!(report.contains("13K of event 'sdt_app:start'"), "{report}");
            let lost = LOSSES[0].lost * u64::from(finish);
            assert!(
                report.contains(&format!("Total Lost Samples: {lost}")),
                "{report}"
            );
            let head = perf(&file, &["report", "--header-only"]);
            for part in [
                "hostname : db7",
                "cmdline : usdtrec record -e sdt_app:* -a",
                "name = sdt_app:done",
                "pmu mappings: software = 1, uprobe = 8",
                "clockid: monotonic",
                "time of first sample : 5.000000",
                "time of last sample : 5.019999",
            ] {
                assert!(head.contains(part), "{part} is not in {head}");
            }
            let events = perf(&file, &["evlist"]);
            let names: Vec<&str> = events.lines().collect();
            assert_eq!(names[..2], ["sdt_app:start", "sdt_app:done"]);
            let build_ids = perf(&file, &["buildid-list"]);
            let expected = format!("{} /opt/app/bin/app\n", support::build_id());
            assert_eq!(build_ids, expected);
            let half = perf(&file, &["script", "--time", "0%-50%", "-F", "time"]);
            assert_eq!(half.lines().count(), 10_000);
        }
    }
}

#[test]
fn a_killed_recording_gives_what_was_committed() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    for compression in BOTH {
        let log = Log::default();
        let mut writer = TraceWriter::create(log.clone(), &info(), compression).unwrap();
        // The steps after which some samples are committed.
        let mut committed = vec![(log.steps(), 0)];
        for (round, numbers) in rounds(4, 500).iter().enumerate() {
            push_round(&mut writer, round, numbers);
            writer.flush().unwrap();
            committed.push((log.steps(), 500 * (round as u64 + 1)));
        }
        writer.finish(&LOSSES).unwrap();
        committed.push((log.steps(), 2000));
        for pair in committed.windows(2) {
            let ((from, samples), (to, _)) = (pair[0], pair[1]);
            for step in from..to {
                for torn in [0, log.len(step) / 2, log.len(step) - 1] {
                    if log.len(step) <= 8 && torn != 0 {
                        continue;
                    }
                    std::fs::write(&file, log.image(step, torn)).unwrap();
                    check_script(&file, samples);
                }
            }
        }
    }
}

/// A pipe's stream, stored in a file and from a pipe.
#[test]
fn a_pipe_is_read() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    for compression in BOTH {
        for finish in [false, true] {
            std::fs::write(
                &file,
                support::pipe_bytes(&rounds(10, 1000), compression, finish),
            )
            .unwrap();
            let fields = ["script", "--ns", "-F", "comm,tid,cpu,time,event"];
            let stored = perf(&file, &fields);
            assert_eq!(stored.lines().count(), 10_000);
            for (number, line) in stored.lines().enumerate() {
                let at = time(number as u64);
                for part in [
                    ["app", "app-worker"][number % 2],
                    EVENTS[usize::from(number % 3 == 2)].0,
                    &format!("[{:03}]", number % 2),
                    &format!("{}.{:09}:", at / 1_000_000_000, at % 1_000_000_000),
                ] {
                    assert!(
                        line.contains(part),
                        "{part} is not in line {number}: {line}"
                    );
                }
            }
            let report = perf(&file, &["report", "--stdio"]);
            assert!(report.contains("of event 'sdt_app:start'"), "{report}");
            let piped = Command::new(program())
                .args(fields)
                .args(["-i", "-"])
                .stdin(std::fs::File::open(&file).unwrap())
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&piped.stderr), "");
            assert_eq!(String::from_utf8_lossy(&piped.stdout), stored);
        }
    }
}

/// `perf inject` copies chunks unread, drops what it does not know and writes a head of its own.
#[test]
fn what_perf_inject_makes_of_it_is_read() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (file, injected) = (
        directory.path().join("t.data"),
        directory.path().join("i.data"),
    );
    for compression in BOTH {
        std::fs::write(&file, trace_bytes(&rounds(5, 1000), compression, true)).unwrap();
        perf(&file, &["inject", "-o", injected.to_str().unwrap()]);
        let trace = usdtrec_format::trace::Trace::open(&injected).unwrap();
        let found = support::read(&trace);
        assert_eq!(found.damage, []);
        assert_eq!(found.sorted(), (0..5000).collect::<Vec<_>>());
        assert_eq!(trace.info().definitions, info().definitions);
        assert_eq!(trace.info().events[1].name, "sdt_app:done");
    }
}

/// The lines of `perf script` of a recording to which events are added, with their names and arguments.
fn check_added(script: &str, adding: &[usize]) {
    let samples = added::expected(adding, added::SAMPLES * adding.len() as u64);
    let lines: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), samples.len());
    for (line, (id, number)) in lines.iter().zip(samples) {
        let event = match id.checked_sub(added::FIRST_ID) {
            Some(event) => format!("sdt_late:n{event}: "),
            None => "sdt_app:".to_owned(),
        };
        let argument = match id.checked_sub(added::FIRST_ID) {
            Some(_) => format!("arg1={number}"),
            None => String::new(),
        };
        let at = time(number);
        let at = format!("{}.{:09}:", at / 1_000_000_000, at % 1_000_000_000);
        for part in [&event, &argument, &at] {
            assert!(line.contains(part.as_str()), "{part} is not in {line}");
        }
    }
}

/// What `perf report` has above the event of the last sample.
fn heading_of_last(adding: &[usize]) -> String {
    let samples = added::expected(adding, added::SAMPLES * adding.len() as u64);
    let (id, _) = samples[samples.len() - 1];
    format!("of event 'sdt_late:n{}'", id - added::FIRST_ID)
}

/// 2500 events have attrs, names and formats that do not fit into a record.
#[test]
fn events_that_were_added_are_read() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (file, injected) = (
        directory.path().join("t.data"),
        directory.path().join("i.data"),
    );
    for adding in [&[0, 3, 3, 40][..], &[0, 2500]] {
        for compression in BOTH {
            std::fs::write(&file, added::file(adding, compression)).unwrap();
            check_added(&perf(&file, &["script", "--ns"]), adding);
            let report = perf(&file, &["report", "--stdio"]);
            let heading = heading_of_last(adding);
            assert!(report.contains(&heading), "{heading}");
            let head = perf(&file, &["report", "--header-only"]);
            assert!(head.contains("name = sdt_late:n2, "), "{head}");
            let events = perf(&file, &["evlist"]);
            let names: Vec<&str> = events.lines().collect();
            let count = adding.last().unwrap();
            assert_eq!(names[..2], ["sdt_app:start", "sdt_app:done"]);
            assert_eq!(names[3], "sdt_late:n0");
            assert_eq!(names[2 + count], format!("sdt_late:n{}", count - 1));
            perf(&file, &["inject", "-o", injected.to_str().unwrap()]);
            let trace = usdtrec_format::trace::Trace::open(&injected).unwrap();
            let names = trace.info().events.iter().map(|event| &event.name);
            let expected = added::info_with(*count);
            assert!(names.eq(expected.events.iter().map(|event| &event.name)));
            assert_eq!(
                trace.info().definitions,
                added::info_with(*count).definitions
            );
        }
    }
}

#[test]
fn events_that_were_added_to_a_pipe_are_read() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    for adding in [&[0, 3, 3, 40][..], &[2, 2], &[0, 1200]] {
        for compression in BOTH {
            std::fs::write(&file, added::stream(adding, compression)).unwrap();
            check_added(&perf(&file, &["script", "--ns"]), adding);
            let report = perf(&file, &["report", "--stdio"]);
            let heading = heading_of_last(adding);
            assert!(report.contains(&heading), "{heading}");
            let piped = Command::new(program())
                .args(["script", "--ns", "-i", "-"])
                .stdin(std::fs::File::open(&file).unwrap())
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&piped.stderr), "");
            check_added(&String::from_utf8_lossy(&piped.stdout), adding);
        }
    }
}

/// A sample of the first event, a tracepoint with this id, with a raw part of these words.
fn raw_sample(tracepoint: u16, words: &[u64], out: &mut Vec<u8>) {
    let raw = u64::from(tracepoint).to_le_bytes().into_iter();
    let raw = raw.chain(words.iter().flat_map(|word| word.to_le_bytes()));
    // Its size is in front of it: it ends at a multiple of 8.
    let raw: Vec<u8> = raw.chain([0; 4]).collect();
    let head = [EVENTS[0].1[0], 0x5555_5555_4100, 0, time(0), 0];
    let size = 8 + 8 * head.len() + 4 + raw.len();
    out.extend(9_u32.to_le_bytes());
    out.extend(2_u16.to_le_bytes());
    out.extend((size as u16).to_le_bytes());
    out.extend(head.iter().flat_map(|word| word.to_le_bytes()));
    out.extend((raw.len() as u32).to_le_bytes());
    out.extend(raw);
}

/// Waits that are not in the sums are shown as such, and not as time.
#[test]
fn missed_waits_are_no_time() {
    if !have_perf() {
        return;
    }
    let layout = RawLayout {
        id: 77,
        size: 36,
        missing: None,
        string_limit: 0,
        arguments: Vec::new(),
        listed: false,
        thread_context: None,
        thread_waits: Some(8),
    };
    let format = TracepointFormat::of_layout("app", "start", &layout, "", None, &[], None);
    let mut info = info();
    info.definitions = None;
    info.tracepoints = vec![format];
    let attr = &mut info.events[0].attr;
    attr.kind = 2;
    attr.config = layout.id.into();
    attr.sample_regs_user = 0;
    attr.sample_type = SampleType(attr.sample_type.0 & !SampleType::REGS_USER.0) | SampleType::RAW;
    let mut records = Vec::new();
    support::process(&mut records);
    for words in [
        [1, 2, 3],
        [1, 2 | (5 * ThreadWaits::MISSED), 3],
        [1 | ThreadWaits::MISSED, 2, 3],
        [ThreadWaits::UNKNOWN; 3],
    ] {
        raw_sample(layout.id, &words, &mut records);
    }
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info, Compression::None).unwrap();
    writer.push(&records);
    writer.finish(&[]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    std::fs::write(&file, log.image(log.steps(), 0)).unwrap();
    let shown = perf(&file, &["script", "-F", "trace:trace"]);
    let shown: Vec<&str> = shown.lines().map(str::trim).collect();
    assert_eq!(
        shown,
        [
            "runnable=1 iowait=2 blocked=3 missed_waits=0",
            "runnable=1 iowait=2 blocked=3 missed_waits=5",
            "runnable=1 iowait=2 blocked=3 missed_waits=0",
            "runnable=72057594037927935 iowait=72057594037927935 blocked=18446744073709551615 missed_waits=255",
        ]
    );
}
