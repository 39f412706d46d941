//! `usdtrec dump`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::bail;
use usdtrec_format::escape::{escape, shown};
use usdtrec_record::{DumpError, Dumped, RunningRecorder, RunningRecorders};

use crate::cli::DumpArgs;
use crate::terminal::say;

/// Runs the verb: has recorders write their last seconds, and prints the paths of the files. The exit status is 1 if one could not.
pub(crate) fn run(args: &DumpArgs) -> anyhow::Result<ExitCode> {
    let found = RunningRecorders::find(args.pid);
    let recorders = chosen(args, found.all())?;
    let asked: Vec<_> = recorders
        .iter()
        .cloned()
        .map(|recorder| std::thread::spawn(move || recorder.dump()))
        .collect();
    let mut all = true;
    for (recorder, asked) in recorders.iter().zip(asked) {
        let pid = recorder.pid;
        match asked.join() {
            Ok(Ok(Dumped::File(path))) => print_path(path.as_os_str().as_bytes())?,
            Ok(Ok(Dumped::Failed(error))) => {
                say(format_args!("usdtrec: recorder {pid}: {}", escape(&error)));
                all = false;
            }
            Ok(Err(error)) => {
                let advice = advice(&error, pid);
                say(format_args!("usdtrec: recorder {pid}: {error}{advice}"));
                all = false;
            }
            Err(_) => all = false,
        }
    }
    Ok(if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What to do about a recorder that does not answer.
fn advice(error: &DumpError, pid: u32) -> String {
    match error {
        DumpError::Silent { state: 'T' | 't' } => {
            format!(": it is stopped; continue it with kill -CONT {pid}, and ask again")
        }
        DumpError::Silent { state: 'D' } => format!(
            ": it waits in the kernel, as for a file system that does not answer; /proc/{pid}/stack says where"
        ),
        DumpError::Silent { .. } => format!(
            ": is its control group frozen (/proc/{pid}/cgroup, cgroup.freeze), or the host overloaded?"
        ),
        DumpError::TooLong => ": does the disk of its files answer?".to_owned(),
        _ => String::new(),
    }
}

/// The recorders that are meant.
fn chosen<'r>(
    args: &DumpArgs,
    found: &'r [RunningRecorder],
) -> anyhow::Result<&'r [RunningRecorder]> {
    match (found, args.pid) {
        ([], Some(pid)) => {
            bail!("process {pid} does not record with --ring, or belongs to another user")
        }
        ([], None) => bail!(
            "no recorder with --ring runs that this user can reach: start one with usdtrec record --ring 60s"
        ),
        ([_, _, ..], _) if !args.all => {
            let pids: Vec<String> = found.iter().map(|found| found.pid.to_string()).collect();
            bail!(
                "several recorders run: expected -p PID or --all; they are {}",
                pids.join(", ")
            )
        }
        _ => Ok(found),
    }
}

/// Prints a path: to a terminal escaped, as other names are; for programs as it is.
fn print_path(path: &[u8]) -> std::io::Result<()> {
    use std::io::IsTerminal;
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
        return writeln!(out, "{}", shown(path));
    }
    out.write_all(path)?;
    out.write_all(b"\n")
}
