//! The target that waits for commands (testdata/targets/ticker.c).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Build, Expected, Hit, Lab, Number, Process, need_tool, run, skip};

/// A running ticker.
#[derive(Debug)]
pub(crate) struct Ticker {
    process: Process,
    program: PathBuf,
}

impl Ticker {
    /// Builds and starts one, under the name `ticker`.
    #[track_caller]
    pub(crate) fn start(lab: &Lab) -> Self {
        let program = Build::USUAL.make(lab, "ticker.c", "ticker");
        Self::again(&program)
    }

    /// Starts a built one.
    pub(crate) fn again(program: &Path) -> Self {
        Self {
            process: Process::spawn(Command::new(program)),
            program: program.to_owned(),
        }
    }

    /// The file that runs.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// `sdt_ticker:NAME@PATH`.
    pub(crate) fn event(&self, name: &str) -> String {
        format!("sdt_ticker:{name}@{}", self.program.display())
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Lets its threads run on one CPU only. Skips the calling test on a machine that has one only.
    #[track_caller]
    pub(crate) fn run_on(&self, cpu: u32) {
        // What this test itself may run on does not matter.
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
        if online.is_ok_and(|online| online.trim() == "0") {
            skip("there is only one CPU");
        }
        need_tool("taskset");
        let mut taskset = Command::new("taskset");
        taskset.args(["-a", "-p", "-c", &cpu.to_string(), &self.pid().to_string()]);
        run(taskset).success();
    }

    /// Gives it a command.
    pub(crate) fn say(&mut self, command: &str) {
        self.process.say(command);
    }

    /// The next line of an answer; `None` if it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.process.line()
    }

    /// The next line of an answer, if there is one within this time.
    pub(crate) fn line_within(&mut self, time: Duration) -> Option<String> {
        self.process.line_within(time)
    }

    /// Gives it a command and waits until it is done; the lines of its answer.
    #[track_caller]
    pub(crate) fn tell(&mut self, command: &str) -> Vec<String> {
        self.process.say(command);
        let mut answer = Vec::new();
        loop {
            match self.process.line() {
                Some(line) if line == "done" => return answer,
                Some(line) => answer.push(line),
                None => panic!("the target ended at {command:?} after {answer:?}"),
            }
        }
    }

    /// Gives it a command that makes hits; what it passed: counter and thread id of each.
    #[track_caller]
    pub(crate) fn hit(&mut self, command: &str) -> Vec<(i128, i128)> {
        ticks(&self.tell(command).join("\n"))
    }

    /// The counters of its two semaphores: tick, guarded.
    #[track_caller]
    pub(crate) fn semaphores(&mut self) -> (u32, u32) {
        let answer = self.tell("semaphores");
        let mut words = answer[0].split_whitespace().skip(1);
        let mut next = || {
            words
                .next()
                .and_then(|word| word.parse().ok())
                .expect("a counter")
        };
        (next(), next())
    }

    /// Starts its waiting thread; the thread's id.
    #[track_caller]
    pub(crate) fn keep_thread(&mut self) -> u32 {
        let answer = self.tell("keep");
        answer[0]
            .strip_prefix("thread ")
            .and_then(|id| id.parse().ok())
            .expect("a thread id")
    }

    /// Gives it a command that ends it, and waits for the end; what it passed before.
    pub(crate) fn last_words(mut self, command: &str) -> Vec<(i128, i128)> {
        self.process.say(command);
        let mut lines = Vec::new();
        while let Some(line) = self.process.line() {
            lines.push(line);
        }
        ticks(&lines.join("\n"))
    }
}

/// Counter and thread id of each `fire tick` line.
fn ticks(text: &str) -> Vec<(i128, i128)> {
    let integer = |expected: &Expected| match expected {
        Expected::Value(Number::Integer(value)) => *value,
        other => panic!("the ticker printed {other:?}"),
    };
    Hit::parse_lines(text)
        .iter()
        .filter(|hit| hit.name == "tick")
        .map(|hit| (integer(&hit.arguments[0]), integer(&hit.arguments[1])))
        .collect()
}
