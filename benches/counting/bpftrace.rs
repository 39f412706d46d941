//! bpftrace of Debian sid in the background.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::common::{DebianPackages, Process, debian_packages};

/// How it is started.
pub(crate) struct Bpftrace {
    /// The program, and the arguments before its own.
    words: Vec<OsString>,
}

impl Bpftrace {
    /// `$BPFTRACE`, or that of Debian sid, which runs with the libraries that it was built with.
    pub(crate) fn find() -> Self {
        if let Some(program) = std::env::var_os("BPFTRACE") {
            let words = vec![program];
            return Self { words };
        }
        let root = debian_packages(DebianPackages {
            name: "bpftrace-sid",
            suite: "sid",
            packages: &["bpftrace"],
            is_complete: true,
        });
        let path = |name: &str| root.join(name).into_os_string();
        let libraries = ["usr/lib/x86_64-linux-gnu", "usr/lib/llvm-21/lib"].map(path);
        let words = vec![
            path("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
            "--library-path".into(),
            libraries.join(std::ffi::OsStr::new(":")),
            path("usr/bin/bpftrace"),
        ];
        Self { words }
    }

    /// It, in a mount namespace of its own, which has tracefs where it looks for it.
    fn command(&self) -> Command {
        let mut command = Command::new("unshare");
        let mount = "mount -t tracefs nodev /sys/kernel/tracing 2>&-; exec \"$@\"";
        command.args(["--mount", "sh", "-c", mount, "sh"]);
        command.args(&self.words);
        command
    }

    /// What it calls itself.
    pub(crate) fn version(&self) -> String {
        let output = self.command().arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().trim().to_owned()
    }

    /// Starts a script for a process, and waits until it counts. In the script, `PROBE:` is what the names of probes begin with.
    pub(crate) fn start(&self, traced: &Path, pid: u32, script: &str) -> Process {
        let probe = format!("usdt:{}:bars:", traced.display());
        let mut command = self.command();
        command.args(["-p", &pid.to_string(), "-e"]);
        command.arg(script.replace("PROBE:", &probe));
        let mut process = Process::spawn(command);
        process.until_error_line("Attached");
        process
    }
}
