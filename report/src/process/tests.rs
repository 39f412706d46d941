use super::log::FileRange;
use super::*;

fn log(entries: Vec<(u64, Change)>) -> ProcessLog {
    let mut log = ProcessLog::default();
    log.entries.extend(
        entries
            .into_iter()
            .map(|(time, change)| Entry { time, change }),
    );
    log
}

fn named(pid: i32, tid: i32, exec: bool, name: &str) -> Change {
    Change::Named {
        pid,
        tid,
        exec,
        name: name.as_bytes().into(),
    }
}

fn forked(pid: i32, tid: i32, parent: (i32, i32), inherits: bool) -> Change {
    Change::Forked {
        pid,
        tid,
        parent_pid: parent.0,
        parent_tid: parent.1,
        inherits,
    }
}

fn mapped(pid: i32, start: u64, end: u64, path: &str) -> Change {
    Change::Mapped {
        pid,
        range: FileRange {
            start,
            end,
            offset: 0x1000,
        },
        path: path.into(),
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
