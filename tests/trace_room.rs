//! Files whose probes exceed what a trace can have: they are refused alone, and nothing is missing of the others.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Build, Lab, Process, need_tool, run, test};

/// A library with probes at nops, each with twelve arguments.
struct Crowd {
    provider: &'static str,
    probes: usize,
    /// Length of the names.
    name: usize,
}

impl Crowd {
    fn make(&self, lab: &Lab) -> PathBuf {
        need_tool("gcc");
        let mut text = String::from(
            ".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n\
             _.stapsdt.base: .space 1\n.text\n.globl crowd\ncrowd:\n",
        );
        for number in 0..self.probes {
            let _ = writeln!(text, "s{number}: nop");
        }
        text.push_str("ret\n.section .note.stapsdt,\"\",\"note\"\n");
        let arguments: Vec<String> = (1..=12).map(|at| format!("8@${at}")).collect();
        for number in 0..self.probes {
            let name = format!("{number:x<width$}", width = self.name);
            let _ = write!(
                text,
                ".balign 4\n.4byte 2f-1f,4f-3f,3\n1: .asciz \"stapsdt\"\n2: .balign 4\n\
                 3: .8byte s{number},_.stapsdt.base,0\n.asciz \"{}\"\n.asciz \"p{name}\"\n.asciz \"{}\"\n4: .balign 4\n",
                self.provider,
                arguments.join(" ")
            );
        }
        let source = lab.file(&format!("{}.s", self.provider));
        fs::write(&source, text).expect("write the source");
        let library = lab.file(&format!("{}.so", self.provider));
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-nostdlib", "-Wl,--build-id", "-o"]);
        gcc.args([&library, &source]);
        run(gcc).success();
        library
    }
}

fn honest(lab: &Lab, provider: &'static str) -> PathBuf {
    let options: &'static [&'static str] = Vec::leak(vec!["-shared", "-fPIC", "-O1", provider]);
    let build = Build {
        options,
        ..Build::USUAL
    };
    build.make(lab, "late_library.c", "libhonest.so")
}

fn loader(lab: &Lab) -> Process {
    let build = Build {
        options: &["-O1", "-ldl"],
        ..Build::USUAL
    };
    Process::spawn(Command::new(build.make(lab, "late.c", "late")))
}

fn tell(loader: &mut Process, command: &str) {
    loader.say(command);
    loader.line().expect("a number of hits");
}

fn load(loader: &mut Process, library: &Path) {
    tell(loader, &format!("load {}", library.display()));
}

fn recorder(lab: &Lab, arguments: &[&str]) -> (Process, String) {
    let mut command = lab.command(["record", "-o", "trace"]);
    command.args(arguments);
    let mut recorder = Process::spawn(command);
    let mut said = String::new();
    loop {
        let line = recorder.until_error_line("usdtrec");
        said.push_str(&line);
        said.push('\n');
        if line.contains("[ usdtrec record:") {
            return (recorder, said);
        }
    }
}

/// The hits of the other file have their argument, and nothing is damaged.
fn assert_whole(lab: &Lab, hits: usize) {
    let script = lab.usdtrec(["script", "-i", "trace"]).success();
    assert_eq!(script.stdout.lines().count(), hits, "{}", script.stdout);
    let last = script.stdout.lines().last().unwrap_or_default();
    assert!(last.contains(&format!("={hits}")), "{last}");
    assert!(!script.stderr.contains("damaged"), "{}", script.stderr);
}

#[test]
fn a_file_with_too_many_arguments_is_refused_at_the_start() {
    let lab = Lab::privileged();
    let crowd = Crowd {
        provider: "room_crowd",
        probes: 25_000,
        name: 4,
    };
    let crowd = crowd.make(&lab);
    let mut loader = loader(&lab);
    load(&mut loader, &crowd);
    load(&mut loader, &honest(&lab, "-DPROVIDER=room_honest"));
    let pid = loader.pid().to_string();
    let patterns = ["-e", "room_crowd:*", "-e", "room_honest:hit"];
    let (recorder, said) = recorder(&lab, &[&["-p", &*pid], &patterns[..]].concat());
    let refused = ["a trace has at most ", "selected sites (expected at most"];
    assert!(refused.iter().any(|text| said.contains(text)), "{said}");
    tell(&mut loader, "hit 3");
    recorder.signal("INT");
    recorder.finish().success();
    assert_whole(&lab, 3);
}

#[test]
fn a_file_with_a_name_that_is_too_long_is_refused_while_recording() {
    let lab = Lab::privileged();
    let crowd = Crowd {
        provider: "room_long",
        probes: 2,
        name: 9000,
    };
    let crowd = crowd.make(&lab);
    let mut loader = loader(&lab);
    let patterns = ["-e", "room_long:*", "-e", "room_other:hit"];
    let (mut recorder, _) = recorder(&lab, &[&["-a"], &patterns[..]].concat());
    load(&mut loader, &crowd);
    let line = recorder.until_error_line("room_long");
    assert!(
        line.contains("which fit into a record of the trace"),
        "{line}"
    );
    load(&mut loader, &honest(&lab, "-DPROVIDER=room_other"));
    recorder.until_error_line("attached 1 probe ");
    tell(&mut loader, "hit 3");
    recorder.signal("INT");
    recorder.finish().success();
    assert_whole(&lab, 3);
}
