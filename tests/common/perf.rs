//! Stock perf (package linux-perf), kept from leaving files and processes.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Finished, Lab, alone_with, need_tool, run};

/// Stock perf, working in a lab.
#[derive(Debug)]
pub(crate) struct Perf<'lab> {
    lab: &'lab Lab,
}

/// Events that perf put into tracefs; taken out again when dropped.
#[derive(Debug)]
pub(crate) struct Probes<'perf> {
    perf: &'perf Perf<'perf>,
    groups: Vec<String>,
    _alone: File,
}

impl<'lab> Perf<'lab> {
    /// Skips the test if perf is not installed.
    #[track_caller]
    pub(crate) fn new(lab: &'lab Lab) -> Self {
        need_tool("perf");
        Self { lab }
    }

    /// perf with arguments, in a mount namespace of its own: perf mounts tracefs by itself, and that is to stay there.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self
            .lab
            .at_home(Path::new("unshare"), ["--mount", "perf", "--buildid-dir"]);
        command.arg(self.lab.cache()).args(arguments);
        command
            .env("PERF_PAGER", "cat")
            .env("PERF_CONFIG", "/dev/null");
        command
    }

    /// Runs perf to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Finished {
        run(self.command(arguments))
    }

    /// Makes tracefs events of a program's probes: `perf buildid-cache --add`, `perf probe sdt_PROVIDER:NAME`.
    pub(crate) fn plant<'perf>(
        &'perf self,
        program: &Path,
        provider: &str,
        names: &[&str],
    ) -> Probes<'perf> {
        // tracefs is one for all, and events are named after the probes only: one test at a time adds them.
        let alone = alone_with("perf");
        let provider = format!("sdt_{provider}");
        self.run([
            OsStr::new("buildid-cache"),
            OsStr::new("--add"),
            program.as_os_str(),
        ])
        .success();
        let probes = Probes {
            perf: self,
            groups: vec![provider.clone()],
            _alone: alone,
        };
        // A test that was killed may have left some.
        let _ = self.run(["probe", "--del", &format!("{provider}:*")]);
        for name in names {
            self.run(["probe", &format!("{provider}:{name}")]).success();
        }
        probes
    }

    /// Runs perf to its end, its standard output into a file of the lab.
    pub(crate) fn run_into(&self, file: &str, arguments: &[&str]) {
        let output = File::create(self.lab.file(file)).expect("a new file");
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(output);
        let status = command.status().expect("perf is installed");
        assert!(status.success(), "perf {arguments:?}: {status}");
    }
}

impl Probes<'_> {
    /// Makes one more event, by a definition of `perf probe` without its group.
    pub(crate) fn add(&mut self, program: &Path, group: &str, definition: &str) {
        self.groups.push(group.to_owned());
        let definition = format!("{group}:{definition}");
        let program = program.to_str().expect("a path in UTF-8");
        self.perf
            .run(["probe", "-x", program, &definition])
            .success();
    }
}

impl Drop for Probes<'_> {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = self.perf.run(["probe", "--del", &format!("{group}:*")]);
        }
    }
}

/// The uprobe events that are in tracefs now.
pub(crate) fn uprobe_events() -> String {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(
        "cd /sys/kernel/tracing && { [ -e uprobe_events ] || mount -t tracefs nodev . ; } && cat /sys/kernel/tracing/uprobe_events",
    );
    run(command).success().stdout
}

/// The uprobe events of one recorder, whose group is `usdtrec_PID_START_NAMESPACE`: those of other tests' recorders come and go.
pub(crate) fn events_of_recorder(pid: u32) -> Vec<String> {
    let group = format!("usdtrec_{pid}_");
    let events = uprobe_events();
    let ours = events.lines().filter(|line| line.contains(&group));
    ours.map(str::to_owned).collect()
}
