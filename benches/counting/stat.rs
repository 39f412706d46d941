//! `stat` in the background.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::common::{Lab, Process};

/// The program.
fn program() -> OsString {
    let given = std::env::var_os("USDTREC_BENCH_PROGRAM");
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_usdtrec").into())
}

/// Starts it for a process, and waits until it counts.
pub(crate) fn start(lab: &Lab, pid: u32, event: &str, options: &[&str]) -> Process {
    let mut command: Command = lab.at_home(Path::new(&program()), ["stat"]);
    command.args(["-p", &pid.to_string(), "-e", event]);
    command.args(options);
    let mut stat = Process::spawn(command);
    stat.until_error_line("[ usdtrec stat:");
    stat
}

/// Whether it has an option.
pub(crate) fn has(lab: &Lab, option: &str) -> bool {
    let mut help = lab.at_home(Path::new(&program()), ["stat", "--help"]);
    let help = help.output().expect("its help").stdout;
    String::from_utf8_lossy(&help)
        .split_whitespace()
        .any(|word| word == option)
}

/// An event of the program: `NAME`, or `NAME(LIST)`.
pub(crate) fn event(program: &Path, what: &str) -> String {
    format!("sdt_bars:{what}@{}", program.display())
}
