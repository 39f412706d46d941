//! Two builds of one program, by their build-ids.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Build, Lab, Process, test};

const OLD: &str = "3f2a000000000000000000000000000000000001";
const NEW: &str = "3f2a0000000000000000000000000000000000ff";

/// The options of a build with each of these build-ids, and a provider that no other test has: what others run is found, too.
macro_rules! options {
    ($provider:literal) => {
        [
            &[
                concat!("-DPROVIDER=", $provider),
                "-Wl,--build-id=0x3f2a000000000000000000000000000000000001",
            ],
            &[
                concat!("-DPROVIDER=", $provider),
                "-Wl,--build-id=0x3f2a0000000000000000000000000000000000ff",
            ],
        ]
    };
}

/// Two builds of a program, `old` and `new`.
struct Builds {
    old: PathBuf,
    new: PathBuf,
}

impl Builds {
    #[track_caller]
    fn make(lab: &Lab, [old, new]: [&'static [&'static str; 2]; 2]) -> Self {
        let build = |options: &'static [&'static str; 2], name: &str| {
            let build = Build {
                options,
                ..Build::USUAL
            };
            build.make(lab, "running.c", name)
        };
        Self {
            old: build(old, "old"),
            new: build(new, "new"),
        }
    }

    /// Starts both, and lets each hit its probe once.
    fn run(&self) -> [Process; 2] {
        [&self.old, &self.new].map(|program| {
            let mut process = Process::spawn(Command::new(program));
            hit(&mut process, 1);
            process
        })
    }
}

/// Lets a program hit its probe.
fn hit(process: &mut Process, count: u32) {
    process.say(&count.to_string());
    process.line().expect("how often it did");
}

#[test]
fn a_build_id_selects_one_build_of_what_runs() {
    let lab = Lab::privileged();
    let builds = Builds::make(&lab, options!("builds_running"));
    let [mut old, mut new] = builds.run();
    // All digits of one are needed: 38 of 40 are the same.
    let event = format!("builds_running:hit@build-id:{OLD}");
    for (number, verb) in ["record", "trace"].into_iter().enumerate() {
        let mut arguments = vec![verb, "-a", "-e", &event];
        if verb == "record" {
            arguments.extend(["-o", "trace"]);
        }
        let mut recorder = Process::spawn(lab.command(arguments));
        let said = recorder.until_error_line("running now");
        assert_eq!(said, "usdtrec: running now: 1 file, 1 process");
        recorder.until_error_line("[ usdtrec");
        hit(&mut old, 3);
        hit(&mut new, 4);
        recorder.signal("INT");
        let printed = recorder.finish().success().stdout;
        match number {
            0 => assert_eq!(lab.events("trace").len(), 3),
            _ => assert_eq!(printed.matches("sdt_builds_running:hit").count(), 3),
        }
    }
    let list = lab.usdtrec(["list", "-a", &event]).success().stdout;
    let paths = list.lines().filter_map(|line| line.split("  ").last());
    let old = builds.old.display().to_string();
    assert_eq!(paths.skip(1).collect::<Vec<_>>(), [old.as_str()], "{list}");
}

#[test]
fn a_build_id_selects_one_build_of_what_is_indexed() {
    let lab = Lab::privileged();
    let builds = Builds::make(&lab, options!("builds_indexed"));
    for program in [&builds.old, &builds.new] {
        let program = program.to_str().expect("a path");
        lab.usdtrec(["buildid-cache", "--add", program]).success();
    }
    let event = format!("builds_indexed:hit@build-id:{NEW}");
    let list = lab.usdtrec(["list", "--format", "json", &event]);
    let list = list.success().stdout;
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains(NEW), "{list}");
    let hits = "echo 2 | ./old; echo 5 | ./new";
    lab.usdtrec([
        "record", "-o", "trace", "-e", &event, "--", "sh", "-c", hits,
    ])
    .success();
    assert_eq!(lab.events("trace").len(), 5);
    // Also of a process that maps it.
    let [_old, mut new] = builds.run();
    let pid = new.pid().to_string();
    let command = ["record", "-o", "process", "-p", &pid, "-e", &event];
    let mut recorder = Process::spawn(lab.command(command));
    recorder.until_error_line("[ usdtrec record:");
    hit(&mut new, 6);
    recorder.signal("INT");
    recorder.finish().success();
    assert_eq!(lab.events("process").len(), 6);
}

#[test]
fn a_build_id_that_is_not_of_one_build_is_refused_with_what_there_is() {
    let lab = Lab::privileged();
    let builds = Builds::make(&lab, options!("builds_refused"));
    let _running = builds.run();
    for command in [
        &["record", "-o", "trace", "-a", "-e"][..],
        &["trace", "-a", "-e"],
        &["top", "-a", "-e"],
        &["list", "-a"],
        &["list", "-a", "-v"],
    ] {
        for (digits, reason) in [
            ("3f2a0000", "several build-ids begin with these digits:"),
            (
                "12345678",
                "no file with such a probe has this build-id; there are:",
            ),
        ] {
            let event = format!("builds_refused:*@build-id:{digits}");
            let refused = lab
                .usdtrec(command.iter().chain([&event.as_str()]))
                .exits(1);
            refused
                .complains(&format!("{event}: {reason}"))
                .complains(&format!("{OLD} {}", builds.old.display()))
                .complains(&format!("{NEW} {}", builds.new.display()));
        }
    }
    for digits in ["3f2a", "3f2a000g"] {
        let event = format!("builds_refused:*@build-id:{digits}");
        lab.usdtrec(["record", "-o", "trace", "-a", "-e", &event])
            .exits(2)
            .complains("expected 8 to 128 hexadecimal digits after @build-id:");
    }
}

/// The first build that appears is recorded; another one with the same digits is named, unless its whole build-id is given, too.
#[test]
fn of_two_builds_that_appear_one_is_refused() {
    let lab = Lab::privileged();
    let builds = Builds::make(&lab, options!("builds_appear"));
    let digits = "builds_appear:hit@build-id:3f2a0000".to_owned();
    let whole = format!("builds_appear:hit@build-id:{NEW}");
    let refused =
        format!("the build-ids {OLD}, which is recorded, and {NEW} begin with the digits");
    let planted = "attached 1 probe";
    for (events, of_new, hits) in [
        (vec![&digits], &*refused, 3),
        (vec![&digits, &whole], planted, 7),
    ] {
        let mut command = lab.command(["record", "-a", "-o", "trace"]);
        for event in events {
            command.args(["-e", event]);
        }
        let mut recorder = Process::spawn(command);
        recorder.until_error_line("[ usdtrec record: 0 probes");
        let mut old = Process::spawn(Command::new(&builds.old));
        recorder.until_error_line(planted);
        hit(&mut old, 3);
        let mut new = Process::spawn(Command::new(&builds.new));
        let line = recorder.until_error_line(of_new);
        assert!(line.contains(&builds.new.display().to_string()), "{line}");
        hit(&mut new, 4);
        recorder.signal("INT");
        recorder.finish().success();
        assert_eq!(lab.events("trace").len(), hits);
    }
}

#[test]
fn two_builds_are_two_rows() {
    let lab = Lab::privileged();
    let builds = Builds::make(&lab, options!("builds_rows"));
    for program in [&builds.old, &builds.new] {
        let program = program.to_str().expect("a path");
        lab.usdtrec(["buildid-cache", "--add", program]).success();
    }
    let hits = "echo 2 | ./old; echo 5 | ./new";
    let event = "builds_rows:hit";
    lab.usdtrec(["record", "-o", "trace", "-e", event, "--", "sh", "-c", hits])
        .success();
    let printed = |command: &[&str]| {
        let command = command.iter().chain(&["-i", "trace"]);
        lab.usdtrec(command).success().stdout
    };
    for key in ["build-id", "build_id"] {
        let csv = printed(&["report", "--sort", key, "--format", "csv"]);
        let rows = csv.lines().map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [NEW, OLD, "build_id"].map(|id| cells.contains(&id))
        });
        let of_each = [
            [false, false, true],
            [true, false, false],
            [false, true, false],
        ];
        assert_eq!(rows.collect::<Vec<_>>(), of_each, "{csv}");
    }
    let filter = format!("build_id == \"{OLD}\"");
    for choice in [
        ["--filter", &filter],
        ["-e", &format!("{event}@build-id:{OLD}")],
    ] {
        let command = [
            &["script", "-F", "event,build-id", "--format", "csv"][..],
            &choice,
        ];
        assert_eq!(
            printed(&command.concat()),
            format!("build_id,event\n{OLD},sdt_{event}\n{OLD},sdt_{event}\n")
        );
    }
    let template = printed(&["script", "--format", "{build_id:>41}|"]);
    assert_eq!(
        template.matches(&format!(" {NEW}|")).count(),
        5,
        "{template}"
    );
    let list = lab.usdtrec(["list", event]).success().stdout;
    for (name, id) in [("old", OLD), ("new", NEW)] {
        let line = format!("sdt_{event}@{}({})", lab.file(name).display(), &id[..12]);
        assert!(list.contains(&line), "{list}");
    }
    // Groups of spans, too.
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    let command = [
        "report", "-i", demo, "--span", "request", "--by", "build-id", "--format", "json",
    ];
    let json = lab.usdtrec(command).success().stdout;
    assert!(json.contains(r#""key":"build_id""#), "{json}");
    lab.usdtrec(["diff", "--by", "build-id", demo, demo])
        .success();
}
