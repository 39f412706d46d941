//! Files that are small and would become much: bounded memory and time, whatever they claim.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use tempfile::NamedTempFile;
use usdtrec_format::perf::{Comm, Mmap, SampleId, Task};
use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter};

use crate::child;
use crate::fuzz::{compact::compact, records};

const MIB: u64 = 1 << 20;

fn writer(info: &TraceInfo) -> (NamedTempFile, TraceWriter<File>) {
    let file = NamedTempFile::new().unwrap();
    let writer = TraceWriter::create(file.reopen().unwrap(), info, Compression::Zstd(1)).unwrap();
    (file, writer)
}

fn stored(bytes: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().write_all_at(bytes, 0).unwrap();
    file
}

/// Samples of the first event, one each nanosecond and thread.
fn samples(times: std::ops::Range<u64>, address: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut out = Vec::new();
    for time in times {
        for word in [9 | 48 << 48, 1, address(time), 7 | 8 << 32, time, 0] {
            out.extend(u64::to_le_bytes(word));
        }
    }
    out
}

/// Blocks that all reach over the same time, one sample in each.
#[test]
fn very_many_small_blocks_that_overlap_are_put_in_order() {
    const BLOCKS: u64 = 30_000;
    let (file, mut writer) = writer(&records::info());
    for block in 0..BLOCKS {
        // The first and the last block span all.
        writer.push(&samples(1 + block..2 + block, |_| 0x1000));
        if block % 100 == 0 {
            writer.push(&samples(BLOCKS..BLOCKS + 1, |_| 0x1000));
        }
        writer.flush().unwrap();
    }
    let ran = child::run(&["script", "-F", "time", "--ns"], file.path(), 300 * MIB);
    ran.assert_well();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len() as u64, BLOCKS + BLOCKS / 100);
    assert!(lines.is_sorted());
}

/// All samples have one time.
#[test]
fn very_many_samples_of_one_time_are_shown_in_pieces() {
    let (file, mut writer) = writer(&records::info());
    let one: Vec<u8> = samples(5..6, |_| 0x1000);
    writer.push(&one.repeat(300_000));
    writer.flush().unwrap();
    let ran = child::run(&["script"], file.path(), 300 * MIB);
    ran.assert_well();
    assert_eq!(ran.out.lines().count(), 300_000);
}

/// Records that compress a thousandfold: each takes memory of its own.
#[test]
fn threads_that_a_file_makes_up_take_little_more_than_their_records() {
    const THREADS: i32 = 400_000;
    let info = records::info();
    let id_type = info.events[0].attr.id_type();
    let (file, mut writer) = writer(&info);
    let mut out = Vec::new();
    for tid in 0..THREADS {
        let id = SampleId::default();
        let task = Task {
            pid: tid,
            parent_pid: tid - 1,
            tid,
            parent_tid: tid - 1,
            time: 1,
            already_ran: false,
            id,
        };
        task.encode_fork(id_type, &mut out);
        let comm = Comm {
            pid: tid,
            tid,
            exec: false,
            name: b"app",
            id,
        };
        comm.encode(id_type, &mut out);
    }
    let raw = out.len() as u64;
    writer.push(&out);
    writer.push(&records::hits(1000));
    writer.flush().unwrap();
    let ran = child::run(&["report"], file.path(), 100 * MIB + 8 * raw);
    ran.assert_well();
}

/// Processes that begin, run a program, hit a probe once and end, one after the other, as a shell script's.
fn short_processes(count: i32) -> NamedTempFile {
    const PATHS: [&[u8]; 4] = [b"/bin/app", b"/lib/libc.so.6", b"/lib/ld.so", b"[vdso]"];
    let info = records::info();
    let id_type = info.events[0].attr.id_type();
    let (file, mut writer) = writer(&info);
    let mut out = Vec::new();
    for pid in 1000..1000 + count {
        let time = 1000 * pid as u64;
        let id = SampleId {
            pid,
            tid: pid,
            time,
            ..SampleId::default()
        };
        let task = Task {
            pid,
            parent_pid: 7,
            tid: pid,
            parent_tid: 7,
            time,
            already_ran: false,
            id,
        };
        task.encode_fork(id_type, &mut out);
        let comm = Comm {
            pid,
            tid: pid,
            exec: true,
            name: b"app",
            id,
        };
        comm.encode(id_type, &mut out);
        for (number, path) in (0..).zip(PATHS) {
            let map = Mmap {
                pid,
                tid: pid,
                // Somewhere else in each process.
                start: 0x5500_0000_0000 + 0x1000_0000 * number + 0x1000 * (pid as u64 % 50_000),
                len: 0x4000,
                id,
                ..records::mapping(path)
            };
            map.encode(id_type, &mut out);
        }
        for word in [
            9 | 48 << 48,
            1,
            0x1000,
            pid as u64 | (pid as u64) << 32,
            time + 500,
            0,
        ] {
            out.extend(u64::to_le_bytes(word));
        }
        task.encode_exit(id_type, &mut out);
        if out.len() > 4 << 20 {
            writer.push(&out);
            writer.flush().unwrap();
            out.clear();
        }
    }
    writer.push(&out);
    writer.finish(&[]).unwrap();
    file
}

/// A name of a process takes a few bytes, and its mappings none where they are not needed.
#[test]
fn very_many_short_processes_take_little_memory() {
    const PROCESSES: i32 = 200_000;
    let file = short_processes(PROCESSES);
    for (arguments, most) in [
        (&["report", "--format", "json"][..], 80),
        (&["report", "--sort", "comm"], 50),
        (&["script", "-F", "comm,time"], 60),
        // Asked for: but all have the same few files.
        (&["report", "--sort", "dso"], 120),
    ] {
        let ran = child::run(arguments, file.path(), most * MIB);
        ran.assert_well();
        let has = |text: &str| ran.out.contains(text);
        assert!(
            has("app") || has("[unknown]"),
            "{arguments:?}: {:.500}",
            ran.out
        );
        if arguments.contains(&"json") {
            assert!(
                has(&format!("\"processes\":{PROCESSES}")),
                "{:.500}",
                ran.out
            );
        }
    }
}

/// Every sample asks for an address among all mappings so far, and is the first that asks for it.
#[test]
fn very_many_mappings_are_not_looked_at_one_by_one() {
    const MAPS: u64 = 40_000;
    let info = records::info();
    let id_type = info.events[0].attr.id_type();
    let (file, mut writer) = writer(&info);
    for map in 0..MAPS {
        let mut out = Vec::new();
        let id = SampleId {
            pid: 7,
            tid: 7,
            time: 10 * map,
            ..SampleId::default()
        };
        let map = Mmap {
            start: 0x10_0000 + 0x1000 * map,
            len: 0x1000,
            id,
            ..records::mapping(b"[odd]")
        };
        map.encode(id_type, &mut out);
        writer.push(&out);
    }
    writer.push(&samples(1..10 * MAPS, |time| {
        // Some are mapped only later.
        0x10_0000 + time * if time % 3 == 0 { 800 } else { 40 }
    }));
    writer.flush().unwrap();
    let ran = child::run(&["script", "-F", "time,dso,ip"], file.path(), 300 * MIB);
    ran.assert_well();
    assert!(ran.out.contains("([odd])") && ran.out.contains("([unknown])"));
}

/// A name of 60 KB makes a column for all others.
#[test]
fn a_long_name_does_not_widen_all_others() {
    let mut info = records::info();
    info.definitions = None;
    let event = info.events[0].clone();
    info.events = (0..3000)
        .map(|number| {
            let mut event = event.clone();
            event.name = format!("event{number}");
            event.ids = vec![1 + number];
            event
        })
        .collect();
    info.events[7].name = "x".repeat(8_000);
    let id_type = event.attr.id_type();
    let (file, mut writer) = writer(&info);
    let mut out = Vec::new();
    let id = SampleId::default();
    let name = "y".repeat(4000);
    let comm = Comm {
        pid: 7,
        tid: 8,
        exec: false,
        name: name.as_bytes(),
        id,
    };
    comm.encode(id_type, &mut out);
    writer.push(&out);
    writer.push(&samples(1..5000, |_| 0x1000));
    writer.flush().unwrap();
    for arguments in [
        &["script", "-F", "event,time"][..],
        &["report"],
        &["report", "--sort", "comm,event"],
        &["script", "--format", "csv"],
    ] {
        let ran = child::run(arguments, file.path(), 150 * MIB);
        ran.assert_well();
        let most = if arguments.contains(&"csv") {
            40 << 20
        } else {
            4 << 20
        };
        assert!(
            ran.out.len() < most,
            "{arguments:?}: {} bytes",
            ran.out.len()
        );
    }
}

/// Sets 8 bytes of a file and makes it, without disk space, as long as a claim needs it to be.
fn claiming(bytes: &[u8], patches: &[(u64, u64)], len: u64) -> NamedTempFile {
    let file = stored(bytes);
    file.as_file().set_len(len).unwrap();
    for (at, value) in patches {
        file.as_file()
            .write_all_at(&value.to_le_bytes(), *at)
            .unwrap();
    }
    file
}

/// Claims that are true: the file has as many bytes, although they were never written.
#[test]
fn claims_that_a_sparse_file_bears_out_are_not_read_into_memory() {
    const LONG: u64 = 1 << 40;
    let bytes = compact(records::trace(Compression::None, true));
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (attr_size, attrs, data_end) = (word(16), word(24), word(40) + word(48));
    let first_ids = attrs + attr_size - 16;
    let cases: [&[(u64, u64)]; 5] = [
        // Attrs: as many as fit, and as large as they may be.
        &[(24, 4096), (32, LONG - 4096)],
        &[(16, 65_535), (24, 4096), (32, LONG - 4096)],
        // Ids of the first attr.
        &[(first_ids, 4096), (first_ids + 8, LONG - 4096)],
        // Sections of the first features.
        &[(data_end, 4096), (data_end + 8, LONG - 4096)],
        &[
            (data_end, 4096),
            (data_end + 8, 64 << 20),
            (data_end + 16, 4096),
            (data_end + 24, 64 << 20),
        ],
    ];
    for patches in cases {
        let file = claiming(&bytes, patches, LONG);
        let ran = child::run(&["script"], file.path(), 300 * MIB);
        let what = format!("{patches:?}: {:?}: {}", ran.took, ran.errors);
        // Neither a signal nor long.
        assert!(
            ran.status.code().is_some() && ran.took.as_secs() < 300,
            "{what}"
        );
    }
}

/// JSON that decompresses to far more than any recorder writes.
#[test]
fn definitions_that_inflate_are_refused() {
    let bytes = records::trace(Compression::None, true);
    let events = |out: &str| out.lines().filter(|line| line.contains("sdt_app")).count();
    let whole = events(&child::run(&["script"], stored(&bytes).path(), 400 * MIB).out);
    assert!(whole > 0);
    for (json, part) in [
        (format!("[{}", " ".repeat(60 << 20)), "expected at most"),
        // Numbers that do not compress as well.
        (
            (0_u64..5 << 20).fold("[0".to_owned(), |json, number| {
                json + "," + &(number * 40_503 % 65_536).to_string()
            }),
            "values",
        ),
    ] {
        let blob = blob(json.as_bytes());
        let mut file = bytes.clone();
        let places: Vec<usize> = file
            .windows(8)
            .enumerate()
            .filter(|(_, window)| window == b"USDTDEFS")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(places.len(), 2);
        // The copy in the data is made none, so that the one in the head is all there is; its section is moved to the end.
        for at in places {
            file[at] = b'-';
        }
        let version = section_of(&mut file, 5);
        let mut body = 64_u32.to_le_bytes().to_vec();
        body.resize(68, 0);
        body.extend(&blob);
        let at = file.len() as u64;
        file[version..version + 8].copy_from_slice(&at.to_le_bytes());
        file[version + 8..version + 16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        without_head_checksums(&mut file);
        file.extend(body);
        let ran = child::run(&["script"], stored(&file).path(), 400 * MIB);
        ran.assert_well();
        assert!(ran.errors.contains(part), "{}", ran.errors);
        assert_eq!(events(&ran.out), whole);
    }
}

/// Makes the nodes of the index those of version 1, which have no checksums of the head.
fn without_head_checksums(file: &mut [u8]) {
    let nodes: Vec<usize> = file
        .windows(8)
        .enumerate()
        .filter(|(_, window)| window == b"USDTINDX")
        .map(|(at, _)| at)
        .collect();
    assert!(!nodes.is_empty());
    for at in nodes {
        file[at + 16..at + 18].copy_from_slice(&1_u16.to_le_bytes());
        let len = u32::from_le_bytes(*file[at + 12..].first_chunk().unwrap()) as usize;
        let crc = crc32fast::hash(&file[at + 12..at + len]);
        file[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
    }
}

fn blob(json: &[u8]) -> Vec<u8> {
    let frame = zstd::bulk::compress(json, 1).unwrap();
    let mut blob = b"USDTDEFS\x01\0\0\0".to_vec();
    blob.extend(crc32fast::hash(&frame).to_le_bytes());
    blob.extend((json.len() as u64).to_le_bytes());
    blob.extend((frame.len() as u64).to_le_bytes());
    blob.extend(frame);
    blob
}

/// The place of a feature's section in the table of a file.
fn section_of(file: &mut [u8], feature: u32) -> usize {
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap());
    let before = (word(72) & ((1 << feature) - 1)).count_ones() as usize;
    (word(40) + word(48)) as usize + 16 * before
}

/// A zstd frame that claims to become very long, or to need a very long memory.
#[test]
fn frames_that_claim_much_are_not_believed() {
    // Magic; content size of 8 bytes, one segment; 2^60 bytes; one raw block of a byte.
    let mut content = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    content.extend((1_u64 << 60).to_le_bytes());
    content.extend([0x09, 0, 0, 7]);
    // Magic; a window of 2^41 bytes.
    let window = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 0x09, 0, 0, 7];
    for frame in [content, window] {
        let mut file = compact(records::trace(Compression::Zstd(1), true));
        let at = chunk(&file);
        let mut record = file[at..at + 56].to_vec();
        record.extend(&frame);
        let size = record.len() as u16;
        record[6..8].copy_from_slice(&size.to_le_bytes());
        let crc = crc32fast::hash(&record[28..]);
        record[24..28].copy_from_slice(&crc.to_le_bytes());
        // The rest of the old record becomes one of perf's that says nothing.
        let old = u16::from_le_bytes([file[at + 6], file[at + 7]]) as usize;
        let rest = old - record.len();
        record.extend(68_u32.to_le_bytes());
        record.extend([0; 2]);
        record.extend((rest as u16).to_le_bytes());
        record.resize(old, 0);
        file[at..at + old].copy_from_slice(&record);
        // Without an index, so that the walk finds it.
        let index = file
            .windows(8)
            .rposition(|window| window == b"USDTINDX")
            .unwrap();
        file[index] = b'-';
        let ran = child::run(&["script"], stored(&file).path(), 100 * MIB);
        ran.assert_well();
        assert!(
            ran.errors.contains(&format!("offset {at}: chunk lost")),
            "{}",
            ran.errors
        );
        assert!(ran.out.lines().count() >= 10, "{}", ran.out);
        // As a piece of one stream, which `perf record -z` writes.
        let mut stream = file[..at].to_vec();
        stream.extend(81_u32.to_le_bytes());
        stream.extend([0; 2]);
        stream.extend((8 + frame.len() as u16).to_le_bytes());
        stream.extend(&frame);
        let size = stream.len() as u64 - u64::from_le_bytes(*file[40..].first_chunk().unwrap());
        stream[48..56].copy_from_slice(&size.to_le_bytes());
        let ran = child::run(&["script"], stored(&stream).path(), 300 * MIB);
        ran.assert_well();
    }
}

/// Where the last chunk of samples is.
fn chunk(file: &[u8]) -> usize {
    let magic = file
        .windows(4)
        .rposition(|window| window == b"USDC")
        .unwrap();
    magic - 16
}

/// Damage is reported, but not without end.
#[test]
fn damage_at_very_many_places_is_reported_in_a_few_lines() {
    let bytes = compact(records::trace(Compression::Zstd(1), true));
    let at = chunk(&bytes);
    let size = u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]) as usize;
    let mut file = bytes[..at].to_vec();
    for _ in 0..5000 {
        file.extend(&bytes[at..at + size]);
        // No record.
        file.extend([0xff; 3]);
    }
    file[48..56].copy_from_slice(&0_u64.to_le_bytes());
    let ran = child::run(&["script", "-F", "time"], stored(&file).path(), 200 * MIB);
    ran.assert_well();
    assert!(
        ran.errors.lines().count() < 40,
        "{} lines",
        ran.errors.lines().count()
    );
    assert!(
        ran.errors.contains("more places are damaged"),
        "{}",
        ran.errors
    );
    assert!(ran.out.lines().count() >= 5000 * 3);
}
