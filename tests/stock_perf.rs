//! Stock perf beside us: on our files, in the same run, and in the same cache.

use std::path::Path;

use crate::common::{Build, Lab, Perf, Process, Recorder, Ticker, run, site_of, sites_of, test};

/// A lab with a recording of a ticker: hits of its own, of a thread and of children.
struct Recorded {
    lab: Lab,
    hits: usize,
}

#[track_caller]
fn recorded() -> Recorded {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &target.event("tick")]);
    let commands = ["fire 50", "thread 40", "fork 30", "exec 20", "fire 10"];
    let hits = commands
        .map(|command| target.hit(command).len())
        .iter()
        .sum();
    recorder.stop();
    Recorded { lab, hits }
}

/// The same events in the same order, with the same times, names, CPUs and symbols.
#[test]
fn script_shows_the_same() {
    let Recorded { lab, hits } = recorded();
    let perf = Perf::new(&lab);
    for fields in [
        "comm,tid,cpu,time,event,ip,sym",
        "comm,pid,tid,time,event,ip,sym,dso",
        "time,event,ip,sym,symoff",
    ] {
        let options = ["script", "-i", "trace", "--ns", "-F", fields];
        let theirs = perf.run(options).success().silent().stdout;
        let ours = lab.usdtrec(options).success().silent().stdout;
        assert_eq!(theirs.lines().count(), hits);
        let differing = theirs
            .lines()
            .zip(ours.lines())
            .find(|(theirs, ours)| theirs != ours);
        assert_eq!(differing, None, "perf's line, our line, with -F {fields}");
        assert!(
            fields.contains("symoff") || theirs.contains(" tick"),
            "the function's name in: {theirs}"
        );
    }
}

/// Our default line is perf's, followed by the arguments.
#[test]
fn script_line_is_perfs_with_arguments() {
    let Recorded { lab, hits } = recorded();
    let perf = Perf::new(&lab);
    let theirs = perf
        .run(["script", "-i", "trace", "-F", "comm,tid,cpu,time,event"])
        .success()
        .silent()
        .stdout;
    let ours = lab
        .usdtrec(["script", "-i", "trace"])
        .success()
        .silent()
        .stdout;
    assert_eq!(ours.lines().count(), hits);
    for (theirs, ours) in theirs.lines().zip(ours.lines()) {
        let theirs = theirs.trim_end();
        assert!(ours.starts_with(theirs), "perf: {theirs}\nours: {ours}");
        assert!(ours.contains(" arg1=") && ours.contains(" arg3="), "{ours}");
    }
}

#[test]
fn report_and_header_without_warnings() {
    let Recorded { lab, hits } = recorded();
    let perf = Perf::new(&lab);
    let report = perf
        .run(["report", "--stdio", "-n", "-i", "trace"])
        .success()
        .silent()
        .stdout;
    assert!(report.contains("sdt_ticker:tick"), "{report}");
    let counted: usize = report
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok())
        .sum();
    assert_eq!(counted, hits, "{report}");
    let header = perf
        .run(["report", "--header-only", "-i", "trace"])
        .success()
        .silent()
        .stdout;
    for line in [
        "# hostname :",
        "# cmdline :",
        "# nrcpus online :",
        "sdt_ticker:tick",
    ] {
        assert!(header.contains(line), "{line} in\n{header}");
    }
    perf.run(["evlist", "-v", "-i", "trace"]).success().silent();
    perf.run(["buildid-list", "-i", "trace"]).success().silent();
}

/// `perf inject` rewrites our file; what comes out is still read by us, arguments included.
#[test]
fn inject_keeps_the_arguments() {
    let Recorded { lab, hits } = recorded();
    let perf = Perf::new(&lab);
    perf.run(["inject", "-i", "trace", "-o", "injected"])
        .success();
    let before: Vec<_> = lab
        .events("trace")
        .iter()
        .map(|event| event.integer(1))
        .collect();
    let after: Vec<_> = lab
        .events("injected")
        .iter()
        .map(|event| event.integer(1))
        .collect();
    assert_eq!(before.len(), hits);
    assert_eq!(before, after);
}

/// `arg1=5 arg2=-6` as perf script prints it.
fn arguments_of(line: &str) -> Vec<i128> {
    let values = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("arg")?.split_once('='));
    values
        .map(|(_, value)| value.parse().expect("an integer"))
        .collect()
}

/// Both record the same run: the same integer arguments.
#[test]
fn same_run_same_arguments() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = Build::USUAL.make(&lab, "operands.c", "operands");
    // Those probes of operands.c whose arguments are all integers.
    let names = ["narrow_signed", "narrow_unsigned", "many", "addresses"];
    let probes = perf.plant(&program, "shapes", &names);
    let events = names
        .map(|name| format!("sdt_shapes:{name}@{}", program.display()))
        .join(",");
    let recorder = Recorder::start(&lab, ["--strings=off", "-a", "-o", "ours", "-e", &events]);
    let mut theirs = vec!["record", "-q", "-o", "theirs", "-e", "sdt_shapes:*"];
    theirs.extend(["--", program.to_str().expect("a path")]);
    perf.run(theirs).success();
    recorder.stop();
    drop(probes);
    let script = perf
        .run(["script", "-i", "theirs", "-F", "event,trace"])
        .success()
        .stdout;
    let theirs: Vec<_> = script.lines().map(arguments_of).collect();
    let sites = sites_of(&lab, &program);
    let ours = lab.events("ours");
    assert_eq!((theirs.len(), ours.len()), (12, 12), "{script}");
    for (theirs, event) in theirs.iter().zip(&ours) {
        let operands = &site_of(event, &sites).operands;
        assert_eq!(theirs.len(), operands.len());
        for (number, (theirs, operand)) in theirs.iter().zip(operands).enumerate() {
            let ours = event.integer(number + 1);
            let bits = 8 * operand.trim_start_matches('-')[..1]
                .parse::<u32>()
                .expect("a size");
            // perf 6.1 prints an s8 or s16 without its sign.
            let difference = (ours - theirs).rem_euclid(1 << bits);
            assert_eq!(
                difference, 0,
                "{}: {operand} ours {ours}, perf's {theirs}",
                event.event
            );
        }
    }
}

/// Names that are no identifiers, operands of every kind: stock perf shows every event, whichever way it was captured.
#[test]
fn odd_names_and_operands() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = Build::USUAL.make(&lab, "handmade_x86_64.c", "handmade");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("*:*@{path}");
    for engine in ["bpf", "perf"] {
        let options = [
            "record", "--engine", engine, "-o", "trace", "-e", &event, "--", path,
        ];
        let hits = lab.usdtrec(options).success().stdout.lines().count();
        let script = perf
            .run(["script", "-i", "trace", "-F", "comm,event"])
            .success()
            .silent();
        assert_eq!(script.stdout.lines().count(), hits, "{engine}");
        assert!(
            script
                .stdout
                .contains("sdt_odd.provider-x:na.me-with__all:"),
            "{}",
            script.stdout
        );
        perf.run(["report", "--stdio", "-i", "trace"])
            .success()
            .silent();
    }
}

/// The kernel marks the mappings that it reports to us as carrying a build-id while another process requests that, though
/// they do not. Ours must not believe it: stock perf would die of our file.
#[test]
fn another_recorder_asks_for_build_ids() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let target = Ticker::start(&lab);
    // Nobody else records with stock perf meanwhile: it would believe it.
    let probes = perf.plant(target.program(), "ticker", &["tick"]);
    let event = target.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    // The kernel reports the latest first.
    let mut other = vec!["record", "-q", "-a", "--buildid-mmap", "-o", "other"];
    other.extend([
        "-e",
        "sdt_ticker:tick",
        "--",
        "sh",
        "-c",
        "echo ready; exec cat",
    ]);
    let mut other = Process::spawn(perf.command(other));
    assert_eq!(other.line().as_deref(), Some("ready"));
    let path = target.program().to_str().expect("a path");
    run(lab.at_home(target.program(), ["10"])).success();
    other.finish().success();
    recorder.stop();
    drop(probes);
    let script = perf
        .run(["script", "-i", "trace", "-F", "comm,ip,sym,event"])
        .success()
        .silent();
    assert_eq!(script.stdout.lines().count(), 10);
    let list = perf
        .run(["buildid-list", "-i", "trace"])
        .success()
        .silent()
        .stdout;
    assert!(
        list.lines()
            .any(|line| line.ends_with(path) && line.len() == 41 + path.len()),
        "{list}"
    );
}

/// One cache: each lists what the other added.
#[test]
fn one_cache() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let node = Build::USUAL.make(&lab, "node.c", "node");
    let first = Build::USUAL.make(&lab, "first.c", "first");
    let add = |file: &Path| {
        [
            "buildid-cache".to_owned(),
            "--add".to_owned(),
            file.display().to_string(),
        ]
    };
    lab.usdtrec(add(&node)).success();
    perf.run(add(&first)).success();
    let theirs = perf.run(["list", "sdt"]).success().stdout;
    let ours = lab.usdtrec(["list"]).success().stdout;
    for probe in [
        "sdt_node:gc__start",
        "sdt_node:net__stream__end",
        "sdt_shapes:first",
    ] {
        assert!(theirs.contains(probe), "{probe} in perf list:\n{theirs}");
        assert!(ours.contains(probe), "{probe} in our list:\n{ours}");
    }
    let probes = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("[SDT event]"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(probes(&theirs), probes(&ours), "the same lines");
}
