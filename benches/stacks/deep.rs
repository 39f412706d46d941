//! A program that hits a probe below a number of frames.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Build, Lab, Process};

/// The program without frame pointers, as distributions build theirs, and with.
pub(crate) struct Deep {
    pub(crate) without_frame_pointers: PathBuf,
    pub(crate) with_frame_pointers: PathBuf,
}

impl Deep {
    /// Builds both.
    pub(crate) fn make(lab: &Lab) -> Self {
        let omit = Build {
            compiler: "gcc",
            options: &["-O2", "-fomit-frame-pointer"],
        };
        let keep = Build {
            compiler: "gcc",
            options: &["-O2", "-fno-omit-frame-pointer"],
        };
        Self {
            without_frame_pointers: omit.make(lab, "deep.c", "deep"),
            with_frame_pointers: keep.make(lab, "deep.c", "deep-fp"),
        }
    }
}

/// A program that waits before its hits.
pub(crate) struct Waiting {
    process: Process,
    hits: usize,
}

/// Starts it. `depth` is the number of its own frames of recursion.
pub(crate) fn start(program: &Path, hits: usize, depth: usize) -> Waiting {
    let mut command = Command::new(program);
    command.args([&hits.to_string(), "1", &depth.to_string()]);
    Waiting {
        process: Process::spawn(command),
        hits,
    }
}

impl Waiting {
    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Lets it hit; gives the CPU time of a hit, ns.
    pub(crate) fn run(mut self) -> f64 {
        self.process.say("go");
        let printed = self.process.finish().success().stdout;
        // `hits COUNT NANOSECONDS NANOSECONDS`
        let time = printed.split_whitespace().nth(2).expect("a time");
        time.parse::<f64>().expect("nanoseconds") / self.hits as f64
    }
}
