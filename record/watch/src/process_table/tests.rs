use super::*;
use crate::limits::MAX_MAPPINGS_OF_PROCESS;
use usdtrec_format::perf::{Comm, RecordOrder, Records, SampleId, Task};

const TYPE: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);

fn id(pid: i32, time: u64) -> SampleId {
    SampleId {
        pid,
        tid: pid,
        time,
        ..SampleId::default()
    }
}

const MAP: Mmap<'static> = Mmap {
    pid: 7,
    tid: 7,
    start: 0x1000,
    len: 0x1000,
    offset: 0,
    file: MmapFile::Unknown,
    protection: 5,
    flags: 2,
    cpu_mode: Mmap::USER,
    path: b"/lib/x",
    id: SampleId {
        pid: 7,
        tid: 7,
        time: 0,
        stream_id: 0,
        id: 0,
        cpu: 0,
        identifier: 0,
    },
};

/// A mapping of 0x1000 bytes for each letter of the path, from file offset 0.
fn mapped(pid: i32, time: u64, start: u64, path: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let map = Mmap {
        pid,
        tid: pid,
        start,
        len: 0x1000 * path.len() as u64,
        path: path.as_bytes(),
        id: id(pid, time),
        ..MAP
    };
    map.encode(TYPE, &mut out);
    out
}

fn task(pid: i32, parent: i32, time: u64) -> Task {
    Task {
        pid,
        parent_pid: parent,
        tid: pid,
        parent_tid: parent,
        time,
        already_ran: false,
        id: id(pid, time),
    }
}

fn forked(pid: i32, parent: i32, time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    task(pid, parent, time).encode_fork(TYPE, &mut out);
    out
}

fn executed(pid: i32, time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let comm = Comm {
        pid,
        tid: pid,
        exec: true,
        name: b"new",
        id: id(pid, time),
    };
    comm.encode(TYPE, &mut out);
    out
}

fn exited(pid: i32, time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    task(pid, 1, time).encode_exit(TYPE, &mut out);
    out
}

fn table() -> ProcessTable {
    ProcessTable::new(TYPE, true)
}

/// Has a table take records of several CPUs.
fn learn(table: &mut ProcessTable, records: &[Vec<u8>]) {
    let all = RecordOrder::default().pass(&records.concat(), u64::MAX, TYPE);
    for record in Records::new(&all) {
        table.take(&record);
    }
}

/// Number of the file and the offset in it.
fn found(table: &ProcessTable, pid: i32, address: u64, time: u64) -> Option<(u64, u64)> {
    let mapping = table.at(pid, time)?.mapping(address, time)?;
    let offset = mapping.offset + (address - mapping.range.start);
    Some((mapping.file.number, offset))
}

#[test]
fn a_mapping_is_there_until_another_covers_it() {
    let mut table = table();
    // In the order of two CPUs, not of time.
    learn(
        &mut table,
        &[mapped(7, 20, 0x2000, "b"), mapped(7, 10, 0x1000, "aaa")],
    );
    let (a, b) = (0, 1);
    for (address, time, expected) in [
        (0x1000, 9, None),
        (0x1000, 10, Some((a, 0))),
        (0x2fff, 19, Some((a, 0x1fff))),
        (0x2fff, 20, Some((b, 0xfff))),
        (0x3000, 20, Some((a, 0x2000))),
        (0x3fff, 99, Some((a, 0x2fff))),
        (0x4000, 99, None),
    ] {
        let is = found(&table, 7, address, time);
        assert_eq!(is, expected, "{address:#x} at {time}");
    }
    assert_eq!(table.mappings, 3);
    table.forget_before(20);
    assert_eq!(found(&table, 7, 0x2fff, 19), Some((a, 0x1fff)));
    table.forget_before(21);
    assert_eq!(found(&table, 7, 0x2fff, 19), None);
    assert_eq!(found(&table, 7, 0x2fff, 20), Some((b, 0xfff)));
}

#[test]
fn children_have_their_parents_mappings_until_they_execute_a_program() {
    let mut table = table();
    learn(&mut table, &[mapped(7, 10, 0x1000, "a"), forked(8, 7, 20)]);
    learn(
        &mut table,
        &[
            mapped(7, 30, 0x1000, "b"),
            executed(8, 40),
            mapped(8, 41, 0x1000, "c"),
        ],
    );
    for (pid, time, expected) in [
        (7, 25, Some(0)),
        (7, 35, Some(1)),
        (8, 25, Some(0)),
        (8, 39, Some(0)),
        (8, 40, None),
        (8, 41, Some(2)),
    ] {
        let is = found(&table, pid, 0x1234, time).map(|(file, _)| file);
        assert_eq!(is, expected, "{pid} at {time}");
    }
    learn(&mut table, &[exited(8, 50)]);
    table.forget_before(50);
    assert!(found(&table, 8, 0x1234, 49).is_some());
    table.forget_before(51);
    assert!(found(&table, 8, 0x1234, 49).is_none());
    assert_eq!(table.mappings, 1);
    // The next process of that number.
    learn(&mut table, &[forked(8, 7, 60)]);
    assert_eq!(found(&table, 8, 0x1234, 60), Some((1, 0x234)));
}

/// The process that had the number before is known to samples of it.
#[test]
fn a_pid_is_that_of_another_process() {
    let mut table = table();
    let before = [forked(8, 1, 10), mapped(8, 11, 0x1000, "a")];
    learn(&mut table, &before);
    // Its end was lost.
    learn(&mut table, &[forked(8, 1, 20), mapped(8, 21, 0x1000, "b")]);
    for (time, expected) in [(9, None), (15, Some(0)), (20, None), (21, Some(1))] {
        let is = found(&table, 8, 0x1000, time).map(|(file, _)| file);
        assert_eq!(is, expected, "at {time}");
    }
    // Records that are older than the process are not about it.
    for late in [exited(8, 19), mapped(8, 19, 0x1000, "c")] {
        let record = Records::new(&late).next().expect("a record");
        assert_eq!(table.take(&record), None);
    }
    assert_eq!(found(&table, 8, 0x1000, 22), Some((1, 0)));
    table.forget_before(21);
    assert_eq!(found(&table, 8, 0x1000, 15), None);
    assert_eq!((table.mappings, table.threads), (1, 1));
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let mut table = table();
    let mut thread = Vec::new();
    let second = Task {
        tid: 9,
        ..task(8, 8, 11)
    };
    second.encode_fork(TYPE, &mut thread);
    learn(&mut table, &[forked(8, 1, 10), thread]);
    let mut ended = Vec::new();
    second.encode_exit(TYPE, &mut ended);
    for (record, expected) in [(exited(8, 20), false), (ended, true)] {
        let record = Records::new(&record).next().expect("a record");
        let kind = table.take(&record).map(|change| change.kind);
        let is_last = expected;
        assert_eq!(kind, Some(ProcessChangeKind::ThreadEnded { is_last }));
    }
}

/// A thread that has no room for its name is counted once, however often it is named.
#[test]
fn a_process_without_named_threads_ends() {
    for has_room_later in [false, true] {
        let mut table = table();
        table.threads = MAX_THREADS;
        learn(&mut table, &[forked(8, 1, 10)]);
        table.threads -= usize::from(has_room_later);
        for _ in 0..2 {
            table.add_thread(8, 8, b"x"[..].into(), false);
        }
        learn(&mut table, &[exited(8, 20)]);
        table.forget_before(30);
        assert!(table.at(8, 30).is_none(), "{has_room_later}");
    }
}

#[test]
fn what_is_too_much_is_unknown_and_not_what_was_there_before() {
    let mut table = table();
    learn(&mut table, &[mapped(7, 10, 0x1000, "a")]);
    for number in 1..MAX_MAPPINGS_OF_PROCESS as u64 {
        learn(&mut table, &[mapped(7, 10, 0x1000 * (2 * number + 1), "a")]);
    }
    assert_eq!(table.mappings, MAX_MAPPINGS_OF_PROCESS);
    learn(&mut table, &[mapped(7, 20, 0x8000_0000, "b")]);
    assert_eq!(found(&table, 7, 0x8000_0000, 20), None);
    table.mappings = MAX_MAPPINGS;
    learn(&mut table, &[mapped(7, 30, 0x1000, "b")]);
    assert_eq!(found(&table, 7, 0x1000, 25), Some((0, 0)));
    assert_eq!(found(&table, 7, 0x1000, 30), None);
}

/// A library is mapped as a whole, and its segments over that.
#[test]
fn a_mapping_over_another_one_leaves_the_rest_of_it() {
    let mut table = table();
    for (range, offset) in [
        (0x1000..0x9000_u64, 0),
        (0x9000..0xa000, 0x70),
        (0x3000..0x4000, 0x50),
        (0x8000..0x9800, 0x60),
    ] {
        let map = Mmap {
            start: range.start,
            len: range.end - range.start,
            offset,
            ..MAP
        };
        table.map(&map, 5);
    }
    let process = table.at(MAP.pid, 5).expect("the process");
    let left = process.space.mappings();
    let left = left.map(|known| (known.range.clone(), known.offset));
    let expected = [
        (0x1000..0x3000, 0),
        (0x3000..0x4000, 0x50),
        (0x4000..0x8000, 0x3000),
        (0x8000..0x9800, 0x60),
        (0x9800..0xa000, 0x870),
    ];
    assert_eq!(left.collect::<Vec<_>>(), expected);
}

#[test]
fn memory_for_processes_is_bounded() {
    let mut table = table();
    for pid in 0..MAX_THREADS as i32 + 100 {
        table.add_thread(pid, pid, b"x"[..].into(), true);
    }
    for start in 0..MAX_MAPPINGS_OF_PROCESS as u64 + 100 {
        let start = start << 12;
        table.map(&Mmap { start, ..MAP }, 2);
    }
    assert_eq!(table.threads, MAX_THREADS);
    assert_eq!(table.mappings, MAX_MAPPINGS_OF_PROCESS);
    assert_eq!(table.files.len(), 1);
}

/// Files that no process maps any more make room for others.
#[test]
fn files_are_forgotten_with_their_mappings() {
    let mut table = table();
    for number in 0..3 * MANY_FILES {
        let path = number.to_string();
        let path = path.as_bytes();
        table.map(&Mmap { path, ..MAP }, number as u64);
        table.forget_before(number as u64 + 1);
    }
    assert!(table.files.len() <= MANY_FILES, "{}", table.files.len());
    let last = 3 * MANY_FILES as u64 - 1;
    assert_eq!(table.files_after(Some(last - 1)).count(), 1);
    assert_eq!(table.files_after(Some(last)).count(), 0);
}
