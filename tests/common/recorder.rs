//! A recorder in the background.

use std::ffi::OsStr;
use std::fs;

use super::{Finished, Lab, Process};

/// `usdtrec record`, planted and recording.
#[derive(Debug)]
pub(crate) struct Recorder {
    process: Process,
}

impl Recorder {
    /// Starts `usdtrec record ARGUMENTS` and waits until every probe is planted, which it says in its first line.
    pub(crate) fn start<S: AsRef<OsStr>>(
        lab: &Lab,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut command = lab.command(["record"]);
        command.args(arguments);
        let mut process = Process::spawn(command);
        process.until_error_line("[ usdtrec record:");
        Self { process }
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits for its end, which something else brings about.
    pub(crate) fn finish(self) -> Finished {
        self.process.finish()
    }

    /// Ends it as Ctrl-C does.
    #[track_caller]
    pub(crate) fn stop(self) -> Finished {
        self.signal("INT");
        self.finish().success()
    }
}

/// Number of a recorder's threads that help to compress. A thread takes its name when it first runs.
pub(crate) fn compressing_threads(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm"));
    let names = threads.flatten().flatten().flat_map(name);
    names.filter(|name| name.trim_end() == "compress").count()
}
