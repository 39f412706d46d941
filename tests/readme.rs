//! README's examples: they are run against real programs, and print what README shows.

use std::path::Path;

use crate::common::{Build, Lab, Postgres, Process, need_tool, run, signal};

const README: &str = include_str!("../README.md");

/// A command of README and the first line that it prints there, if one is shown.
#[derive(Debug)]
struct Example {
    command: String,
    prints: Option<&'static str>,
}

/// What examples need that is not here: an application of the reader's, two recordings of his, a program that Debian builds without probes.
const ELSEWHERE: [&str; 5] = ["app.jar", "before.data", "node", "perf script", "args.name"];

/// The commands of README's blocks, without `sudo` and remarks.
fn examples() -> Vec<Example> {
    let blocks = README.split("```").skip(1).step_by(2);
    let mut examples: Vec<Example> = Vec::new();
    for block in blocks.filter(|block| block.contains("$ ")) {
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(mut command) = line.strip_prefix("$ ").map(str::to_owned) else {
                continue;
            };
            while command.ends_with('\\') {
                command.pop();
                command.push_str(lines.next().expect("a command goes on").trim());
            }
            let command = command.split("  #").next().unwrap_or(&command).trim();
            let command = command.strip_prefix("sudo ").unwrap_or(command);
            examples.push(Example {
                command: command.to_owned(),
                prints: lines.peek().copied().filter(|line| !line.starts_with("$ ")),
            });
        }
    }
    examples.retain(|Example { command, prints }| {
        let is_here = |text: &str| !ELSEWHERE.iter().any(|word| text.contains(word));
        command.starts_with("usdtrec ") && is_here(command) && prints.is_none_or(is_here)
    });
    examples
}

/// A line without what differs from run to run: numbers and addresses, and all from the first text on.
fn shape(line: &str) -> String {
    let before = line.split('"').next().unwrap_or(line);
    let words = before.split_whitespace().map(|word| {
        let digits = |c: char| c.is_ascii_digit();
        if word.contains(digits) && !word.starts_with("sdt_") {
            "#"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs a command of README in a lab; what it prints. If it records until Ctrl-C, `meanwhile` is done, and then it is ended.
#[track_caller]
fn run_example(lab: &Lab, command: &str, meanwhile: &dyn Fn()) -> String {
    let start = "sh -c 'echo $$ >pid; exec \"$0\" \"$@\"' \"$0\" ";
    let script = command.replacen("usdtrec ", start, 1);
    let mut shell = lab.at_home(Path::new("sh"), ["-c", &script]);
    shell.arg(env!("CARGO_BIN_EXE_usdtrec"));
    let mut process = Process::spawn(shell);
    let records = ["usdtrec record ", "usdtrec trace "];
    let records = records.iter().any(|verb| command.starts_with(verb));
    if records && !command.contains(" -- ") {
        process.until_error_line("[ usdtrec ");
        meanwhile();
        let pid = std::fs::read_to_string(lab.file("pid")).expect("a process id");
        // A reader that has enough ends it before.
        if process.is_running() {
            signal(pid.trim().parse().expect("a number"), "INT");
        }
    }
    process.finish().success().stdout
}

/// The commands about PostgreSQL, in their order, while pgbench runs.
#[test]
fn examples_with_postgresql() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(postgres) = Postgres::start() else {
        return;
    };
    postgres.client("pgbench", ["-i", "-q", "-s", "1"]);
    let pgbench = || {
        postgres.client("pgbench", ["-n", "-c", "4", "-t", "20"]);
    };
    let mut run = 0;
    for Example { command, prints } in examples() {
        let others = ["hotspot:", "libstdcxx:", "ruby:", "| jq"];
        if others.iter().any(|word| command.contains(word)) {
            continue;
        }
        let printed = run_example(&lab, &command, &pgbench);
        run += 1;
        let first = printed.lines().next().unwrap_or_default();
        if command.starts_with("usdtrec script ")
            && let Some(shown) = prints
        {
            assert_eq!(shape(first), shape(shown), "{command}");
        } else if let (false, Some(shown)) = (command.contains(" record "), prints) {
            // README leaves out the lines about the recording.
            let word = shown.split_whitespace().next().unwrap_or_default();
            let begins = |line: &str| line.split_whitespace().next() == Some(word);
            assert!(
                printed.lines().any(begins),
                "{command}: no line {word} in {printed}"
            );
        }
        let silent = command.contains(" record ") || command.contains("buildid-cache");
        assert!(silent || !printed.is_empty(), "{command} prints nothing");
    }
    assert!(run >= 10, "{run} commands");
}

/// Those about Ruby and C++.
#[test]
fn examples_with_other_programs() {
    let Some(lab) = Lab::privileged() else { return };
    if !need_tool("ruby3.1") {
        return;
    }
    let Some(thrower) = (Build {
        compiler: "g++",
        options: &["-O2"],
    })
    .make(&lab, "thrower.cc", "thrower") else {
        return;
    };
    std::fs::write(lab.file("app.rb"), "puts [3, 1].sort.inspect\n").expect("a file");
    let mut run_ones = 0;
    for Example { command, .. } in examples() {
        if command.contains("ruby:") {
            let printed = run_example(&lab, &command, &|| ());
            assert!(
                printed.lines().all(|line| line.contains("sdt_ruby:")),
                "{printed}"
            );
            assert!(!printed.is_empty(), "{command} prints nothing");
        } else if command.contains("libstdcxx:") {
            run_example(&lab, &command, &|| {
                run(std::process::Command::new(&thrower)).success();
            });
            let printed = lab.usdtrec(["script"]).success().stdout;
            assert!(printed.contains("sdt_libstdcxx:throw"), "{printed}");
        } else {
            continue;
        }
        run_ones += 1;
    }
    assert_eq!(run_ones, 2);
}
