//! Files of `perf record --call-graph fp,defer` (Linux 6.19 and later), made by the format in `include/uapi/linux/perf_event.h`: the part of a
//! chain in user space is in a record of its own, which comes when the thread returns there.

use std::path::Path;

use serde_json::{Value, json};
use usdtrec_format::perf::{Attr, SampleType};
use usdtrec_report::export;
use usdtrec_report::script::{self, ScriptOptions, StreamOutput};
use usdtrec_report::{ContextQuestion, EventSelection, Format, Sources, TraceSession};
use usdtrec_testing::test;

const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;
const USER_DEFERRED: u64 = -640_i64 as u64;

fn attr() -> Attr {
    Attr {
        kind: 1,
        size: 112,
        sample_period: 1,
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CALLCHAIN,
        // defer_callchain, defer_output
        flags: Attr::SAMPLE_ID_ALL | 1 << 38 | 1 << 39,
        ..Attr::default()
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u64, body: &[u8]) -> Vec<u8> {
    let size = 8 + body.len() as u64;
    [&words(&[kind | size << 48]), body].concat()
}

fn sample(tid: u64, time: u64, chain: &[u64]) -> Vec<u8> {
    let head = [7, 0x1000, 100 | tid << 32, time, chain.len() as u64];
    record(9, &words(&[&head, chain].concat()))
}

/// Has a count of its own if it is given.
fn deferred(tid: u64, time: u64, cookie: u64, chain: &[u64], count: Option<u64>) -> Vec<u8> {
    let head = [cookie, count.unwrap_or(chain.len() as u64)];
    let trailer = [100 | tid << 32, time, 7];
    record(22, &words(&[&head, chain, &trailer].concat()))
}

/// Samples of two threads, which have the same cookie, and their chains in this round and in the next one.
fn data() -> Vec<u8> {
    let round = record(68, &[]);
    [
        sample(101, 10, &[KERNEL, 0xffff_8000_0000_1000, USER_DEFERRED, 1]),
        sample(102, 20, &[USER_DEFERRED, 1]),
        sample(101, 30, &[USER, 0x1000, 0x1100]),
        deferred(101, 40, 1, &[USER, 0x2000, 0x2100], None),
        round.clone(),
        // Two samples in one system call.
        sample(101, 50, &[KERNEL, 0xffff_8000_0000_2000, USER_DEFERRED, 2]),
        sample(101, 60, &[KERNEL, 0xffff_8000_0000_3000, USER_DEFERRED, 2]),
        // It ended before it returned.
        sample(103, 65, &[KERNEL, 0xffff_8000_0000_4000, USER_DEFERRED, 1]),
        round.clone(),
        deferred(102, 45, 1, &[USER, 0x3000], None),
        deferred(101, 70, 2, &[USER, 0x4000, 0x4100], None),
        deferred(103, 80, 1, &[USER, 0x5000], Some(u64::MAX)),
        round,
    ]
    .concat()
}

/// The addresses of each sample's chain, and why it is cut.
fn expected() -> Vec<(Vec<&'static str>, bool)> {
    vec![
        (vec!["0xffff800000001000", "0x2000", "0x2100"], false),
        (vec!["0x3000"], false),
        (vec!["0x1000", "0x1100"], false),
        (vec!["0xffff800000002000", "0x4000", "0x4100"], false),
        (vec!["0xffff800000003000", "0x4000", "0x4100"], false),
        (vec!["0xffff800000004000"], true),
    ]
}

fn file(data: &[u8]) -> Vec<u8> {
    let mut attrs = Vec::new();
    attr().encode(&mut attrs);
    let (ids, first) = (104, 104 + 8 + 112 + 16);
    let header = [
        u64::from_le_bytes(*b"PERFILE2"),
        104,
        128,
        ids + 8,
        128,
        first,
        data.len() as u64,
    ];
    let mut bytes = words(&header);
    bytes.resize(104, 0);
    bytes.extend(words(&[7]));
    bytes.extend(attrs);
    bytes.extend(words(&[ids, 8]));
    bytes.extend(data);
    bytes
}

fn pipe(data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    attr().encode(&mut body);
    body.extend(words(&[7]));
    let head = words(&[u64::from_le_bytes(*b"PERFILE2"), 16]);
    [&head, &record(64, &body), data].concat()
}

#[track_caller]
fn check(text: &[u8]) {
    let text = std::str::from_utf8(text).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    assert_eq!(lines.len(), expected().len(), "{text}");
    for (line, (addresses, is_cut)) in lines.iter().zip(expected()) {
        let stack = line["stack"].as_array().unwrap().iter();
        let stack: Vec<Value> = stack.map(|frame| frame["ip"].clone()).collect();
        assert_eq!(Value::Array(stack), json!(addresses), "{line}");
        let cut = line.get("stack_cut").and_then(Value::as_str);
        let is_not_there = cut.is_some_and(|cut| cut.contains("returns there"));
        assert_eq!(is_not_there, is_cut, "{line}");
    }
}

fn options() -> ScriptOptions {
    ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    }
}

fn script(path: &Path) -> Vec<u8> {
    let session = TraceSession::open(path, &Sources::default()).unwrap();
    let mut out = Vec::new();
    script::print(&session, &EventSelection::default(), &options(), &mut out).unwrap();
    out
}

#[test]
fn the_part_in_user_space_is_put_to_its_samples() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    std::fs::write(&path, file(&data())).unwrap();
    check(&script(&path));

    // The records are kept in a plain file.
    let plain = dir.path().join("plain");
    let session = TraceSession::open(&path, &Sources::default()).unwrap();
    let out = std::fs::File::create_new(&plain).unwrap();
    export::write_perf(&session, &EventSelection::default(), out).unwrap();
    check(&script(&plain));
}

#[test]
fn of_a_stream_too() {
    let mut out = Vec::new();
    let to = StreamOutput {
        out: &mut out,
        lost: &mut |_, _| (),
    };
    script::print_stream(
        &*pipe(&data()),
        Path::new("-"),
        &Sources::default(),
        &EventSelection::default(),
        &ContextQuestion::default(),
        &options(),
        to,
    )
    .unwrap();
    check(&out);
}
