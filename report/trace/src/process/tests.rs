use std::ops::Range;
use std::path::Path;

use super::*;
use usdtrec_format::perf::{MmapFile, ProcessChange, ProcessChangeKind, SampleId};

type Told = ProcessChange<'static>;

fn log(entries: Vec<(u64, Told)>) -> ProcessLog {
    let mut log = ProcessLog::default();
    for (time, change) in entries {
        let change = ProcessChange { time, ..change };
        log.push(&change);
        log.push_life(&change);
    }
    log
}

const fn told(pid: i32, tid: i32, kind: ProcessChangeKind<'static>) -> Told {
    ProcessChange {
        time: 0,
        pid,
        tid,
        kind,
    }
}

/// Names and mappings.
#[derive(Debug, Default)]
struct Known {
    processes: Processes,
    mappings: Mappings,
}

impl Known {
    /// What a whole trace says.
    fn new(mut log: ProcessLog) -> Self {
        Self {
            processes: Processes::new(&mut log),
            mappings: Mappings::new(log, &[]),
        }
    }

    /// What comes next in a stream.
    fn learn(&mut self, mut log: ProcessLog) {
        self.processes.learn(&mut log);
        self.mappings.learn(log);
    }

    fn forget_before(&mut self, time: u64) -> Option<Vec<DsoId>> {
        self.processes
            .forget_before(&mut self.mappings, time, Vec::new)
    }

    fn comm(&self, tid: i32, time: u64) -> CommSpan {
        self.processes.comm(tid, time)
    }

    fn mapping(&self, pid: i32, address: u64, time: u64) -> Option<Mapping> {
        self.mappings.mapping(pid, address, time)
    }

    fn mappings_until(&self, pid: i32, time: u64) -> u64 {
        self.mappings.mappings_until(pid, time)
    }
}

const fn named(pid: i32, tid: i32, executes: bool, name: &'static str) -> Told {
    let name = name.as_bytes();
    told(pid, tid, ProcessChangeKind::Named { name, executes })
}

fn forked(pid: i32, tid: i32, (parent_pid, parent_tid): (i32, i32), inherits: bool) -> Told {
    let kind = match pid == parent_pid {
        true => ProcessChangeKind::ThreadBegan { parent_tid },
        false => ProcessChangeKind::ProcessBegan {
            parent_pid,
            parent_tid,
            ran_already: !inherits,
        },
    };
    told(pid, tid, kind)
}

const fn ended(tid: i32) -> Told {
    told(tid, tid, ProcessChangeKind::ThreadEnded { is_last: false })
}

fn mapped(pid: i32, start: u64, end: u64, path: &'static str) -> Told {
    with_protection(5, pid, start..end, path)
}

fn with_protection(protection: u32, pid: i32, range: Range<u64>, path: &'static str) -> Told {
    let map = Mmap {
        pid,
        tid: pid,
        start: range.start,
        len: range.end - range.start,
        offset: 0x1000,
        file: MmapFile::Inode {
            major: 0,
            minor: 0,
            inode: 0,
            generation: 0,
        },
        protection,
        flags: 0,
        cpu_mode: Mmap::USER,
        path: path.as_bytes(),
        id: SampleId::default(),
    };
    told(pid, pid, ProcessChangeKind::Mapped(map))
}

fn comm(known: &Known, tid: i32, time: u64) -> Option<&str> {
    let name = known.comm(tid, time).name?;
    known.processes.name(name).map(|name| name.text)
}

fn path(known: &Known, pid: i32, address: u64, time: u64) -> Option<&str> {
    let mapping = known.mapping(pid, address, time)?;
    known.mappings.file(mapping.dso)?.path.to_str()
}

#[test]
fn names_change_with_time_and_are_inherited() {
    let processes = Known::new(log(vec![
        (50, named(2, 2, true, "child")),
        (0, named(1, 1, false, "shell")),
        (40, forked(2, 2, (1, 1), true)),
        (45, named(1, 1, false, "renamed")),
        (60, forked(2, 3, (2, 2), true)),
    ]));
    assert_eq!(comm(&processes, 1, 0), Some("shell"));
    assert_eq!(comm(&processes, 1, 44), Some("shell"));
    assert_eq!(comm(&processes, 1, 45), Some("renamed"));
    assert_eq!(comm(&processes, 2, 39), None);
    assert_eq!(comm(&processes, 2, 40), Some("shell"));
    assert_eq!(comm(&processes, 2, 50), Some("child"));
    assert_eq!(comm(&processes, 3, 60), Some("child"));
    assert_eq!(comm(&processes, 9, 60), None);
    let span = processes.comm(2, 45);
    assert_eq!((span.from, span.until), (40, 50));
    let never = processes.comm(9, 45);
    assert_eq!((never.name, never.from, never.until), (None, 0, u64::MAX));
}

#[test]
fn a_reused_thread_id_of_an_unnamed_parent_has_no_name() {
    let processes = Known::new(log(vec![
        (10, named(5, 5, false, "old")),
        (20, forked(5, 5, (77, 77), true)),
    ]));
    assert_eq!(comm(&processes, 5, 19), Some("old"));
    assert_eq!(comm(&processes, 5, 20), None);
}

/// Processes with few mappings and those with many are kept in different ways.
#[test]
fn a_process_makes_code_until_it_executes_a_program() {
    for others in [0, 1000] {
        let data = with_protection(3, 1, 0x9000..0xa000, "//anon");
        let mut all = vec![
            (0, mapped(1, 0x1000, 0x3000, "/bin/node")),
            (5, data),
            (10, mapped(1, 0x5000, 0x6000, "//anon")),
            (20, forked(2, 2, (1, 1), true)),
            (30, named(2, 2, true, "app")),
            (31, mapped(2, 0x8000, 0x9000, "/bin/app")),
        ];
        for at in 0..others {
            let start = 0x10_0000 + 0x1000 * at;
            all.push((11, mapped(1, start, start + 0x1000, "/lib/a")));
            all.push((32, mapped(2, start, start + 0x1000, "/lib/a")));
        }
        let known = Known::new(log(all));
        for (pid, time, expected) in [
            (1, 9, false),
            (1, 10, true),
            (1, 40, true),
            (2, 25, true),
            (2, 30, false),
            (2, 40, false),
            (3, 40, false),
        ] {
            let found = known.mappings.is_maker(pid, time);
            assert_eq!(found, expected, "{others}: {pid} at {time}");
        }
    }
}

#[test]
fn mappings_are_inherited_hidden_and_dropped_by_exec() {
    let processes = Known::new(log(vec![
        (0, mapped(1, 0x1000, 0x3000, "/bin/sh")),
        (10, forked(2, 2, (1, 1), true)),
        (15, mapped(1, 0x1000, 0x2000, "/lib/later")),
        (20, mapped(2, 0x2000, 0x3000, "/lib/own")),
        (30, named(2, 2, true, "app")),
        (31, mapped(2, 0x8000, 0x9000, "/bin/app")),
    ]));
    assert_eq!(path(&processes, 1, 0x1800, 14), Some("/bin/sh"));
    assert_eq!(path(&processes, 1, 0x1800, 15), Some("/lib/later"));
    assert_eq!(path(&processes, 2, 0x1800, 10), Some("/bin/sh"));
    assert_eq!(path(&processes, 2, 0x1800, 29), Some("/bin/sh"));
    assert_eq!(path(&processes, 2, 0x2800, 19), Some("/bin/sh"));
    assert_eq!(path(&processes, 2, 0x2800, 20), Some("/lib/own"));
    assert_eq!(path(&processes, 2, 0x1800, 30), None);
    assert_eq!(path(&processes, 2, 0x8000, 40), Some("/bin/app"));
    assert_eq!(path(&processes, 2, 0x9000, 40), None);
    assert_eq!(path(&processes, 2, 0x1800, 9), None);
    assert_eq!(processes.mappings_until(2, 12), 20);
    assert_eq!(processes.mappings_until(2, 20), 30);
    assert_eq!(processes.mappings_until(2, 31), u64::MAX);
    let mapping = processes.mapping(2, 0x8010, 40).unwrap();
    assert_eq!(mapping.file_offset(0x8010), 0x1010);
}

#[test]
fn what_already_ran_does_not_inherit_mappings() {
    let processes = Known::new(log(vec![
        (0, mapped(1, 0x1000, 0x3000, "/bin/sh")),
        (0, forked(2, 2, (1, 1), false)),
        (0, mapped(2, 0x5000, 0x6000, "/bin/app")),
    ]));
    assert_eq!(path(&processes, 2, 0x1000, 5), None);
    assert_eq!(path(&processes, 2, 0x5000, 5), Some("/bin/app"));
}

#[test]
fn a_cycle_of_parents_ends() {
    let processes = Known::new(log(vec![
        (0, forked(2, 2, (1, 1), true)),
        (0, forked(1, 1, (2, 2), true)),
    ]));
    assert_eq!(processes.mapping(1, 0x1000, 5), None);
}

#[test]
fn build_ids_are_added_by_path() {
    let id: BuildId = "00ff".parse().unwrap();
    let mappings = Mappings::new(
        log(vec![(0, mapped(1, 0x1000, 0x2000, "/bin/sh"))]),
        &[FileBuildId {
            path: Path::new("/bin/sh"),
            build_id: id,
        }],
    );
    assert_eq!(mappings.files()[0].build_id, Some(id));
}

#[test]
fn names_from_programs_are_made_harmless() {
    let processes = Known::new(log(vec![(0, named(1, 1, false, "a\x1b[2J\"\n"))]));
    let name = processes.comm(1, 5).name.unwrap();
    let name = processes.processes.name(name).unwrap();
    assert_eq!(name.text, "a\\x1b[2J\"\\n");
    assert_eq!(name.unescaped(), "a\u{1b}[2J\"\n");
}

/// A stream of processes that begin, map something and end, one after the other, beside two that stay.
#[test]
fn who_ended_is_forgotten() {
    let mut processes = Known::default();
    processes.processes.note_living();
    processes.learn(log(vec![
        (0, named(1, 1, false, "daemon")),
        (0, mapped(1, 0x1000, 0x2000, "/bin/daemon")),
        // It begins with the mappings of one that ends at once.
        (1, forked(3, 3, (1, 1), true)),
        (2, mapped(3, 0x3000, 0x4000, "/lib/early")),
        (3, forked(2, 2, (3, 3), true)),
        (4, ended(3)),
        // A thread that outlives the main thread of its process.
        (5, forked(4, 4, (1, 1), true)),
        (5, forked(4, 5, (4, 4), true)),
        (6, named(4, 4, false, "main")),
        (7, ended(4)),
    ]));
    let mut most = 0;
    for round in 1..=200_u64 {
        let mut changes = Vec::new();
        for child in 0..100_u64 {
            let time = round * 10_000 + child * 10;
            let pid = (100 + (round * 100 + child) % 30_000) as i32;
            changes.push((time, forked(pid, pid, (1, 1), true)));
            changes.push((
                time + 1,
                named(pid, pid, true, format!("job {time}").leak()),
            ));
            changes.push((
                time + 2,
                mapped(pid, 0x8000, 0x9000, format!("/bin/{time}").leak()),
            ));
            changes.push((time + 3, ended(pid)));
        }
        processes.learn(log(changes));
        let time = round * 10_000 + 5_000;
        if let Some(kept) = processes.forget_before(time) {
            assert_eq!(kept.len(), processes.mappings.files().len());
        }
        most = most.max(
            processes
                .processes
                .names()
                .count()
                .max(processes.mappings.files().len()),
        );
        for (pid, name) in [(1, "daemon"), (2, "daemon"), (4, "main"), (5, "daemon")] {
            assert_eq!(comm(&processes, pid, time), Some(name), "{pid}");
        }
        for pid in [1, 2, 4] {
            let found = path(&processes, pid, 0x1800, time);
            assert_eq!(found, Some("/bin/daemon"), "{pid}");
        }
        assert_eq!(path(&processes, 2, 0x3800, time), Some("/lib/early"));
        assert_eq!(path(&processes, 1, 0x3800, time), None);
    }
    // 20000 of each came.
    assert!(most < 3000, "{most} names or files are known");
    assert!(processes.processes.threads.len() + processes.mappings.len() < 6000);
}

/// A process that maps the same places again and again.
#[test]
fn mappings_that_are_covered_are_forgotten() {
    let mut processes = Known::default();
    processes.processes.note_living();
    for round in 1..=20_u64 {
        let changes = (0..1000).map(|at| {
            let (time, start) = (round * 1000 + at, 0x10_0000 + at % 50 * 0x1000);
            (
                time,
                mapped(1, start, start + 0x1000, format!("/lib/{time}").leak()),
            )
        });
        processes.learn(log(changes.collect()));
        processes.forget_before(round * 1000 + 999);
        let found = path(&processes, 1, 0x10_0800, round * 1000 + 999);
        let newest = format!("/lib/{}", round * 1000 + 950);
        assert_eq!(found, Some(newest.as_str()));
    }
    assert!(processes.mappings.files().len() < 10_000, "20000 came");
}

/// What is known of a whole trace is what a stream of the same records gives.
#[test]
fn a_whole_trace_and_a_stream_give_the_same() {
    let mut random = 1_u64;
    let mut next = |most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let names = ["sh", "app", "job"];
    let paths = ["/bin/sh", "/bin/app", "/lib/c", "/lib/m"];
    let mut changes = Vec::new();
    for _ in 0..10_000 {
        // Some processes map more than is searched one by one; some numbers are far apart.
        let mut pid = || match next(10) {
            0..4 => 7,
            4 => -1,
            5 => 4_000_000 + next(3) as i32,
            _ => next(300) as i32,
        };
        let (pid, other) = (pid(), pid());
        let start = 0x1000 * next(40);
        let change = match next(10) {
            0 => named(pid, pid, next(2) == 0, names[next(3) as usize]),
            1 => named(pid, other, false, names[next(3) as usize]),
            2 => forked(pid, other, (pid, pid), next(2) == 0),
            3 => forked(pid, pid, (other, other), next(2) == 0),
            _ => mapped(
                pid,
                start,
                start + 0x1000 * next(4),
                paths[next(4) as usize],
            ),
        };
        // Not in order, and many at the same time.
        changes.push((next(3000), change));
    }
    let whole = Known::new(log(changes.clone()));
    let mut stream = Known::default();
    changes.sort_by_key(|change| change.0);
    for some in changes.chunks(1000) {
        stream.learn(log(some.to_vec()));
    }
    for _ in 0..10_000 {
        let id = match next(4) {
            0 => 4_000_000 + next(4) as i32,
            1 => 7,
            _ => next(310) as i32 - 2,
        };
        let (time, address) = (next(3100), 0x800 * next(90));
        let case = format!("{id} {address:#x} at {time}");
        assert_eq!(comm(&whole, id, time), comm(&stream, id, time), "{case}");
        let process = |known: &Known| known.comm(id, time).process;
        assert_eq!(process(&whole), process(&stream), "{case}");
        let span = whole.comm(id, time);
        assert!(span.from <= time && time < span.until, "{case}: {span:?}");
        let found = |known: &Known| {
            let mapping = known.mapping(id, address, time)?;
            let file = known.mappings.file(mapping.dso)?.path.clone();
            Some((mapping.start, mapping.offset, file))
        };
        assert_eq!(found(&whole), found(&stream), "{case}");
        let until = |known: &Known| known.mappings_until(id, time);
        assert_eq!(until(&whole), until(&stream), "{case}");
    }
}
