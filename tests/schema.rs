//! Names and types of arguments: the verb, `list -v`, and on the whole way from a program to a printed line.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Lab, Perf, Process, Recorder, need_tool, run, test};
use crate::node::{NODE, tell};

const APP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/schemas/app.d");

#[test]
fn import_takes_precedence_and_export_reads_back() {
    let lab = Lab::new();
    let imported = lab
        .usdtrec(["schema", "import", APP, "--provider", "node"])
        .success();
    assert!(imported.stderr.contains("app.toml"), "{}", imported.stderr);
    let shown = lab.usdtrec(["schema", "show", "node:*"]).success().stdout;
    let first = shown.lines().next().unwrap();
    assert!(
        first.starts_with("sdt_node:numbers(a: u8, b: s16, ") && first.ends_with("app.toml]"),
        "{shown}"
    );
    assert!(shown.contains("sdt_node:gc__done(type: enum, flags: flags, isolate: ptr)  [bundled]"));
    let again = lab.usdtrec(["schema", "import", APP, "--provider", "node"]);
    assert!(
        again.stderr.contains("--force replaces it"),
        "{}",
        again.stderr
    );
    // Many programs call theirs probes.d.
    for provider in ["one", "../two"] {
        fs::write(lab.file("probes.d"), "provider app { probe m(int a); };").unwrap();
        let import = ["schema", "import", "probes.d", "--provider", provider];
        let imported = lab.usdtrec(import).success();
        let name = provider.replace("../", "___") + "-probes.toml";
        assert!(
            imported.stderr.contains(&format!("/schemas/{name}")),
            "{}",
            imported.stderr
        );
    }
    let exported = lab.usdtrec(["schema", "export", "node:*"]).success().stdout;
    fs::write(lab.file("all.toml"), &exported).unwrap();
    let checked = lab.usdtrec(["schema", "check", "all.toml"]).success();
    assert_eq!(checked.stdout.lines().count(), 1, "{}", checked.stdout);
    let back = lab.usdtrec(["schema", "export", "--schema", "all.toml", "node:*"]);
    assert_eq!(back.success().stdout, exported);
}

#[test]
fn check_finds_what_is_wrong_and_says_where() {
    let lab = Lab::new();
    let program = NODE.make(&lab, "node.c", "node");
    let schema = "provider = \"node\"\n[[probe]]\nname = \"gc-start\"\n\
                  arguments = [\"type: u64\", \"flags: f32\", \"isolate: str\"]\n\
                  [[probe]]\nname = \"gc-done\"\narguments = [\"type: s33\"]\n";
    fs::write(lab.file("bad.toml"), schema).unwrap();
    let program = program.to_str().unwrap();
    let files = [
        "schema",
        "check",
        "none.toml",
        "bad.toml",
        "--file",
        program,
    ];
    let checked = lab.usdtrec(files);
    assert!(!checked.status.success());
    for words in [
        "cannot read none.toml: No such file",
        "bad.toml:7:14: error: unknown type \"s33\"",
        "sdt_node:gc__start: bad.toml: type: the schema says u64, the note an integer of 4 bytes",
        "flags: the schema says f32, the note an integer of 4 bytes",
        "1 of 8 probes have a schema",
    ] {
        assert!(
            checked.stdout.contains(words),
            "{words}: {}",
            checked.stdout
        );
    }
    let listed = lab.usdtrec([
        "list",
        "-v",
        "--format",
        "json",
        "--file",
        program,
        "gc__start",
    ]);
    let listed: serde_json::Value = serde_json::from_str(&listed.success().stdout).unwrap();
    assert_eq!(listed["schema"], "bundled");
    assert_eq!(listed["description"], "a garbage collection begins");
    assert_eq!(listed["arguments"][0]["enum"]["1"], "scavenge");
    assert_eq!(
        listed["arguments"][2],
        serde_json::json!({"name": "isolate", "type": "ptr"})
    );
    let listed = lab.usdtrec(["list", "-v", "--file", program, "gc__start"]);
    let listed = listed.success().stdout;
    for words in [
        "a garbage collection begins  (schema: bundled)",
        "type: enum",
        "isolate: ptr",
    ] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
}

/// Provider files are for several programs: what a program has says more.
#[test]
fn check_reports_what_a_program_does_not_have() {
    let lab = Lab::new();
    let program = NODE.make(&lab, "node.c", "node");
    let program = program.to_str().unwrap();
    let file = "provider js { probe gc__start(int type, int flags, void *isolate); probe gc__done(int type, int flags, void *isolate); probe gone(); };";
    fs::write(lab.file("js.d"), file).unwrap();
    let checked = lab.usdtrec(["schema", "check", "js.d", "--file", program]);
    assert!(!checked.status.success());
    for words in [
        "js.d: provider js of 2 probes is node in the programs (schema import --provider node)",
        "js.d: not in the programs: gone\n",
        ": 0 of 8 probes have a schema",
    ] {
        assert!(
            checked.stdout.contains(words),
            "{words}: {}",
            checked.stdout
        );
    }
    let import = ["schema", "import", "js.d", "--provider", "node"];
    let imported = lab.usdtrec(import).success().stderr;
    assert!(imported.contains("3 probes of js.d"), "{imported}");
    let in_force = lab.usdtrec(["schema", "check", "--file", program]);
    let in_force = in_force.success().stdout;
    assert!(
        in_force.ends_with(": 8 of 8 probes have a schema\n"),
        "{in_force}"
    );
    lab.usdtrec(["schema", "check"]).exits(2);
    let narrow = "provider = \"node\"\n[[probe]]\nname = \"gc-start\"\n\
                  arguments = [\"type: s16\", \"flags: s32\", \"isolate: u32\"]\n";
    fs::write(lab.file("narrow.toml"), narrow).unwrap();
    let checked = lab.usdtrec(["schema", "check", "narrow.toml", "--file", program]);
    let words = "wider in the note than in the schema, the lower bytes are used: gc__start(isolate, type)\n";
    let checked = checked.success().stdout;
    assert!(checked.contains(words), "{checked}");
}

/// What node prints is what is shown: strings in quotes with the bpf engine, their addresses with perf's, numbers by
/// their words.
#[test]
fn names_and_types_reach_the_printed_line() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    let event = format!("node:*@{}", program.display());
    for engine in ["bpf", "perf"] {
        let options = ["--engine", engine, "-o", engine, "-a", "-e", &event];
        let recorder = Recorder::start(&lab, options);
        tell(&mut node, "gc 3");
        tell(&mut node, "request 2");
        recorder.stop();
        let script = lab
            .usdtrec(["script", "-F", "event,args", "-i", engine])
            .success()
            .stdout;
        let lines: Vec<&str> = script.lines().map(str::trim).collect();
        let has = |start: &str, words: &str| {
            let mut of_event = lines.iter().filter(|line| line.starts_with(start));
            assert!(
                of_event.any(|line| line.contains(words)),
                "{start} {words}:\n{script}"
            );
        };
        has(
            "sdt_node:gc__start:",
            " type=scavenge(1) flags=0 isolate=0x",
        );
        has(
            "sdt_node:gc__start:",
            " type=mark_sweep_compact(2) flags=-1 isolate=0x",
        );
        has(
            "sdt_node:gc__start:",
            " type=incremental_marking(4) flags=construct_retained_object_infos(0x2) ",
        );
        match engine {
            "bpf" => {
                let words =
                    r#" remote="::ffff:10.0.0.1" port=51057 method="GET" url="/foo/1" fd=19"#;
                has("sdt_node:http__server__request:", words);
            }
            _ => has(
                "sdt_node:http__server__request:",
                " port=51057 method=<string at 0x",
            ),
        }
    }
    let stored = lab
        .usdtrec(["schema", "export", "-i", "bpf", "gc-start"])
        .success()
        .stdout;
    assert!(stored.contains("1 = \"scavenge\""), "{stored}");
    assert!(stored.contains("a garbage collection begins"), "{stored}");
    stock_perf_shows_words(&lab);
    other_names_later(&lab);
    conflicts_while_recording(&lab, &program);
    let report = lab.usdtrec(["report", "-i", "bpf"]).success().stdout;
    assert!(report.contains("gc__start.type "), "{report}");
    let grouped = [
        "report",
        "-i",
        "bpf",
        "-e",
        "node:gc__start",
        "--sort",
        "type",
    ];
    let grouped = lab.usdtrec(grouped).success().stdout;
    assert!(grouped.contains("scavenge(1)"), "{grouped}");
}

/// A schema given later changes names and forms, of a probe that it fits.
fn other_names_later(lab: &Lab) {
    let schema = "provider = \"node\"\n[[probe]]\nname = \"gc__start\"\n\
                  arguments = [\"kind: bool\", \"pause: s64 ns\", \"_: u64\"]\n\
                  [[probe]]\nname = \"gc__done\"\narguments = [\"too\", \"few\"]\n\
                  [[probe]]\nname = \"http__client__response\"\n\
                  arguments = [\"connection\", \"remote\", \"port: str\", \"fd: f64\"]\n";
    fs::write(lab.file("later.toml"), schema).unwrap();
    for (options, words) in [
        (
            &["--format", "json"][..],
            "\"args\":{\"kind\":true,\"pause\":2,\"arg3\":",
        ),
        (&[], "kind=true pause=2 arg3="),
        (&["--format", "csv"][..], ",kind,pause,arg3,"),
        (&[], "sdt_node:gc__done: "),
        (&[], " port=51056 fd=-1\n"),
    ] {
        let script = ["script", "-i", "bpf", "--schema", "later.toml"];
        let shown = lab.usdtrec([&script[..], options].concat()).success();
        for conflict in CONFLICTS {
            assert!(shown.stderr.contains(conflict), "{}", shown.stderr);
        }
        let shown = shown.stdout;
        assert!(shown.contains(words), "{words}: {shown}");
        assert!(!shown.contains("few"), "{shown}");
    }
}

/// In our file stock perf shows pointers in hexadecimal, and words beside numbers.
fn stock_perf_shows_words(lab: &Lab) {
    let perf = Perf::new(lab);
    let shown = perf.run(["script", "-i", "bpf"]).success().stdout;
    for words in [
        "gc__start: type=scavenge(1) flags=(0) isolate=0x",
        "gc__start: type=incremental_marking(4) flags=construct_retained_object_infos(0x2) isolate=0x",
        " method_str=\"GET\" ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// What is said of `later.toml`, when recording and when reading.
const CONFLICTS: [&str; 3] = [
    "sdt_node:gc__done: later.toml: the schema is for 2 arguments, the note has 3: not used",
    "sdt_node:http__client__response: later.toml: port: the schema says str, the note an integer of 4 bytes, which is taken",
    "sdt_node:http__client__response: later.toml: fd: the schema says f64, the note an integer of 4 bytes, which is taken",
];

/// A schema with more arguments than the note is reported; names and values are the same.
fn conflicts_while_recording(lab: &Lab, program: &Path) {
    let event = format!("node:*@{}", program.display());
    let run = [
        "record",
        "-o",
        "conflicts",
        "--schema",
        "later.toml",
        "-e",
        &event,
    ];
    let mut record = lab.command(run);
    record.arg("--").arg(program);
    let recorded = feed(record, "request 2\ngc 1\n");
    for conflict in CONFLICTS {
        assert!(recorded.contains(conflict), "{recorded}");
    }
    let script = lab.usdtrec(["script", "-i", "conflicts"]).success().stdout;
    assert!(script.contains(" port=51056 fd=-1\n"), "{script}");
    assert!(
        script.contains("gc__done: ") && !script.contains("few"),
        "{script}"
    );
}

/// Runs a program with this input; what it says on stderr.
fn feed(mut command: Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("a reader");
    drop(pipe);
    let out = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    said
}

/// Recordings by sudo read another directory than the one that a user imports to.
#[test]
fn who_imports_without_sudo_is_told_what_sudo_reads() {
    need_tool("setpriv");
    let (lab, of_root) = (Lab::privileged(), Lab::privileged());
    for lab in [&lab, &of_root] {
        fs::write(lab.file("names.d"), "provider app { probe m(int a); };").expect("a file");
    }
    std::os::unix::fs::chown(lab.path(), Some(65534), None).expect("another owner");
    let mut words = vec!["--reuid", "65534", "--clear-groups", "--"];
    words.push(env!("CARGO_BIN_EXE_usdtrec"));
    words.extend(["schema", "import", "names.d", "--provider", "other"]);
    run(lab.at_home(Path::new("setpriv"), words))
        .success()
        .complains(" schema import --provider=other names.d");
    let said = of_root
        .usdtrec(["schema", "import", "names.d"])
        .success()
        .stderr;
    assert!(!said.contains("sudo"), "{said}");
}
