//! A real program, recorded while the machine is busy.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Build, Lab, Process, run as run_command};
use crate::{Found, add, head, row};

/// Milliseconds of a recording.
const LENGTH: &str = "1000";

/// Prints the table.
pub(crate) fn run(pairs: usize) {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "spin.c", "spin");
    // As many processes as there are CPUs take turns with it.
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let busy = (0..cpus).map(|_| {
        let mut command = Command::new(&program);
        command.args(["1000000", "1000", "0", "1"]);
        command.stdout(Stdio::null());
        Process::spawn(command)
    });
    let busy: Vec<Process> = busy.collect();
    println!("\nPairs of recordings of a program on this machine, which is busy.\n");
    head("");
    for (microseconds, name, bar) in [
        ("100", "like, 100 µs", ""),
        ("105", "100 µs and 105 µs", ""),
        ("150", "100 µs and 150 µs", "p50: all"),
    ] {
        let mut found = Found::default();
        for _ in 0..pairs {
            record(&lab, &program, "100", "a");
            record(&lab, &program, microseconds, "b");
            let compared = lab.usdtrec(["diff", "a", "b", "--format", "json"]);
            let compared = compared.success().stdout;
            add(&mut found, &serde_json::from_str(&compared).expect("JSON"));
        }
        row(name.to_owned(), "", pairs, found, bar);
    }
    drop(busy);
}

fn record(lab: &Lab, program: &Path, microseconds: &str, trace: &str) {
    let event = format!("sdt_spin:*@{}", program.display());
    let mut command = lab.command(["record", "-q", "-e", &event, "-o", trace, "--"]);
    command.arg(program).args([LENGTH, microseconds, "0", "1"]);
    run_command(command).success();
}
