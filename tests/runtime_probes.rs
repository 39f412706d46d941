//! Probes that a program makes at run time, as libstapsdt does: in memory, or in a file that has no name any more.

use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, skip, test};

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

#[test]
fn files_without_a_name_are_listed_and_recorded() {
    let lab = Lab::privileged();
    if !cfg!(target_arch = "x86_64") {
        skip("the program knows the nop of x86-64");
    }
    let library = Build {
        options: &[
            "-O2",
            "-shared",
            "-fPIC",
            "-DLIBRARY",
            "-DPROVIDER=runtime_probes",
        ],
        ..Build::USUAL
    };
    let library = library.make(&lab, "runtime_probes.c", "library.so");
    let program = Build::USUAL.make(&lab, "runtime_probes.c", "program");
    let mut command = Command::new(program);
    command.arg(library).current_dir(lab.path());
    let mut program = Process::spawn(command);
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
