//! Names of code that a program made at run time, by its perf map, which is taken when the program or the recording ends.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::callers::folded_lines;
use crate::common::{Build, Lab, Process, Recorder, need_tool, run, test, wait_until};

const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-O0", "-fno-omit-frame-pointer"],
};

/// The map of a process, which is removed at the end.
struct Map(PathBuf);

impl Map {
    fn for_process(pid: &str) -> Self {
        Self(format!("/tmp/perf-{pid}.map").into())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension("other"));
    }
}

/// Records testdata/targets/made.c, removes its map, and gives the hits by what is above `main`.
#[track_caller]
fn record(lab: &Lab, how: &str) -> BTreeMap<String, u64> {
    let program = BUILD.make(lab, "made.c", "made");
    let event = format!("made:hit@{}", program.display());
    let mut record = lab.command(["record", "--call-graph", "fp", "-o", "trace", "-e", &event]);
    record.arg("--").arg(program).arg(how);
    let pid = run(record).success().stdout;
    drop(Map::for_process(pid.trim()));
    stacks(lab)
}

/// The hits by what is above `main`.
#[track_caller]
fn stacks(lab: &Lab) -> BTreeMap<String, u64> {
    let folded = folded_lines(lab, &[]);
    let above = folded.into_iter().map(|(stack, hits)| {
        let (_, above) = stack.rsplit_once("main;").expect("main");
        (above.to_owned(), hits)
    });
    above.collect()
}

/// The hits of testdata/targets/made.c with the names of its map.
fn named() -> BTreeMap<String, u64> {
    let expected = [
        ("made a;hit", 3),
        ("made\\x3bb\\x1b[1m;hit", 5),
        ("made\\x3bb\\x1b[1m;nested;made a;hit", 2),
    ];
    expected
        .map(|(stack, hits)| (stack.to_owned(), hits))
        .into()
}

/// Made code has frame pointers; the functions that call it, and those that it calls, have unwind tables instead.
#[test]
fn callers_of_made_code_are_found_among_functions_without_frame_pointers() {
    const WITHOUT: Build = Build {
        compiler: "gcc",
        options: &["-O0", "-fomit-frame-pointer"],
    };
    let lab = Lab::privileged();
    let program = WITHOUT.make(&lab, "made.c", "made");
    let event = format!("made:hit@{}", program.display());
    for options in [
        &["-g"][..],
        &["--call-graph", "dwarf"],
        &["-g", "--engine", "perf"],
    ] {
        let mut record = lab.command(["record", "-o", "trace", "-e", &event]);
        record.args(options).arg("--").arg(&program).arg("map");
        let pid = run(record).success().stdout;
        drop(Map::for_process(pid.trim()));
        assert_eq!(stacks(&lab), named(), "{options:?}");
        let folded = folded_lines(&lab, &[]);
        assert!(
            folded.keys().all(|stack| !stack.contains("[cut")),
            "{options:?}: {folded:#?}"
        );
    }
}

/// What was mapped executable before the recording is in the trace, too.
#[test]
fn a_process_that_runs_already_has_made_code() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "made.c", "made");
    let event = format!("made:hit@{}", program.display());
    let mut made = Command::new(&program);
    made.args(["map", "first"]);
    let mut made = Process::spawn(made);
    let pid = made.line().expect("a pid");
    let _map = Map::for_process(&pid);
    let recorder = Recorder::start(&lab, ["-g", "-o", "trace", "-e", &event, "-p", &pid]);
    made.say("go");
    made.finish().success();
    recorder.finish().success();
    assert_eq!(stacks(&lab), named());
    let files = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert_eq!(files.matches(" (//anon)").count(), 12, "{files}");
}

/// Names are in the trace, the last ones of each address, and are escaped as all are.
#[test]
fn functions_have_the_names_of_the_map() {
    let lab = Lab::privileged();
    assert_eq!(record(&lab, "map"), named());
    let tree = lab
        .usdtrec(["report", "-i", "trace", "-g"])
        .success()
        .stdout;
    assert!(tree.contains("made a"), "{tree}");
    let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert_eq!(script.matches(" made a+0x").count(), 5, "{script}");
}

/// A map that is no regular file is not read, and does not block; nor is that of an earlier process with the pid, or of another user.
#[test]
fn a_map_that_cannot_be_trusted_is_not_read() {
    let lab = Lab::privileged();
    for how in ["fifo", "link", "stale", "foreign"] {
        let stacks = record(&lab, how);
        assert_eq!(stacks.len(), 3, "{stacks:?}");
        assert!(
            stacks.keys().all(|stack| !stack.contains("made")),
            "{how}: {stacks:?}"
        );
    }
    let tree = lab
        .usdtrec(["report", "-i", "trace", "-g"])
        .success()
        .stdout;
    assert!(tree.contains("code that was made at run time"), "{tree}");
    assert!(tree.contains("--perf-basic-prof"), "{tree}");
}

/// Starts a recording of a shell script, which gets the program as `$0`.
fn recorder(lab: &Lab, script: &str) -> Process {
    let program = BUILD.make(lab, "made.c", "made");
    let event = format!("made:hit@{}", program.display());
    let mut record = lab.command(["record", "--call-graph", "fp", "-o", "trace", "-e", &event]);
    record.args(["--", "sh", "-c", script]).arg(program);
    Process::spawn(record)
}

/// Whether a process has a file open that `is_it` says is the one.
pub(crate) fn has_open(pid: u32, is_it: impl Fn(&Path) -> bool) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    open.flatten().any(|entry| is_it(&entry.path()))
}

/// The map is taken when its process ends: it is removed then, and another one is written.
#[test]
fn a_process_ends_before_the_recording() {
    let lab = Lab::privileged();
    let mut recorder = recorder(&lab, r#""$0" map; read line"#);
    let pid = recorder.line().expect("a pid");
    let map = Map::for_process(&pid);
    wait_until("opening the map", || {
        has_open(recorder.pid(), |open| {
            fs::read_link(open).is_ok_and(|path| path == map.0)
        })
    });
    fs::remove_file(&map.0).expect("a map");
    fs::write(&map.0, "0 7fffffffffff another").expect("a file");
    recorder.say("end");
    recorder.finish().success();
    assert_eq!(stacks(&lab), named());
}

/// A process with namespaces of its own: it has another number there, and its `/tmp` ends with it.
#[test]
fn a_container_ends_before_the_recording() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let script = r#"unshare --pid --fork --mount --mount-proc sh -c 'mount -t tmpfs none /tmp && exec ./made map wait'; echo ended; read line"#;
    let mut recorder = recorder(&lab, script);
    let own: u32 = recorder.line().expect("a pid").parse().expect("a number");
    assert!(own < 10, "a number in the namespace: {own}");
    let exe = lab.file("made");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut roots = processes.filter_map(|process| {
        let is_it = fs::read_link(process.path().join("exe")).ok()? == exe;
        is_it.then(|| process.path().join("root/tmp"))
    });
    let id = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let tmp = id(&roots.next().expect("the program")).expect("its directory");
    wait_until("opening its directory", || {
        has_open(recorder.pid(), |open| id(open) == Some(tmp))
    });
    recorder.say("end");
    assert_eq!(recorder.line().as_deref(), Some("ended"));
    recorder.say("end");
    recorder.finish().success();
    assert_eq!(stacks(&lab), named());
}

const JAVA: &str = r#"
public class Churn {
    static Object last;
    static void make(int n) { last = new int[n]; }
    static void work() { for (int i = 1; i < 2000; i++) make(i % 50); }
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 20; i++) work();
        System.out.println(ProcessHandle.current().pid());
    }
}
"#;
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// A compiled method of Java that allocates, below the virtual machine.
#[test]
fn methods_of_java_have_names() {
    let lab = Lab::privileged();
    need_tool("javac");
    need_tool(LIBRARY);
    fs::write(lab.file("Churn.java"), JAVA).expect("a file");
    run(lab.at_home(Path::new("javac"), ["Churn.java"])).success();
    lab.usdtrec(["buildid-cache", "--add", LIBRARY]).success();
    for graph in ["fp", "auto"] {
        let stacks = stacks_of_java(&lab, graph);
        let made: u64 = stacks
            .iter()
            .filter(|(stack, _)| stack.contains(";void Churn.make(int);"))
            .map(|(_, hits)| hits)
            .sum();
        assert!(made > 0, "{graph}: {stacks:#?}");
        // Each caller is that of the source.
        let callers = stacks.keys().filter_map(|stack| {
            let (callers, _) = stack.split_once(";void Churn.make(int);")?;
            callers.rsplit(';').next()
        });
        for caller in callers {
            let is_expected = ["void Churn.work()", "Interpreter"].contains(&caller);
            assert!(is_expected, "{graph}: {caller} in {stacks:#?}");
        }
    }
}

/// The stacks of allocations of the program.
#[track_caller]
fn stacks_of_java(lab: &Lab, graph: &str) -> BTreeMap<String, u64> {
    let mut record = lab.command(["record", "--call-graph", graph, "-m", "64M", "-o", "trace"]);
    record.args(["-e", "hotspot:object__alloc", "--", "java"]);
    record.args(["-XX:+DTraceAllocProbes", "-XX:+PreserveFramePointer"]);
    record.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]);
    record.args([
        "-Xbatch",
        "-XX:TieredStopAtLevel=1",
        "-XX:CompileCommand=dontinline,Churn::make",
    ]);
    record.arg("Churn");
    let said = run(record).success().stdout;
    let pid = said.lines().last().expect("a pid");
    drop(Map::for_process(pid));
    folded_lines(lab, &[])
}
