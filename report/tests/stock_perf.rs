//! Stock `perf script` on the same files: what both print must be the same. Without perf the tests are skipped; with
//! `CI=true` that is a failure.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, BASE, DONE, HIT, Hit, Recorded, Recording};
use object::read::{Object, ObjectSection, ObjectSymbol};
use usdtrec_report::script::{self, ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, ReportError, Sources, TraceSession};
use usdtrec_testing::{skip, test};

/// perf's version (`6.1.192`). Skips the test without perf.
#[track_caller]
fn perf_version() -> String {
    let output = Command::new("perf").arg("--version").output();
    let found = output.ok().filter(|output| output.status.success());
    let text = found.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = text.and_then(|text| text.split_whitespace().last().map(str::to_owned));
    version.unwrap_or_else(|| skip("perf is not installed"))
}

fn perf(path: &Path, fields: &str, more: &[&str]) -> String {
    let output = Command::new("perf")
        .args(["script", "--ns", "-F", fields, "-i"])
        .arg(path)
        .args(more)
        .env("HOME", path.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn ours(path: &Path, fields: &str, times: TimeOrigin) -> Result<String, ReportError> {
    let session = TraceSession::open(path, &Sources::default()).unwrap();
    let options = ScriptOptions {
        fields: fields.parse().unwrap(),
        times,
        nanoseconds: true,
        ..ScriptOptions::default()
    };
    let mut out = Vec::new();
    script::print(&session, &EventSelection::default(), &options, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Compares byte by byte with perf 6.1, with others up to the width of columns, which later versions changed.
#[track_caller]
fn compare(path: &Path, fields: &str) {
    compare_times(path, fields, TimeOrigin::Clock);
}

#[track_caller]
fn compare_times(path: &Path, fields: &str, times: TimeOrigin) {
    let version = perf_version();
    let squeeze = |line: &str| {
        if version.starts_with("6.1.") {
            line.to_owned()
        } else {
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    };
    let option = match times {
        TimeOrigin::Clock => None,
        TimeOrigin::First => Some("--reltime"),
        TimeOrigin::Previous => Some("--deltatime"),
    };
    let theirs = perf(path, fields, option.as_slice());
    let ours = ours(path, fields, times).unwrap();
    assert!(!theirs.is_empty());
    for (number, (their, our)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(
            squeeze(our),
            squeeze(their),
            "line {number} with -F {fields}"
        );
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

const SETS: [&str; 7] = [
    "comm,tid,pid,cpu,time,event,ip,sym,symoff,dso",
    "comm,tid,cpu,time,event,ip,sym",
    "comm,pid,time,event",
    "tid,time,ip,dso",
    "event,time",
    "comm,cpu,time",
    "time,period,event,ip,sym,dso",
];

#[test]
fn processes_that_fork_execute_and_rename() {
    let mut recording = Recording::start();
    recording.comm(0, (100, 100), "server", false);
    recording.comm(0, (100, 101), "a long name 15b", false);
    recording.mmap(0, 100, "/opt/app");
    recording.fork(2_000, (200, 200), (100, 100));
    recording.fork(2_500, (200, 201), (200, 200));
    recording.comm(3_000, (200, 200), "child", true);
    recording.mmap(3_100, 200, "/opt/other");
    recording.comm(4_000, (100, 101), "renamed", false);
    recording.fork(5_000, (300, 300), (200, 200));
    for at in 0..400_u64 {
        let time = 1_000 + at * 20;
        // Each with the time from which on it is there.
        let threads = [
            (100, 100, 0),
            (100, 101, 0),
            (200, 200, 2_000),
            (200, 201, 2_500),
            (300, 300, 5_000),
            (7, 7, 0),
        ];
        let there = threads.iter().filter(|thread| thread.2 <= time);
        let &(pid, tid, _) = there.cycle().nth(at as usize * 5).unwrap();
        recording.hit(Hit {
            id: [support::REQUEST, support::REQUEST_INLINED, DONE][(at % 3) as usize],
            pid,
            tid,
            cpu: (at % 64) as u32,
            time,
            ..HIT
        });
        if at % 90 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    SETS.iter()
        .for_each(|fields| compare(&recorded.path, fields));
}

/// The most bytes of a name that `object::ReadCache` reads: symbols with longer names are not found.
const MAX_NAME_BYTES: usize = 4096;

/// The whole code of a file, mapped, hit at many places.
fn symbols_of(file: &Path) -> Option<Recorded> {
    let data = std::fs::read(file).ok()?;
    let elf = object::File::parse(&*data).ok()?;
    let text = elf.section_by_name(".text")?;
    let (offset, len) = text.file_range()?;
    let has_long_name = |symbol: &object::Symbol<'_, '_>| {
        symbol.is_definition()
            && symbol
                .name_bytes()
                .is_ok_and(|name| name.len() >= MAX_NAME_BYTES)
    };
    let not_found: Vec<Range<u64>> = elf
        .symbols()
        .filter(has_long_name)
        .map(|symbol| symbol.address()..symbol.address() + symbol.size())
        .collect();
    let mut recording = Recording::record(file);
    let (from, to) = (offset & !0xfff, (offset + len).next_multiple_of(0x1000));
    let path = file.to_str()?;
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap_at(0, 100, (BASE, to - from, from), path);
    for at in 0..4000 {
        let within = len / 4000 * at + at % 13;
        let address = text.address() + within;
        if not_found.iter().any(|symbol| symbol.contains(&address)) {
            continue;
        }
        let ip = BASE + (offset - from) + within;
        recording.hit(Hit {
            id: DONE,
            time: 1_000_000 + at,
            ip: Some(ip),
            ..HIT
        });
    }
    Some(recording.finish())
}

/// A library that this very process has mapped.
fn mapped(name: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    paths.find(|path| path.contains(name)).map(PathBuf::from)
}

#[test]
fn symbols_of_a_rust_program() {
    let recorded = symbols_of(&std::env::current_exe().unwrap()).unwrap();
    compare(&recorded.path, "time,ip,sym,symoff,dso");
}

#[test]
fn symbols_of_a_stripped_library() {
    let recorded = mapped("libc.so.6").and_then(|path| symbols_of(&path));
    let recorded = recorded.unwrap_or_else(|| skip("no libc.so.6 is mapped"));
    compare(&recorded.path, "time,ip,sym,symoff,dso");
}

#[test]
fn symbols_of_cxx() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    let recorded = symbols_of(library);
    let recorded = recorded.unwrap_or_else(|| skip("there is no libstdc++.so.6"));
    compare(&recorded.path, "time,ip,sym,symoff,dso");
}

#[test]
fn what_stock_perf_recorded() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/traces");
    for name in [
        "stock-6.1.data",
        "stock-6.1-z.data",
        "stock-6.1-pipe.data",
        "mixed.data",
        "tracepoint.data",
        "chunks.data",
    ] {
        // A copy, so that perf does not write beside it.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::copy(traces.join(name), &path).unwrap();
        compare(&path, "comm,tid,pid,cpu,time,event");
        if name != "stock-6.1-pipe.data" {
            compare(&path, "comm,tid,cpu,time,event,ip,sym,dso");
        }
        for times in [TimeOrigin::First, TimeOrigin::Previous] {
            compare_times(&path, "comm,tid,pid,cpu,time,event", times);
        }
    }
}

#[test]
fn time_of_day() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for (name, fields) in [
        ("demo.data", "comm,tid,cpu,tod,time,event"),
        ("traces/chunks.data", "tod,event,ip"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.data");
        std::fs::copy(testdata.join(name), &path).unwrap();
        compare_times(&path, fields, TimeOrigin::Clock);
        compare_times(&path, fields, TimeOrigin::Previous);
    }
    for name in ["stock-6.1.data", "stock-6.1-pipe.data", "mixed.data"] {
        let path = testdata.join("traces").join(name);
        let error = ours(&path, "tod", TimeOrigin::Clock)
            .unwrap_err()
            .to_string();
        assert!(error.contains("has no times of day"), "{error}");
    }
}
