//! Probes that a program makes at run time, as libstapsdt does: in memory, or in a file that has no name any more.

use std::process::Command;

use serde_json::Value;
use usdtrec_testing::is_deep;

use crate::common::{Build, Lab, Process, run, skip, test};

/// The lines of JSON of a list, each a file with the probe.
#[track_caller]
fn listed(lab: &Lab, command: &[&str]) -> Vec<Value> {
    let json = ["--format", "json", "runtime_probes:hit"];
    let json = lab.usdtrec(["list"].iter().chain(command).chain(&json));
    let json = json.success().stdout;
    json.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The program, with the path of a library that has the probe of this provider, `-DPROVIDER=…`.
#[track_caller]
fn program(lab: &Lab, provider: &'static str) -> Command {
    if !cfg!(target_arch = "x86_64") {
        skip("the program knows the nop of x86-64");
    }
    let library = Build {
        options: Vec::leak(vec!["-O2", "-shared", "-fPIC", "-DLIBRARY", provider]),
        ..Build::USUAL
    };
    let library = library.make(lab, "runtime_probes.c", "library.so");
    let program = Build::USUAL.make(lab, "runtime_probes.c", "program");
    let mut command = Command::new(program);
    command.arg(library).current_dir(lab.path());
    command
}

#[test]
fn files_without_a_name_are_listed_and_recorded() {
    let lab = Lab::privileged();
    let mut program = Process::spawn(program(&lab, "-DPROVIDER=runtime_probes"));
    assert_eq!(program.line().as_deref(), Some("loaded"));
    let pid = program.pid().to_string();
    let of_process = listed(&lab, &["-p", &pid]);
    let running = listed(&lab, &["-a"]);
    for files in [&of_process, &running] {
        let paths = files
            .iter()
            .map(|file| file["path"].as_str().expect("a path"));
        let mut paths: Vec<&str> = paths.collect();
        paths.sort_unstable();
        let begin = lab.file("provider-").display().to_string();
        for (path, begin) in paths.iter().zip(["/memfd:libstapsdt:provider", &begin]) {
            assert!(path.starts_with(begin), "{paths:?}");
            assert!(path.ends_with(" (deleted)"), "{paths:?}");
        }
        assert_eq!(paths.len(), 2, "{paths:?}");
    }
    assert!(running.iter().all(|file| file["deleted"] == true));
    let explained = lab.usdtrec(["list", "-p", &pid, "-v", "runtime_probes:hit"]);
    let explained = explained.success().stdout;
    assert_eq!(
        explained.matches(" (deleted)  build-id").count(),
        2,
        "{explained}"
    );
    let mut hit = |count: u32| {
        program.say(&count.to_string());
        program.line().expect("how often it did")
    };
    assert_eq!(hit(1), "2 0");
    for (trace, selection) in [("process", &["-p", &pid][..]), ("all", &["-a"])] {
        let command = ["record", "-o", trace, "-e", "runtime_probes:hit"];
        let mut recorder = Process::spawn(lab.command(command.iter().chain(selection)));
        recorder.until_error_line("[ usdtrec record:");
        assert_eq!(hit(3), "6 6");
        recorder.signal("INT");
        recorder.finish().success();
        assert_eq!(lab.events(trace).len(), 6);
    }
}

/// Each load is a new file. The last of the reported gaps is the longest of all that are not reported each.
#[test]
fn hits_of_loads_and_those_in_the_reported_gaps_are_all() {
    let lab = Lab::privileged();
    let loads = if is_deep() { 200 } else { 30 };
    let mut command = program(&lab, "-DPROVIDER=runtime_loads");
    command.arg(loads.to_string());
    let record = ["record", "-a", "-o", "trace", "-e", "runtime_loads:hit"];
    let mut recorder = Process::spawn(lab.command(record));
    recorder.until_error_line("[ usdtrec record: 0 probes");
    let printed = run(command).success().stdout;
    recorder.signal("INT");
    let said = recorder.finish().success();
    said.complains(&format!("followed: {loads} files"))
        .complains(" 0 lost");
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.success().stdout).expect("an object");
    let shortfalls = report["shortfalls"].as_array().expect("a list").iter();
    let gaps: Vec<u64> = shortfalls
        .filter(|one| one["kind"] == "followed")
        .map(|file| file["gap_ns"].as_u64().expect("a gap"))
        .collect();
    let mut recorded = vec![Vec::new(); loads];
    for event in lab.events("trace") {
        let argument = event.integer(1) as usize;
        recorded[argument >> 32].push(argument & 0xffff_ffff);
    }
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), loads);
    for (load, (line, recorded)) in lines.iter().zip(recorded).enumerate() {
        let numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        let times: Vec<u64> = numbers.collect();
        let (loaded, hits) = times.split_first().expect("a time");
        let missed = hits.len() - recorded.len();
        assert_eq!(recorded, (missed..hits.len()).collect::<Vec<_>>(), "{load}");
        let planted = loaded + gaps[load.min(gaps.len() - 1)];
        let outside = hits[..missed].iter().filter(|time| **time > planted);
        assert_eq!(
            outside.count(),
            0,
            "load {load}: hits after the reported gap"
        );
    }
}
