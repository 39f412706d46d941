//! Stock perf (package linux-perf), kept from leaving files and processes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Finished, Lab, alone_with, need_tool, run, within};

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

    /// perf with arguments, in a mount namespace of its own: perf mounts tracefs by itself, and that is to stay there. It ends with the test: a
    /// recorder that went on would keep its events from being removed.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self
            .lab
            .at_home(Path::new("setpriv"), ["--pdeathsig", "KILL"]);
        command.args(["unshare", "--mount", "perf", "--buildid-dir"]);
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
        self.remove_all_of(&provider);
        for name in names {
            self.run(["probe", &format!("{provider}:{name}")]).success();
        }
        probes
    }

    /// Removes the events of a group that a killed test has left. What records them keeps them until it ends.
    #[track_caller]
    fn remove_all_of(&self, group: &str) {
        let left = || {
            let all = uprobe_events();
            let of_group = |line: &&str| line.contains(&format!(":{group}/"));
            let lines = all.lines().filter(of_group).map(str::to_owned);
            lines.collect::<Vec<String>>()
        };
        let is_removed = || {
            let left = left();
            if !left.is_empty() {
                let _ = self.run(["probe", "--del", &format!("{group}:*")]);
            }
            left.is_empty()
        };
        if !within(Duration::from_secs(60), is_removed) {
            let left = left().join("\n");
            panic!(
                "these events are of another test, and something records them:\n{left}\nprocesses with perf events: {}",
                processes_with_perf_events().join(", ")
            );
        }
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

/// Names and numbers of the processes that have perf events open.
fn processes_with_perf_events() -> Vec<String> {
    let has_events = |process: &Path| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten();
        descriptors.flatten().any(|descriptor| {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            target == Path::new("anon_inode:[perf_event]")
        })
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let processes = processes.map(|process| process.path());
    let described = processes
        .filter(|process| has_events(process))
        .map(|process| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let pid = process.file_name().unwrap_or_default().display();
            format!("{} {pid}", name.trim_end())
        });
    described.collect()
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
