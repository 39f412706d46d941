//! Traces with stacks on a host that has neither the recorded program nor its libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BUILD, FIELDS, frames, inlined};
use crate::common::{Build, Lab, Perf, copy_program, need_tool, run, test};

/// A root directory with the binary, the libraries that it needs, and a trace.
struct EmptyRoot {
    root: PathBuf,
    /// Name of the dynamic loader in it; `None` of a static binary.
    loader: Option<String>,
}

impl EmptyRoot {
    #[track_caller]
    fn new(lab: &Lab, trace: &str) -> Self {
        need_tool("ldd");
        let root = lab.file("root");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("libs")).expect("a directory");
        let binary = env!("CARGO_BIN_EXE_usdtrec");
        copy_program(binary, root.join("usdtrec"));
        fs::copy(lab.file(trace), root.join("trace")).expect("a copy");
        let mut ldd = Command::new("ldd");
        let needed = run({
            ldd.arg(binary);
            ldd
        });
        let mut loader = None;
        // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`
        for line in needed.stdout.lines() {
            let paths = line.split_whitespace().filter(|word| word.starts_with('/'));
            let Some(path) = paths.map(Path::new).next() else {
                continue;
            };
            let name = path.file_name().expect("a name");
            let copy = root.join("libs").join(name);
            copy_program(path, &copy);
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("permissions");
            let name = name.to_string_lossy();
            if name.starts_with("ld-linux") {
                loader = Some(format!("/libs/{name}"));
            }
        }
        Self { root, loader }
    }

    /// What the binary prints there.
    #[track_caller]
    fn usdtrec(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("chroot");
        command.arg(&self.root);
        if let Some(loader) = &self.loader {
            command.args([loader, "--library-path", "/libs"]);
        }
        command
            .arg("/usdtrec")
            .args(arguments)
            .args(["-i", "/trace"]);
        run(command).success().stdout
    }
}

/// The questions whose answers have names of functions.
const QUESTIONS: [&[&str]; 6] = [
    &["script"],
    &["report", "--format", "json", "--sort", "stack"],
    &["script", "-F", FIELDS],
    &["report", "-g"],
    &["export", "--to", "folded", "-o", "-"],
    &["report", "--sort", "sym,caller"],
];

#[track_caller]
fn record(lab: &Lab, program: &Path, options: &[&str]) {
    let event = format!("*:*@{}", program.display());
    let start = ["record", "-q", "-o", "stacks", "-e", &event];
    let program = program.to_str().expect("a path");
    lab.usdtrec([&start[..], options, &["--", program, "20"]].concat())
        .success()
        .silent();
}

#[track_caller]
fn here(lab: &Lab, question: &[&str]) -> String {
    let words = [question, &["-i", "stacks"]].concat();
    lab.usdtrec(words).success().stdout
}

/// Without the line with the path of the trace.
fn without_head(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.contains("stacks") || line.starts_with('\t'));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn names_are_those_of_the_recording_host() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "stacks.c", "target");
    for options in [
        &["-g"][..],
        // A frame of a signal takes more than 4 KiB beside what is below it, on CPUs with wide registers.
        &["--call-graph", "dwarf,16K", "--engine", "perf"],
        &["--call-graph", "fp"],
    ] {
        record(&lab, &program, options);
        let root = EmptyRoot::new(&lab, "stacks");
        for question in QUESTIONS {
            let (here, there) = (here(&lab, question), root.usdtrec(question));
            assert!(here.contains("middle") || options.contains(&"fp"), "{here}");
            assert!(here.contains("leaf"), "{here}");
            let [here, there] =
                [here, there.replace("/trace", "stacks")].map(|text| without_head(&text));
            assert_eq!(here, there, "{options:?} {question:?}");
        }
    }
    // The names come from the trace: without them there are none.
    record(&lab, &program, &["-g", "--no-symbols"]);
    let root = EmptyRoot::new(&lab, "stacks");
    let there = root.usdtrec(&["export", "--to", "folded", "-o", "-"]);
    assert!(
        !there.contains("middle") && there.contains("target"),
        "{there}"
    );
    assert!(here(&lab, &["export", "--to", "folded", "-o", "-"]).contains("middle"));
}

/// What is inlined, and lines, are in the trace, too.
#[test]
fn inlined_frames_are_those_of_the_recording_host() {
    let lab = Lab::privileged();
    let more: [&[&str]; 4] = [
        &["script", "-F", "+srcline"],
        &["script", "--format", "json", "-F", "+sym,+srcline"],
        &["script", "--no-inline", "-F", "+srcline"],
        &["report", "--sort", "stack", "--no-inline"],
    ];
    for program in inlined::programs(&lab) {
        inlined::record(&lab, &program, &["-g"]);
        let root = EmptyRoot::new(&lab, "stacks");
        for question in QUESTIONS.iter().chain(&more) {
            let (here, there) = (here(&lab, question), root.usdtrec(question));
            let is_inlined = !question.contains(&"--no-inline");
            assert_eq!(
                here.contains("inlined\":true") || here.contains("(inlined)"),
                is_inlined,
                "{here}"
            );
            let has_lines = question.contains(&"-F") && !question.contains(&FIELDS);
            assert_eq!(
                here.contains("inlined.cc:") || here.contains("inlined.rs:"),
                has_lines,
                "{here}"
            );
            let [here, there] =
                [here, there.replace("/trace", "stacks")].map(|text| without_head(&text));
            assert_eq!(here, there, "{question:?}");
        }
    }
    // They come from the trace.
    let [program, _] = inlined::programs(&lab);
    inlined::record(&lab, &program, &["-g", "--no-symbols"]);
    let root = EmptyRoot::new(&lab, "stacks");
    assert!(
        !root
            .usdtrec(&["export", "--to", "folded", "-o", "-"])
            .contains("inlined)")
    );
    assert!(here(&lab, &["export", "--to", "folded", "-o", "-"]).contains("inlined)"));
}

#[test]
fn what_the_recording_host_said_is_not_contradicted() {
    let lab = Lab::privileged();
    need_tool("strip");
    need_tool("objcopy");
    let program = BUILD.make(&lab, "stacks.c", "target");
    record(&lab, &program, &["-g"]);
    let questions = || QUESTIONS.map(|question| here(&lab, question));
    let before = questions();
    fs::remove_dir_all(lab.cache()).expect("the cache");
    // The same build-id, and other names.
    let renamed = ["--redefine-sym", "middle=elddim"];
    let mut objcopy = Command::new("objcopy");
    objcopy.args(renamed).arg(&program);
    run(objcopy).success();
    assert_eq!(questions(), before);
    let mut strip = Command::new("strip");
    strip.arg(&program);
    run(strip).success();
    assert_eq!(questions(), before);
}

#[test]
fn stock_perf_reads_a_trace_with_names() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = BUILD.make(&lab, "stacks.c", "target");
    let shown = ["--no-symbols", "-T"].map(|option| {
        record(&lab, &program, &["--call-graph", "dwarf,8K", option]);
        let [theirs, ours] = super::both(&lab, &perf, &["-F", FIELDS]);
        assert_eq!(frames(&theirs), frames(&ours));
        let report = ["report", "-i", "stacks", "--stdio", "-g", "--no-children"];
        perf.run(report).success();
        frames(&theirs).concat()
    });
    let [without, with] = shown;
    assert!(without.len() > 20);
    assert_eq!(without, with);
}

/// The functions of a stripped program are in the file that it names, with or without a build-id.
#[test]
fn names_come_from_the_debug_link() {
    let lab = Lab::privileged();
    for tool in ["objcopy", "strip"] {
        need_tool(tool);
    }
    for options in [&["-O2"][..], &["-O2", "-Wl,--build-id=none"]] {
        let build = Build {
            compiler: "gcc",
            options,
        };
        let program = build.make(&lab, "stacks.c", "linked");
        let debug = lab.file("linked.debug");
        let tools = [
            (
                "objcopy",
                vec!["--only-keep-debug".into(), program.clone(), debug.clone()],
            ),
            ("strip", vec![program.clone()]),
            (
                "objcopy",
                vec![
                    PathBuf::from(format!("--add-gnu-debuglink={}", debug.display())),
                    program.clone(),
                ],
            ),
        ];
        for (tool, arguments) in tools {
            let mut command = Command::new(tool);
            command.args(arguments);
            run(command).success();
        }
        record(&lab, &program, &["-g"]);
        let folded = here(&lab, &["export", "--to", "folded", "-o", "-"]);
        assert!(folded.contains("middle"), "{options:?}: {folded}");
        fs::remove_file(&debug).expect("the debug file");
        record(&lab, &program, &["-g"]);
        let folded = here(&lab, &["export", "--to", "folded", "-o", "-"]);
        assert!(!folded.contains("middle"), "{options:?}: {folded}");
    }
}

/// Functions that a stripped program does not export are in the file within it, as Fedora builds programs.
#[test]
fn names_come_from_the_file_within_a_program() {
    let lab = Lab::privileged();
    for tool in ["objcopy", "strip", "xz"] {
        need_tool(tool);
    }
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-rdynamic"],
    };
    let program = build.make(&lab, "stacks.c", "within");
    let tool = |tool: &str, arguments: &[&str]| {
        let mut command = lab.at_home(Path::new(tool), arguments);
        command.arg(&program);
        run(command).success();
    };
    let mini = lab.file("mini");
    fs::copy(&program, &mini).expect("a copy");
    let keep = [
        "-S",
        "--keep-symbol=handler",
        "--keep-symbol=compare",
        "mini",
    ];
    run(lab.at_home(Path::new("objcopy"), keep)).success();
    run(lab.at_home(Path::new("xz"), ["mini"])).success();
    tool("strip", &[]);
    let folded = || {
        record(&lab, &program, &["--call-graph", "dwarf,8K"]);
        here(&lab, &["export", "--to", "folded", "-o", "-"])
    };
    let before = folded();
    assert!(
        before.contains(";main;") && !before.contains(";handler;middle;"),
        "{before}"
    );
    tool("objcopy", &["--add-section", ".gnu_debugdata=mini.xz"]);
    let after = folded();
    for stack in [";main;", ";handler;middle;", ";compare;middle;"] {
        assert!(after.contains(stack), "{stack}: {after}");
    }
}
