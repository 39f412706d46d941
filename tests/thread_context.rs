//! The request that a thread was working on at a hit: OpenTelemetry's thread context.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Lab, Perf, Process, Recorder, need_tool, run, test};
use crate::contained;

const NOT_FOUND: &str = "<no thread context: the process exports none, or it was not found yet>";

/// Defines the variable as one that no other file can hide.
const PROTECTED: &str = "-DVISIBILITY=\"protected\"";

/// How the program and its library are built.
#[derive(Clone, Copy)]
struct Model {
    compiler: &'static str,
    /// Of the library; `None` if the variable is in the program.
    library: Option<&'static [&'static str]>,
    /// Of the program.
    program: &'static [&'static str],
}

impl Model {
    const IN_PROGRAM: Self = Self {
        compiler: "gcc",
        library: None,
        program: &["-rdynamic"],
    };
    const LINKED: Self = Self {
        compiler: "gcc",
        library: Some(&[]),
        program: &["-DLINKED"],
    };
    const LOADED: Self = Self {
        compiler: "gcc",
        library: Some(&[]),
        program: &["-DLOADED"],
    };

    fn is_loaded(self) -> bool {
        self.program.contains(&"-DLOADED")
    }
}

/// The program, which runs, and what it printed of its hits.
struct Target {
    process: Process,
    program: PathBuf,
    library: PathBuf,
    /// By their counters.
    printed: BTreeMap<u32, String>,
}

impl Target {
    #[track_caller]
    fn start(lab: &Lab, model: Model) -> Self {
        Self::start_by(lab, model, |program| Command::new(program))
    }

    /// The same, with the command that a program's path is made to.
    #[track_caller]
    fn start_by(lab: &Lab, model: Model, command: impl Fn(&Path) -> Command) -> Self {
        need_tool(model.compiler);
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/targets/thread_context.c");
        let (program, library) = (lab.file("context"), lab.file("libcontext.so"));
        let build = |output: &Path, options: &[&str], more: Option<&Path>| {
            let mut compiler = Command::new(model.compiler);
            compiler.args(["-O2", "-std=gnu11", "-pthread", "-Wall"]);
            if model.compiler == "musl-gcc" {
                compiler.args([
                    "-idirafter",
                    "/usr/include",
                    "-idirafter",
                    "/usr/include/x86_64-linux-gnu",
                ]);
            }
            compiler
                .arg("-o")
                .arg(output)
                .args(options)
                .arg(&source)
                .args(more);
            run(compiler).success();
        };
        if let Some(options) = model.library {
            let shared = [&["-shared", "-fPIC", "-DLIBRARY"], options].concat();
            build(&library, &shared, None);
        }
        let is_linked = model.program.contains(&"-DLINKED");
        let rpath = format!("-Wl,-rpath,{}", lab.path().display());
        let options = [model.program, &["-ldl", &rpath]].concat();
        build(&program, &options, is_linked.then_some(library.as_path()));
        Self {
            process: Process::spawn(command(&program)),
            program,
            library,
            printed: BTreeMap::new(),
        }
    }

    /// Gives it a command, and waits until it is done.
    #[track_caller]
    fn tell(&mut self, command: &str) {
        self.process.say(command);
        loop {
            let line = self.process.line().expect("an answer");
            let Some(hit) = line.strip_prefix("hit ") else {
                assert_eq!(line, "done", "{command}");
                return;
            };
            let (counter, ids) = hit.split_once(' ').expect("ids");
            let counter = counter.parse().expect("a counter");
            let known = self.printed.insert(counter, ids.to_owned());
            assert_eq!(known, None, "one hit has one counter");
        }
    }

    fn event(&self, name: &str) -> String {
        format!("sdt_context:{name}@{}", self.program.display())
    }

    /// A recorder of the running program.
    fn record(&self, lab: &Lab) -> Recorder {
        let pid = self.process.pid().to_string();
        let event = self.event("*");
        Recorder::start(
            lab,
            ["-o", "trace", "--thread-context", "-p", &pid, "-e", &event],
        )
    }
}

/// The ids of hits in the trace, or the reasons why there are none, by counter.
#[track_caller]
fn recorded(lab: &Lab) -> BTreeMap<u32, String> {
    let text = lab.usdtrec(["script", "-i", "trace", "-F", "args,trace_id,span_id"]);
    let text = text.success().stdout;
    let hit = |line: &str| {
        let (_, rest) = line.split_once("arg1=").expect("the counter");
        let (counter, ids) = rest.split_once(' ').expect("ids");
        (counter.parse().expect("a number"), ids.to_owned())
    };
    text.lines().map(hit).collect()
}

/// What is shown where the program printed this.
fn shown(printed: &str) -> String {
    let reason = match printed {
        "none" => "<no request>",
        "invalid" => "<invalid thread context>",
        "unreadable" => "<unreadable thread context>",
        ids => return ids.to_owned(),
    };
    format!("{reason} {reason}")
}

/// Records each kind of context, in the first thread, in another one, and in a child.
#[track_caller]
fn check(model: Model) {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, model);
    if model.is_loaded() {
        target.tell(&format!("load {}", target.library.display()));
    }
    // The thread has memory for the variable; others get it later.
    target.tell("clear");
    let recorder = target.record(&lab);
    for command in [
        "hit 1",
        "set 1",
        "hit 2",
        "set 2",
        "hit 1",
        "clear",
        "hit 1",
        "set 3",
        "hit 1",
        "invalid",
        "hit 1",
        "unreadable",
        "hit 2",
        "zero",
        "hit 1",
        "thread 4",
        "hit 1",
        "set 5",
        "fork 2",
        "hit 1",
        "thread 6",
    ] {
        target.tell(command);
    }
    recorder.stop();
    let expected = target.printed.iter();
    let expected: BTreeMap<u32, String> = expected.map(|(at, ids)| (*at, shown(ids))).collect();
    assert_eq!(recorded(&lab), expected);
}

#[test]
fn in_a_program() {
    check(Model::IN_PROGRAM);
}

#[test]
fn in_a_program_with_a_fixed_address() {
    check(Model {
        program: &["-rdynamic", "-no-pie", "-fno-pie"],
        ..Model::IN_PROGRAM
    });
}

#[test]
fn in_a_linked_library() {
    check(Model::LINKED);
}

#[test]
fn in_a_linked_library_by_descriptors() {
    check(Model {
        library: Some(&["-mtls-dialect=gnu2"]),
        ..Model::LINKED
    });
}

#[test]
fn in_a_linked_library_at_a_distance() {
    check(Model {
        library: Some(&["-ftls-model=initial-exec"]),
        ..Model::LINKED
    });
}

#[test]
fn in_a_loaded_library() {
    check(Model::LOADED);
}

#[test]
fn in_a_loaded_library_by_descriptors() {
    check(Model {
        library: Some(&["-mtls-dialect=gnu2"]),
        ..Model::LOADED
    });
}

/// A symbol that no other file can hide has relocations of the module alone.
#[test]
fn in_a_loaded_library_by_a_protected_symbol() {
    check(Model {
        library: Some(&[PROTECTED, "-mtls-dialect=gnu2"]),
        ..Model::LOADED
    });
    check(Model {
        compiler: "clang",
        library: Some(&[PROTECTED]),
        ..Model::LOADED
    });
}

#[test]
fn in_a_program_of_musl() {
    check(Model {
        compiler: "musl-gcc",
        ..Model::IN_PROGRAM
    });
}

#[test]
fn in_libraries_of_musl() {
    for base in [Model::LINKED, Model::LOADED] {
        for library in [&[][..], &["-mtls-dialect=gnu2"]] {
            check(Model {
                compiler: "musl-gcc",
                library: Some(library),
                ..base
            });
        }
    }
}

/// Until the recorder has found the variable, nothing is known, and nothing is invented.
#[test]
fn of_a_library_that_is_loaded_while_recording() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, Model::LOADED);
    let recorder = target.record(&lab);
    target.tell("hit 2");
    target.tell(&format!("load {}", target.library.display()));
    target.tell("set 1");
    let is_found = |last: u32| {
        let last = recorded(&lab).remove(&last);
        last.is_some_and(|ids| !ids.starts_with(NOT_FOUND))
    };
    let mut tries = 0;
    loop {
        target.tell("hit 1");
        std::thread::sleep(Duration::from_millis(100));
        let last = target.printed.last_key_value().expect("hits");
        if tries > 10 && is_found(*last.0) {
            break;
        }
        tries += 1;
        assert!(tries < 300, "never found");
    }
    // Another program, of which nothing that was known of this one holds.
    target.tell("exec 2");
    recorder.stop();
    let unknown = format!("{NOT_FOUND} {NOT_FOUND}");
    let found = recorded(&lab);
    assert_eq!(found.len(), target.printed.len());
    for (counter, printed) in &target.printed {
        let found = &found[counter];
        let is_early = *counter < 2 || printed == "none";
        match is_early {
            true => assert_eq!(*found, unknown, "{counter}"),
            false => assert!(*found == *printed || *found == unknown, "{counter} {found}"),
        }
    }
}

/// From inside a pid namespace: its processes have other ids outside.
#[test]
fn in_a_container() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let mut target = Target::start_by(&lab, Model::IN_PROGRAM, contained::command);
    target.tell("clear");
    let event = target.event("hit");
    let process = contained::child_of(&target.process);
    let options = ["--thread-context", "-p", "2", "-e", &event];
    let recorder = contained::recorder_in(&lab, &process, &options);
    for command in ["set 1", "hit 2", "thread 4", "fork 2", "clear", "hit 1"] {
        target.tell(command);
    }
    // What was known of the program before does not hold for the next one.
    let before = target.printed.len();
    target.tell("exec 2");
    contained::stop(recorder);
    let found = recorded(&lab);
    assert_eq!(found.len(), target.printed.len());
    for (number, (counter, printed)) in target.printed.iter().enumerate() {
        // That of the program that was executed may be found before its hits.
        let is_unknown = number >= before && found[counter].starts_with(NOT_FOUND);
        assert!(
            is_unknown || found[counter] == shown(printed),
            "{counter}: {found:?}"
        );
    }
}

/// Groups, filters, JSON, templates, spans of OpenTelemetry, and stock perf.
#[test]
fn ids_are_fields() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, Model::IN_PROGRAM);
    let recorder = target.record(&lab);
    for command in ["hit 1", "set 1", "hit 2", "set 2", "hit 4"] {
        target.tell(command);
    }
    recorder.stop();
    let ids = |counter: u32| target.printed[&counter].split_once(' ').expect("ids");
    let (trace, span) = ids(3);
    let printed = |arguments: &[&str]| {
        let all = [arguments, &["-i", "trace"]].concat();
        lab.usdtrec(all).success().stdout
    };
    let rows = printed(&["report", "--sort", "trace_id", "--format", "json"]);
    let rows = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let rows: Vec<Value> = rows.collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(
        (&rows[0]["trace_id"], &rows[0]["samples"]),
        (&trace.into(), &4.into())
    );
    let text = printed(&["report", "--sort", "span_id"]);
    assert!(
        text.contains("<no request>") && text.contains(span),
        "{text}"
    );
    let filter = format!("trace_id == \"{trace}\" && span_id ~ \"{}*\"", &span[..4]);
    let filtered = [
        "script",
        "--filter",
        &filter,
        "--format",
        "{arg1} {trace_id} {span_id}",
    ];
    let expected = (3..7).map(|at| format!("{at} {trace} {span}\n"));
    assert_eq!(printed(&filtered), expected.collect::<String>());
    let json = printed(&["script", "--format", "json", "-F", "trace_id,span_id"]);
    let first = json.lines().next().expect("a hit");
    assert_eq!(first, r#"{"trace_id":null,"span_id":null}"#);
    // perf shows them, too.
    let perf = Perf::new(&lab)
        .run(["script", "-i", "trace"])
        .success()
        .stdout;
    let by_perf = format!("trace_id={trace} span_id={span} context_status=1");
    assert_eq!(perf.matches(&by_perf).count(), 4, "{perf}");
}

#[test]
fn exported_spans_are_children_of_those_of_the_program() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, Model::IN_PROGRAM);
    let recorder = target.record(&lab);
    for command in ["work", "set 1", "hit 1", "work"] {
        target.tell(command);
    }
    recorder.stop();
    let ids = target.printed[&0].split_once(' ').expect("ids");
    let json = lab.usdtrec(["export", "-i", "trace", "--to", "otlp", "-o", "-"]);
    let json: Value = serde_json::from_str(&json.success().stdout).expect("one line");
    let resources = json["resourceSpans"].as_array().expect("resources");
    assert_eq!(resources.len(), 1, "one process: {json}");
    let spans = resources[0]["scopeSpans"][0]["spans"].as_array();
    let spans = spans.expect("spans");
    let of = |span: &Value| {
        let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
        (text("traceId"), text("parentSpanId"))
    };
    assert_eq!(spans.len(), 2, "{json}");
    assert_ne!(of(&spans[0]).0, ids.0);
    assert_eq!(of(&spans[0]).1, "");
    assert_eq!(of(&spans[1]), (ids.0.to_owned(), ids.1.to_owned()));
}

#[test]
fn filters_of_recordings_take_ids() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, Model::IN_PROGRAM);
    target.tell("set 1");
    target.tell("hit 1");
    let ids = target.printed[&0].clone();
    let (trace, span) = ids.split_once(' ').expect("ids");
    let (event, pid) = (target.event("hit"), target.process.pid().to_string());
    let filter = format!(
        "trace_id == \"{trace}\" && span_id ~ \"{}*\" && arg1 < 5",
        &span[..4]
    );
    let filtered = ["-o", "trace", "-p", &pid, "-e", &event, "--filter", &filter];
    let recorder = Recorder::start(&lab, filtered.iter().chain(&["--thread-context"]));
    for command in [
        "hit 2", "set 2", "hit 1", "clear", "hit 1", "set 1", "hit 3",
    ] {
        target.tell(command);
    }
    recorder.stop();
    // Hit 0 was before it, 3 of another request, 4 of none, and the argument of others is larger.
    let expected = [1, 2].map(|counter| (counter, ids.clone()));
    assert_eq!(recorded(&lab), BTreeMap::from(expected));
    lab.usdtrec(["record"].iter().chain(&filtered))
        .exits(2)
        .complains("has no argument trace_id");
}

#[test]
fn what_cannot_be_read_is_refused_or_said() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab, Model::IN_PROGRAM);
    let event = target.event("hit");
    let perf = [
        "record",
        "--engine",
        "perf",
        "--thread-context",
        "-e",
        &event,
        "--",
        "true",
    ];
    lab.usdtrec(perf)
        .exits(2)
        .complains("--thread-context needs the bpf engine");
    lab.usdtrec(["top", "--thread-context", "-e", &event])
        .exits(2)
        .complains("--thread-context: counts do not show");
    let pid = target.process.pid().to_string();
    let recorder = Recorder::start(&lab, ["-o", "trace", "-p", &pid, "-e", &event]);
    target.tell("hit 2");
    recorder.stop();
    let reason = "<thread context not recorded>";
    for ids in recorded(&lab).values() {
        assert_eq!(*ids, format!("{reason} {reason}"));
    }
    lab.usdtrec(["report", "-i", "trace", "--sort", "trace_id"])
        .exits(1)
        .complains(
            "trace_id needs thread contexts, which a recorder reads at hits if it is asked to",
        );
}
