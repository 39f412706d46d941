//! Control groups of processes: containers and services.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{
    Build, Lab, Perf, Process, Recorder, Ticker, copy_program, skip, test, wait_until,
};

/// A control group of a test in each hierarchy that takes processes; removed when dropped.
pub(crate) struct Group {
    pub(crate) path: String,
    directories: Vec<PathBuf>,
}

impl Group {
    /// Skips the calling test if no hierarchy is there that this process may change.
    #[track_caller]
    pub(crate) fn new(lab: &Lab, name: &str) -> Self {
        let of_lab = lab.path().file_name().expect("a name").to_string_lossy();
        let path = format!("/{of_lab}-{name}");
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mounts = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (directory, kind) = (words.next()?, words.next()?);
            kind.starts_with("cgroup").then_some(directory)
        });
        let directories = mounts.map(|mount| PathBuf::from(format!("{mount}{path}")));
        let directories: Vec<PathBuf> = directories
            .filter(|directory| fs::create_dir(directory).is_ok())
            .collect();
        if directories.is_empty() {
            skip("no control group can be made");
        }
        Self { path, directories }
    }

    /// Moves a process into it.
    #[track_caller]
    pub(crate) fn take(&self, pid: u32) {
        let taken = self.directories.iter().filter(|directory| {
            // A group of the controller cpuset takes none before it has CPUs.
            fs::write(directory.join("cgroup.procs"), pid.to_string()).is_ok()
        });
        assert_ne!(taken.count(), 0, "{:?}", self.directories);
    }

    /// Words of a shell that move its process into it.
    pub(crate) fn enter(&self) -> String {
        let entries = self.directories.iter().map(|directory| {
            let procs = directory.join("cgroup.procs");
            format!("sh -c 'echo $PPID > {}' 2>/dev/null", procs.display())
        });
        entries.collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in &self.directories {
            drop(fs::remove_dir(directory));
        }
    }
}

/// Process and control group of each hit, by `script --format json`.
#[track_caller]
fn of_hits(lab: &Lab, trace: &str) -> Vec<(u64, Value)> {
    let options = ["-i", trace, "-F", "+cgroup", "--format", "json"];
    let mut hits = lines(lab, "script", &options);
    let of_hit = |hit: &mut Value| (hit["pid"].as_u64().unwrap_or(0), hit["cgroup"].take());
    hits.iter_mut().map(of_hit).collect()
}

/// Control group of each hit.
#[track_caller]
fn groups_of_hits(lab: &Lab, trace: &str) -> Vec<Value> {
    let hits = of_hits(lab, trace).into_iter();
    hits.map(|(_, group)| group).collect()
}

/// Control groups and their numbers of hits, by `report --sort cgroup`.
#[track_caller]
fn counted(lab: &Lab, trace: &str) -> Vec<(Value, Value)> {
    let options = ["-i", trace, "--sort", "cgroup", "--format", "json"];
    let mut rows = lines(lab, "report", &options);
    let of_row = |row: &mut Value| (row["cgroup"].take(), row["samples"].take());
    rows.iter_mut().map(of_row).collect()
}

/// Records three hits of a process in the group, and four of one outside, in another group if there is one; their event.
#[track_caller]
fn record_two(lab: &Lab, group: &Group, other_group: Option<&Group>) -> String {
    let mut one = Ticker::start(lab);
    let mut other = Ticker::again(one.program());
    group.take(one.pid());
    if let Some(group) = other_group {
        group.take(other.pid());
    }
    let event = one.event("tick");
    let recorder = Recorder::start(lab, ["-a", "-o", "trace", "-e", &event]);
    one.hit("fire 3");
    other.hit("fire 4");
    recorder.stop();
    event
}

/// Runs a command that prints a line of JSON for each answer.
#[track_caller]
fn lines(lab: &Lab, command: &str, options: &[&str]) -> Vec<Value> {
    let options = iter::once(&command).chain(options);
    let json = lab.usdtrec(options).success().stdout;
    let line = |line: &str| serde_json::from_str(line).expect("JSON");
    json.lines()
        .filter(|line| !line.is_empty())
        .map(line)
        .collect()
}

#[test]
fn hits_have_the_group_of_their_process() {
    let lab = Lab::privileged();
    let (first, second) = (Group::new(&lab, "first"), Group::new(&lab, "second"));
    let mut one = Ticker::start(&lab);
    let mut other = Ticker::again(one.program());
    first.take(one.pid());
    second.take(other.pid());
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &one.event("tick")]);
    one.hit("fire 20");
    other.hit("fire 30");
    let (one_pid, other_pid) = (u64::from(one.pid()), u64::from(other.pid()));
    recorder.stop();

    let hits = of_hits(&lab, "trace");
    assert_eq!(hits.len(), 50);
    for (pid, group) in hits {
        let expected = if pid == one_pid { &first } else { &second };
        assert!([one_pid, other_pid].contains(&pid), "{pid}");
        assert_eq!(group, expected.path);
    }
    let row = |group: &Group, hits: u64| (Value::from(group.path.as_str()), Value::from(hits));
    assert_eq!(counted(&lab, "trace"), [row(&second, 30), row(&first, 20)]);

    // perf reads the file as if the records were not there.
    let perf = Perf::new(&lab);
    let lines = perf.run(["script", "-i", "trace"]).success().stdout;
    assert_eq!(lines.lines().count(), 50, "{lines}");
    lab.usdtrec(["export", "-i", "trace", "--to", "perf", "-o", "plain"])
        .success();
    assert!(of_hits(&lab, "plain").iter().all(|hit| hit.1.is_null()));
}

/// The group is called as containers' groups are.
#[test]
fn hits_have_the_container_of_their_group() {
    let lab = Lab::privileged();
    let id = "0123456789abcdef".repeat(4);
    let group = Group::new(&lab, &id);
    record_two(&lab, &group, None);
    let filter = format!("container == \"{id}\"");
    let options = ["-i", "trace", "-F", "+container", "--format", "json"];
    let with_filter = [&options[..], &["--filter", &filter]].concat();
    let containers = |options: &[&str]| {
        let hits = lines(&lab, "script", options).into_iter();
        let mut all: Vec<_> = hits.map(|hit| hit["container"].clone()).collect();
        all.sort_by_key(Value::to_string);
        all
    };
    assert_eq!(containers(&with_filter), vec![Value::from(&*id); 3]);
    let none = vec![Value::Null; 4];
    let all = [vec![Value::from(&*id); 3], none].concat();
    assert_eq!(containers(&options), all);
    let keys = ["-i", "trace", "--sort", "container", "--format", "json"];
    let rows = lines(&lab, "report", &keys).into_iter();
    let rows: Vec<_> = rows
        .map(|row| (row["container"].clone(), row["samples"].clone()))
        .collect();
    assert_eq!(
        rows,
        [(Value::Null, 4.into()), (id.clone().into(), 3.into())]
    );
    let text = ["script", "-i", "trace", "-F", "comm,container"];
    let text = lab.usdtrec(text).success().stdout;
    let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(&id), count(" <no container>")), (3, 4), "{text}");
    let csv = [
        "script",
        "-i",
        "trace",
        "-F",
        "container",
        "--format",
        "csv",
    ];
    let csv = lab.usdtrec([&csv[..], &["--filter", &filter]].concat());
    let expected = format!("container\n{}", format!("{id}\n").repeat(3));
    assert_eq!(csv.success().stdout, expected);
    for (format, shown) in [("{container}", &*id), ("{container:.4}", &id[..4])] {
        let script = [
            "script", "-i", "trace", "--format", format, "--filter", &filter,
        ];
        let printed = lab.usdtrec(script).success().stdout;
        assert_eq!(printed, format!("{shown}\n").repeat(3));
    }
}

/// Two programs, of which one is called by two paths.
#[test]
fn hits_have_the_program_of_their_process() {
    let lab = Lab::privileged();
    let one = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let other = lab.file("other\x1b[1m");
    copy_program(&one, &other);
    let linked = lab.file("linked");
    symlink(&one, &linked).expect("a link");
    let events = [&one, &other].map(|program| format!("sdt_ticker:tick@{}", program.display()));
    let [event, other_event] = &events;
    let options = ["-a", "-o", "trace", "-e", event, "-e", other_event];
    let recorder = Recorder::start(&lab, options);
    // Of a process that ends at once, it is not known.
    let tickers = [(&one, 3), (&linked, 2), (&other, 4)].map(|(program, hits)| {
        let mut ticker = Ticker::again(program);
        ticker.hit(&format!("fire {hits}"));
        ticker
    });
    recorder.stop();
    drop(tickers);
    let path = |path: &Path| path.display().to_string().replace('\x1b', "\\x1b");
    let keys = ["-i", "trace", "--sort", "exe", "--format", "json"];
    let rows = lines(&lab, "report", &keys).into_iter();
    let rows = rows.map(|row| (row["exe"].clone(), row["samples"].clone()));
    let expected = [
        (path(&one).into(), 5.into()),
        (path(&other).into(), 4.into()),
    ];
    assert_eq!(rows.collect::<Vec<(Value, Value)>>(), expected);
    let text = lab.usdtrec(["script", "-i", "trace", "-F", "comm,exe"]);
    let text = text.success().stdout;
    let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(&path(&one)), count(&path(&other))), (5, 4), "{text}");
    let filter = format!("exe == \"{}\"", path(&one));
    let filtered = [
        "-i", "trace", "-F", "+exe", "--format", "json", "--filter", &filter,
    ];
    assert_eq!(lines(&lab, "script", &filtered).len(), 5);
}

/// A user to whom groups are delegated chooses their names.
#[test]
fn hits_have_the_unit_of_their_group() {
    let lab = Lab::privileged();
    let unit = Group::new(&lab, "\x1b[1m.service");
    let group = Group::new(&lab, "\x1b[1m.service/inner");
    record_two(&lab, &group, Some(&Group::new(&lab, "none")));
    let shown = unit.path[1..].replace('\x1b', "\\x1b");
    let keys = ["-i", "trace", "--sort", "unit", "--format", "json"];
    let rows = lines(&lab, "report", &keys).into_iter();
    let rows = rows.map(|row| (row["unit"].clone(), row["samples"].clone()));
    let expected = [(Value::Null, 4.into()), (shown.clone().into(), 3.into())];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let text = lab.usdtrec(["script", "-i", "trace", "-F", "comm,unit"]);
    let text = text.success().stdout;
    let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(&shown), count(" <no unit>")), (3, 4), "{text}");
    let filter = "unit ~ \"*.service\"";
    let script = ["script", "-i", "trace", "--filter", filter];
    let filtered = lab.usdtrec(script).success().stdout;
    assert_eq!(filtered.lines().count(), 3, "{filtered}");
}

/// They are on the line of the event.
#[test]
fn hits_with_stacks_have_their_group() {
    let lab = Lab::privileged();
    let group = Group::new(&lab, "stacks");
    let mut one = Ticker::start(&lab);
    group.take(one.pid());
    let event = one.event("tick");
    let recorder = Recorder::start(&lab, ["-g", "-a", "-o", "trace", "-e", &event]);
    one.hit("fire 3");
    recorder.stop();
    let script = ["script", "-i", "trace", "-F", "+cgroup,+container"];
    let text = lab.usdtrec(script).success().stdout;
    let end = format!(" {} <no container>", group.path);
    let events = text.lines().filter(|line| line.ends_with(&end));
    assert_eq!(events.count(), 3, "{text}");
    assert!(text.lines().any(|line| line.starts_with('\t')), "{text}");
}

/// Numbers of hits by the groups of a filter.
#[test]
fn filters_take_groups() {
    let lab = Lab::privileged();
    let group = Group::new(&lab, "filtered");
    let event = record_two(&lab, &group, None);
    for (filter, hits) in [
        (format!("cgroup == {:?}", group.path), 3),
        ("cgroup ~ \"*-filtered\" && arg1 > 0".to_owned(), 2),
        ("cgroup ~ \"*-other\"".to_owned(), 0),
    ] {
        let printed = lab.usdtrec(["script", "-i", "trace", "--filter", &filter]);
        assert_eq!(printed.success().stdout.lines().count(), hits, "{filter}");
    }
    // A filter of a recording is evaluated at the hit.
    let options = ["record", "-a", "-e", &event, "--filter"];
    let options = options.iter().chain(&["cgroup == \"/\""]);
    lab.usdtrec(options)
        .exits(2)
        .complains("sdt_ticker:tick has no argument cgroup");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    lab.usdtrec(["report", "-i", demo, "--sort", "cgroup"])
        .exits(1)
        .complains("the trace has none");
}

/// Each file has the groups of the processes with hits in it.
#[test]
fn all_files_have_groups() {
    let lab = Lab::privileged();
    let group = Group::new(&lab, "files");
    let mut target = Ticker::start(&lab);
    group.take(target.pid());
    let event = target.event("tick");
    for compression in ["-z0", "-z3"] {
        let options = ["-a", "-e", &event, "-o", "trace", compression];
        let recorder = Recorder::start(&lab, options.iter().chain(&["--switch-output"]));
        target.hit("fire 3");
        recorder.signal("USR2");
        wait_until("the next file", || lab.file("trace.2").exists());
        target.hit("fire 4");
        recorder.stop();
        for (file, hits) in [("trace.1", 3), ("trace.2", 4)] {
            assert_eq!(groups_of_hits(&lab, file), vec![group.path.as_str(); hits]);
            fs::remove_file(lab.file(file)).expect("a file");
        }
    }
}

/// A stream has the group before later hits; stored in a file it is read as well.
#[test]
fn streams_have_groups() {
    for compression in ["-z0", "-z3"] {
        let lab = Lab::privileged();
        let group = Group::new(&lab, "stream");
        let mut target = Ticker::start(&lab);
        group.take(target.pid());
        let (pid, event) = (target.pid(), target.event("tick"));
        let record = format!("\"$0\" record {compression} -p {pid} -e {event} -o -");
        let script = format!("{record} | tee stream | \"$0\" script -i - -F +cgroup");
        let arguments = ["-c", &script, env!("CARGO_BIN_EXE_usdtrec")];
        let mut recorder = Process::spawn(lab.at_home(Path::new("sh"), arguments));
        recorder.until_error_line("[ usdtrec record:");
        for command in ["fire 2", "fire 3"] {
            for _ in target.hit(command) {
                let line = recorder.line().expect("a hit");
                assert!(line.ends_with(&group.path), "{line}");
            }
        }
        drop(target);
        recorder.finish().success();
        let expected = vec![group.path.as_str(); 5];
        assert_eq!(groups_of_hits(&lab, "stream"), expected, "{compression}");
    }
}

/// The group of a process that ended at once may be missing; it is never that of another one.
#[test]
fn short_processes_have_no_wrong_group() {
    let lab = Lab::privileged();
    let (first, second) = (Group::new(&lab, "short"), Group::new(&lab, "later"));
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    // As often as a process of each group hits.
    let run = |group: &Group, hits: u32| {
        let enter = group.enter();
        format!("({enter}; exec {} {hits})", program.display())
    };
    let both = format!("{}; {}", run(&first, 1), run(&second, 2));
    let script = format!("i=0; while [ $i -lt 40 ]; do {both}; i=$((i + 1)); done");
    let command = [
        "record", "-o", "trace", "-e", &event, "--", "sh", "-c", &script,
    ];
    lab.usdtrec(command).success();
    let mut hits_of: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for (pid, path) in of_hits(&lab, "trace") {
        hits_of.entry(pid).or_default().push(path);
    }
    assert_eq!(hits_of.len(), 80);
    for paths in hits_of.values().filter(|paths| !paths[0].is_null()) {
        let expected = if paths.len() == 1 { &first } else { &second };
        assert!(paths.iter().all(|path| *path == expected.path), "{paths:?}");
    }
}
