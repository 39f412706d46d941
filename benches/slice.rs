//! What a slice of 10 ms from the middle of a large trace costs: `cargo bench --bench slice`, for `usdtrec script --time`.
//!
//! Two traces of 2 GB (`USDTREC_BENCH_MB` gives another size), one plain and one compressed, a million events a second on two
//! CPUs, with a flush for every megabyte of records, and in each a new process with six mappings: about 80 a second. Beside them, a trace
//! that holds the slice and nothing else: what decoding and printing it costs when there is nothing to skip. Wall-clock time,
//! median of fifteen, the files in memory. Nothing is asserted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot run has no other way to say so"
)]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use usdtrec_format::perf::{Attr, Comm, EventAttr, Mmap, MmapFile, SampleId, SampleType, Task};
use usdtrec_format::schema::Argument;
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::trace::{Compression, Trace, TraceInfo, TraceWriter};
use usdtrec_format::{
    Arch, CapturePlan, CodePlace, Definitions, FileDefinition, ProbeDefinition, Site,
    SiteDefinition,
};

/// Bytes of a sample.
const SAMPLE: usize = 88;
/// Samples of a round: a megabyte.
const ROUND: u64 = (1 << 20) / SAMPLE as u64;
/// ns between two samples.
const STEP: u64 = 1000;
/// Samples of a slice: 10 ms.
const SLICE: u64 = 10_000_000 / STEP;
const BEGIN: u64 = 5_000_000_000;
const RUNS: usize = 15;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let megabytes = std::env::var("USDTREC_BENCH_MB");
    let megabytes: u64 = megabytes.map_or(2000, |text| text.parse().expect("megabytes"));
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().join("slice");
    write(&small, Compression::Zstd(3), u64::MAX, SLICE);
    let alone = median(&small, None);
    println!("10 ms, {SLICE} events\n");
    println!(
        "| trace | MB | events | chunks | open | `script --time`, 10 ms of its middle | of a trace of just these |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!(
        "| the slice alone | | {SLICE} | | | {} | 1 |",
        millis(alone)
    );
    for (name, compression) in [("plain", Compression::None), ("zstd", Compression::Zstd(3))] {
        let file = directory.path().join(name);
        let events = write(&file, compression, megabytes * 1_000_000, u64::MAX);
        // Or the kernel would be at it while it is read.
        File::open(&file).unwrap().sync_all().unwrap();
        let middle = BEGIN + events / 2 * STEP;
        let slice = median(&file, Some((middle, middle + SLICE * STEP - 1)));
        let (open, chunks) = open(&file);
        println!(
            "| {name} | {} | {events} | {chunks} | {} | {} | {:.2} |",
            file.metadata().unwrap().len() / 1_000_000,
            millis(open),
            millis(slice),
            slice.as_secs_f64() / alone.as_secs_f64()
        );
        std::fs::remove_file(file).unwrap();
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Opening alone: the head and the index.
fn open(file: &Path) -> (Duration, usize) {
    let mut times: Vec<_> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            let chunks = Trace::open(file).unwrap().blocks().len();
            (begin.elapsed(), chunks)
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

/// Wall-clock time of `usdtrec script` of a span of time, ns.
fn median(file: &Path, span: Option<(u64, u64)>) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run(file, span)).collect();
    times.sort();
    times[RUNS / 2]
}

fn run(file: &Path, span: Option<(u64, u64)>) -> Duration {
    let mut script = Command::new(env!("CARGO_BIN_EXE_usdtrec"));
    script.args(["script", "-i"]).arg(file);
    if let Some((from, to)) = span {
        let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        script.args(["--time", &format!("{},{}", seconds(from), seconds(to))]);
    }
    let printed = directory_of(file).join("printed");
    script
        .stdout(File::create(&printed).unwrap())
        .stderr(Stdio::inherit());
    let begin = Instant::now();
    assert!(script.status().unwrap().success());
    let time = begin.elapsed();
    let lines = std::fs::read(printed)
        .unwrap()
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count();
    assert_eq!(lines as u64, SLICE);
    time
}

fn directory_of(file: &Path) -> &Path {
    file.parent().unwrap()
}

/// Writes a trace until it has so many bytes or samples, and tells how many samples it has.
fn write(path: &Path, compression: Compression, bytes: u64, samples: u64) -> u64 {
    let info = info();
    let id_type = info.events[0].attr.id_type();
    let mut writer = TraceWriter::create(File::create(path).unwrap(), &info, compression).unwrap();
    let mut round = Vec::new();
    let mut written = 0;
    while written < samples && writer.totals().file_bytes < bytes {
        round.clear();
        put_process((written / ROUND) as i32, written, id_type, &mut round);
        let count = ROUND.min(samples - written);
        // Each CPU's ring after the other.
        for cpu in 0..2 {
            let numbers = written..written + count;
            numbers
                .filter(|number| number % 2 == cpu)
                .for_each(|number| put_sample(number, &mut round));
        }
        writer.push(&round);
        writer.flush().unwrap();
        written += count;
    }
    writer.finish(&[]).unwrap();
    written
}

/// A new process with a name and mappings.
fn put_process(process: i32, number: u64, id_type: SampleType, out: &mut Vec<u8>) {
    let pid = 10_000 + process % 20_000;
    let time = BEGIN + number * STEP;
    let id = SampleId {
        pid,
        tid: pid,
        time,
        ..SampleId::default()
    };
    let fork = Task {
        pid,
        parent_pid: 1,
        tid: pid,
        parent_tid: 1,
        time,
        already_ran: false,
        id,
    };
    fork.encode_fork(id_type, out);
    let comm = Comm {
        pid,
        tid: pid,
        exec: true,
        name: b"app",
        id,
    };
    comm.encode(id_type, out);
    for place in 0..6 {
        let path = format!("/opt/app/lib/lib{place}.so");
        let map = Mmap {
            pid,
            tid: pid,
            start: 0x5555_5555_4000 + place * 0x10_0000,
            len: 0x2000,
            offset: 0x1000,
            file: MmapFile::Inode {
                major: 8,
                minor: 1,
                inode: 77 + place,
                generation: 0,
            },
            protection: 5,
            flags: 2,
            cpu_mode: Mmap::USER,
            path: path.as_bytes(),
            id,
        };
        map.encode(id_type, out);
    }
}

fn put_sample(number: u64, out: &mut Vec<u8>) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let start = out.len();
    out.extend(9_u32.to_le_bytes());
    out.extend(2_u16.to_le_bytes());
    out.extend((SAMPLE as u16).to_le_bytes());
    let words = [
        7 + number % 2,
        0x5555_5555_4100,
        10_000 | (10_000 + mixed % 8) << 32,
        BEGIN + number * STEP,
        number % 2,
        2,
        number,
        0x7ffc_1234_0000 + mixed % 4096 * 16,
        mixed % 100,
        mixed % 65536,
    ];
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    assert_eq!(out.len() - start, SAMPLE);
}

fn info() -> TraceInfo {
    let registers = 0b1111;
    let attr = Attr {
        kind: 8,
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::REGS_USER,
        flags: Attr::SAMPLE_ID_ALL,
        sample_regs_user: registers,
        ..Attr::default()
    };
    let site = Site {
        pc: 0x1100,
        base: 0,
        semaphore: 0,
        offset: Some(0x1100),
        semaphore_offset: None,
        args: "8@%rax 8@%rbx -4@%ecx 4@%edx".to_owned(),
    };
    let probe = ProbeDefinition {
        event: "sdt_app:start".to_owned(),
        provider: "app".to_owned(),
        name: "start".to_owned(),
        description: None,
        needs: None,
        call: None,
        lock: None,
        telemetry: Telemetry::default(),
        filter: None,
        file: 0,
        plan: CapturePlan {
            registers,
            ..CapturePlan::default()
        },
        arguments: (0..4).map(Argument::unnamed).collect(),
        shown: None,
        sites: vec![SiteDefinition {
            site,
            ids: vec![7, 8],
            place: CodePlace::default(),
        }],
    };
    TraceInfo {
        events: vec![EventAttr {
            attr,
            name: probe.event.clone(),
            ids: vec![7, 8],
        }],
        definitions: Some(Definitions {
            version: Definitions::VERSION,
            producer: "a benchmark".to_owned(),
            engine: "perf".to_owned(),
            uncounted: None,
            boot: None,
            files: vec![FileDefinition {
                path: "/opt/app/bin/app".into(),
                build_id: None,
                arch: Some(Arch::X86_64),
                by_any_pattern: false,
            }],
            probes: vec![probe],
        }),
        ..TraceInfo::default()
    }
}
