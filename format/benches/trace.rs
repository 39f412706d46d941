//! What writing and reading a trace costs: `cargo bench -p usdtrec-format --bench trace`.
//!
//! CPU time of this thread, median of five, on synthetic samples of 56 to 104 bytes whose registers hold counters, pointers
//! and small numbers, as those of real probes do. Then what several threads gain that compress.

#![allow(clippy::unwrap_used, reason = "a bench ends at its first error")]

use std::fs::File;
use std::hint::black_box;
use std::time::Instant;

use usdtrec_format::perf::{Attr, EventAttr, RecordType, Records, SampleLayout, SampleType};
use usdtrec_format::trace::{BlockReader, Compression, Trace, TraceInfo, TraceWriter};

const EVENTS: u64 = 1_000_000;
/// Bytes taken between two flushes, about what one pass over all rings brings.
const ROUND: usize = 2 << 20;
/// Bytes of a part.
const PART: usize = 1 << 20;
const RUNS: usize = 5;

fn main() {
    println!(
        "{EVENTS} samples, a flush each {} KiB of records",
        ROUND >> 10
    );
    println!(
        "registers  B/sample  mode      push ns  flush ns  file B  open us  read ns  parse ns"
    );
    for registers in [1, 4, 7] {
        let records = samples(registers);
        for compression in [
            Compression::None,
            Compression::Zstd(1),
            Compression::Zstd(3),
        ] {
            let mut runs: Vec<Costs> = (0..RUNS)
                .map(|_| run(&records, registers, compression))
                .collect();
            let mut median = |cost: fn(&Costs) -> u64| {
                runs.sort_by_key(cost);
                cost(&runs[RUNS / 2]) as f64
            };
            let each = |ns: f64| ns / EVENTS as f64;
            println!(
                "{registers:9}  {:8.1}  {:<8}  {:7.1}  {:8.1}  {:6.1}  {:7.0}  {:7.1}  {:8.1}",
                each(records.len() as f64),
                mode(compression),
                each(median(|costs| costs.push)),
                each(median(|costs| costs.flush)),
                each(median(|costs| costs.file)),
                median(|costs| costs.open) / 1000.0,
                each(median(|costs| costs.read)),
                each(median(|costs| costs.parse)),
            );
        }
    }
    print_threads();
}

/// Prints what several threads gain: elapsed time, and CPU time of all threads.
fn print_threads() {
    let records = samples(4);
    println!("\nwriting in parts of {} KiB, zstd 3", PART >> 10);
    println!("threads  elapsed ns  CPU ns  faster");
    let mut alone = 0;
    for threads in [1, 2, 4] {
        let mut runs: Vec<(u64, u64)> = (0..RUNS)
            .map(|_| write_in_parts(&records, threads))
            .collect();
        runs.sort_unstable();
        let (elapsed, cpu) = runs[RUNS / 2];
        if threads == 1 {
            alone = elapsed;
        }
        println!(
            "{threads:7}  {:10.1}  {:6.1}  {:5.2}x",
            elapsed as f64 / EVENTS as f64,
            cpu as f64 / EVENTS as f64,
            alone as f64 / elapsed as f64
        );
    }
}

/// Elapsed time and CPU time, ns, of writing in passes of 32 parts.
fn write_in_parts(records: &[u8], threads: usize) -> (u64, u64) {
    let file = tempfile::tempfile().unwrap();
    let mut writer = TraceWriter::create(file, &info(4), Compression::Zstd(3)).unwrap();
    writer.set_threads(threads.try_into().unwrap(), true);
    let size = records.len() / EVENTS as usize;
    let (start, cpu) = (Instant::now(), time_of(libc::CLOCK_PROCESS_CPUTIME_ID));
    for pass in records.chunks(32 * PART / size * size) {
        for part in pass.chunks(PART / size * size) {
            writer.push(part);
            writer.flush_part().unwrap();
        }
        writer.flush().unwrap();
    }
    let totals = writer.finish(&[]).unwrap();
    let cpu = time_of(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu;
    assert_eq!(totals.samples, EVENTS);
    (start.elapsed().as_nanos() as u64, cpu)
}

fn mode(compression: Compression) -> String {
    match compression {
        Compression::None => "plain".to_owned(),
        Compression::Zstd(level) => format!("zstd {level}"),
    }
}

/// CPU time, ns, and bytes.
struct Costs {
    push: u64,
    flush: u64,
    file: u64,
    open: u64,
    read: u64,
    parse: u64,
}

fn run(records: &[u8], registers: u32, compression: Compression) -> Costs {
    let file = tempfile::tempfile().unwrap();
    let mut writer =
        TraceWriter::create(file.try_clone().unwrap(), &info(registers), compression).unwrap();
    let (mut push, mut flush) = (0, 0);
    let size = records.len() / EVENTS as usize;
    for round in records.chunks(ROUND / size * size) {
        push += cost(|| writer.push(round)).0;
        flush += cost(|| writer.flush().unwrap()).0;
    }
    let totals = writer.finish(&[]).unwrap();
    assert_eq!(totals.samples, EVENTS);
    read(
        file,
        Costs {
            push,
            flush,
            file: totals.file_bytes,
            open: 0,
            read: 0,
            parse: 0,
        },
    )
}

fn read(file: File, mut costs: Costs) -> Costs {
    let (open, trace) = cost(|| Trace::from_file(file).unwrap());
    costs.open = open;
    let layout = SampleLayout::new(&trace.info().events[0].attr);
    let mut reader = BlockReader::new();
    let mut seen = 0;
    for block in trace.blocks() {
        let (read, records) = cost(|| reader.read(&trace, block).unwrap());
        let (parse, samples) = cost(|| {
            Records::new(records)
                .filter(|record| record.kind == RecordType::SAMPLE)
                .filter_map(|record| layout.parse(record.body))
                .map(black_box)
                .count() as u64
        });
        costs.read += read;
        costs.parse += parse;
        seen += samples;
    }
    assert_eq!(seen, EVENTS);
    costs
}

/// CPU time of this thread that something takes, ns.
fn cost<T>(what: impl FnOnce() -> T) -> (u64, T) {
    let start = cpu_time();
    let done = what();
    (cpu_time() - start, done)
}

fn cpu_time() -> u64 {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn time_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a `timespec` of ours, which the call fills.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn info(registers: u32) -> TraceInfo {
    let attr = Attr {
        kind: 8,
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::REGS_USER,
        flags: Attr::SAMPLE_ID_ALL,
        sample_regs_user: (1 << registers) - 1,
        ..Attr::default()
    };
    TraceInfo {
        events: vec![EventAttr {
            attr,
            name: "sdt_app:start".to_owned(),
            ids: (0..8).collect(),
        }],
        ..TraceInfo::default()
    }
}

fn samples(registers: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let mut time = 5_000_000_000;
    for number in 0..EVENTS {
        let cpu = random() % 2;
        time += 400 + random() % 900;
        out.extend(9_u32.to_le_bytes());
        out.extend(2_u16.to_le_bytes());
        out.extend((56 + 8 * registers as u16).to_le_bytes());
        let fixed = [
            cpu,
            0x5555_5555_4100,
            4242 | (4242 + random() % 8) << 32,
            time,
            cpu,
            2,
        ];
        let values = [
            number,
            0x7ffc_1234_0000 + random() % 4096 * 16,
            random() % 100,
            0x5555_5570_0000 + random() % 10_000 * 48,
            0,
            random() % 65536,
            0x7ffc_1234_8000,
        ];
        for word in fixed.iter().chain(&values[..registers as usize]) {
            out.extend(word.to_le_bytes());
        }
    }
    out
}
