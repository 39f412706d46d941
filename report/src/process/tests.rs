use super::log::FileRange;
use super::*;

type Told = Change<&'static [u8]>;

fn log(entries: Vec<(u64, Told)>) -> ProcessLog {
    let mut log = ProcessLog::default();
    for (time, change) in entries {
        log.push(Entry { time, change });
    }
    log
}

fn named(pid: i32, tid: i32, exec: bool, name: &'static str) -> Told {
    Change::Named {
        pid,
        tid,
        exec,
        name: name.as_bytes(),
    }
}

fn forked(pid: i32, tid: i32, parent: (i32, i32), inherits: bool) -> Told {
    Change::Forked {
        pid,
        tid,
        parent_pid: parent.0,
        parent_tid: parent.1,
        inherits,
    }
}

fn mapped(pid: i32, start: u64, end: u64, path: &'static str) -> Told {
    Change::Mapped {
        pid,
        range: FileRange {
            start,
            end,
            offset: 0x1000,
        },
        path: path.as_bytes(),
        build_id: None,
    }
}

fn comm(processes: &Processes, tid: i32, time: u64) -> Option<&str> {
    let name = processes.comm(tid, time).name?;
    processes.name(name).map(|name| &*name.text)
}

fn path(processes: &Processes, pid: i32, address: u64, time: u64) -> Option<&str> {
    let mapping = processes.mapping(pid, address, time)?;
    processes.file(mapping.dso)?.path.to_str()
}

#[test]
fn names_change_with_time_and_are_inherited() {
    let processes = Processes::new(
        log(vec![
            (50, named(2, 2, true, "child")),
            (0, named(1, 1, false, "shell")),
            (40, forked(2, 2, (1, 1), true)),
            (45, named(1, 1, false, "renamed")),
            (60, forked(2, 3, (2, 2), true)),
        ]),
        &[],
    );
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
    let processes = Processes::new(
        log(vec![
            (10, named(5, 5, false, "old")),
            (20, forked(5, 5, (77, 77), true)),
        ]),
        &[],
    );
    assert_eq!(comm(&processes, 5, 19), Some("old"));
    assert_eq!(comm(&processes, 5, 20), None);
}

#[test]
fn mappings_are_inherited_hidden_and_dropped_by_exec() {
    let processes = Processes::new(
        log(vec![
            (0, mapped(1, 0x1000, 0x3000, "/bin/sh")),
            (10, forked(2, 2, (1, 1), true)),
            (15, mapped(1, 0x1000, 0x2000, "/lib/later")),
            (20, mapped(2, 0x2000, 0x3000, "/lib/own")),
            (30, named(2, 2, true, "app")),
            (31, mapped(2, 0x8000, 0x9000, "/bin/app")),
        ]),
        &[],
    );
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
    let processes = Processes::new(
        log(vec![
            (0, mapped(1, 0x1000, 0x3000, "/bin/sh")),
            (0, forked(2, 2, (1, 1), false)),
            (0, mapped(2, 0x5000, 0x6000, "/bin/app")),
        ]),
        &[],
    );
    assert_eq!(path(&processes, 2, 0x1000, 5), None);
    assert_eq!(path(&processes, 2, 0x5000, 5), Some("/bin/app"));
}

#[test]
fn a_cycle_of_parents_ends() {
    let processes = Processes::new(
        log(vec![
            (0, forked(2, 2, (1, 1), true)),
            (0, forked(1, 1, (2, 2), true)),
        ]),
        &[],
    );
    assert_eq!(processes.mapping(1, 0x1000, 5), None);
}

#[test]
fn build_ids_are_added_by_path() {
    let id: BuildId = "00ff".parse().unwrap();
    let processes = Processes::new(
        log(vec![(0, mapped(1, 0x1000, 0x2000, "/bin/sh"))]),
        &[(Path::new("/bin/sh"), id)],
    );
    assert_eq!(processes.files()[0].build_id, Some(id));
}

#[test]
fn names_from_programs_are_made_harmless() {
    let processes = Processes::new(log(vec![(0, named(1, 1, false, "a\x1b[2J\"\n"))]), &[]);
    let name = processes.comm(1, 5).name.unwrap();
    let name = processes.name(name).unwrap();
    assert_eq!(&*name.text, "a\\x1b[2J\"\\n");
    assert_eq!(&*name.json, "\"a\\u001b[2J\\\"\\n\"");
}

/// A stream of processes that begin, map something and end, one after the other, beside two that stay.
#[test]
fn who_ended_is_forgotten() {
    let mut processes = Processes::default();
    processes.note_living();
    processes.learn(log(vec![
        (0, named(1, 1, false, "daemon")),
        (0, mapped(1, 0x1000, 0x2000, "/bin/daemon")),
        // It begins with the mappings of one that ends at once.
        (1, forked(3, 3, (1, 1), true)),
        (2, mapped(3, 0x3000, 0x4000, "/lib/early")),
        (3, forked(2, 2, (3, 3), true)),
        (4, Change::Ended { tid: 3 }),
        // A thread that outlives the main thread of its process.
        (5, forked(4, 4, (1, 1), true)),
        (5, forked(4, 5, (4, 4), true)),
        (6, named(4, 4, false, "main")),
        (7, Change::Ended { tid: 4 }),
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
            changes.push((time + 3, Change::Ended { tid: pid }));
        }
        processes.learn(log(changes));
        let time = round * 10_000 + 5_000;
        if let Some(kept) = processes.forget_before(time) {
            assert_eq!(kept.len(), processes.files().len());
        }
        most = most.max(processes.names().count().max(processes.files().len()));
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
    assert!(processes.threads.len() + processes.spaces.len() < 6000);
}

/// A process that maps the same places again and again.
#[test]
fn mappings_that_are_covered_are_forgotten() {
    let mut processes = Processes::default();
    processes.note_living();
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
    assert!(processes.files().len() < 10_000, "20000 came");
}
