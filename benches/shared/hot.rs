//! A program that waits before its hits, and perf in the background.

use std::path::Path;
use std::process::Command;

use crate::common::{Perf, Process};

/// A program that waits before its hits.
pub(crate) struct Waiting(Process);

/// CPU time of the program.
pub(crate) struct HotTime {
    /// Of its hits, ns.
    pub(crate) hits: f64,
    /// Of the whole process, ns.
    pub(crate) all: f64,
}

/// Starts a program whose threads hit one of its probes; `which` is what the program's source says.
pub(crate) fn start(program: &Path, hits: usize, threads: usize, which: &str) -> Waiting {
    let mut command = Command::new(program);
    command.args([&hits.to_string(), &threads.to_string(), which]);
    Waiting(Process::spawn(command))
}

impl Waiting {
    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Lets it hit.
    pub(crate) fn run(mut self) -> HotTime {
        self.0.say("go");
        let printed = self.0.finish().success().stdout;
        // `hits COUNT NANOSECONDS NANOSECONDS`
        let words = printed.split_whitespace();
        let figures: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
        HotTime {
            hits: figures[1],
            all: figures[2],
        }
    }
}

/// perf in the background, armed: it starts its command when it has enabled its events, and ends with it.
pub(crate) fn armed_perf(perf: &Perf<'_>, mut arguments: Vec<&str>) -> Process {
    arguments.extend(["--", "sh", "-c", "echo ready; exec cat"]);
    let mut process = Process::spawn(perf.command(arguments));
    assert_eq!(process.line().as_deref(), Some("ready"));
    process
}
