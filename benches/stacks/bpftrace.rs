//! bpftrace in the background.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::common::Process;

/// The program.
fn program() -> OsString {
    std::env::var_os("BPFTRACE").unwrap_or_else(|| "bpftrace".into())
}

/// What it calls itself; `None` where there is none.
pub(crate) fn version() -> Option<String> {
    let output = Command::new(program()).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.to_owned())
}

/// Starts a script with one probe of a process, and waits until that is attached. `None` if this bpftrace cannot run it.
///
/// It runs in a mount namespace of its own, which has tracefs where bpftrace looks for it.
pub(crate) fn start(traced: &Path, pid: u32, action: &str) -> Option<Process> {
    let script = format!(
        "BEGIN {{ printf(\"ready\\n\"); }} usdt:{}:deep:hit {{ {action} }}",
        traced.display()
    );
    let mut command = Command::new("unshare");
    let mount = "mount -t tracefs nodev /sys/kernel/tracing 2>&-; exec \"$@\"";
    command.args(["--mount", "sh", "-c", mount, "sh"]);
    command.arg(program());
    command.args(["-p", &pid.to_string(), "-B", "line", "-e", &script]);
    let mut process = Process::spawn(command);
    loop {
        if process.line()?.trim() == "ready" {
            return Some(process);
        }
    }
}
