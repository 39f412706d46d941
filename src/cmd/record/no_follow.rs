//! `--no-follow`: recorders that drop their capabilities.

use anyhow::bail;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use usdtrec_format::escape::shown;
use usdtrec_record::without_capabilities;

use crate::cli::{CaptureArgs, RecordArgs};
use crate::terminal::Usage;
use crate::unfinished_file::folder_of;

/// Refuses what needs capabilities as long as it is recorded, and what follows something. `is_named` is whether the processes of -p or of a command are
/// recorded.
pub(super) fn refuse_others(args: &CaptureArgs, is_named: bool) -> Result<(), Usage> {
    let is_perf = args.engine.is_perf();
    let reason = match () {
        () if !args.no_follow => return Ok(()),
        () if args.thread_context => {
            "--thread-context cannot be used with --no-follow: reading the variables of programs that start needs capabilities"
        }
        () if !is_perf && is_named && !args.no_inherit => {
            "--no-follow with -p or a command needs -i, because children get probes of their own while recording; or record all processes: -a"
        }
        () => return Ok(()),
    };
    Err(Usage(reason.to_owned()))
}

/// Fails if without capabilities files cannot be made in the folder of the output, or those there not be opened.
pub(super) fn check_folder(args: &RecordArgs) -> anyhow::Result<()> {
    if !args.capture.no_follow || args.output.as_os_str() == "-" {
        return Ok(());
    }
    let folder = folder_of(&args.output);
    let access = match args.switch_output.is_some() || args.ring.ring.is_some() {
        true => Access::WRITE_OK | Access::EXEC_OK,
        false => Access::EXEC_OK,
    };
    let has = || accessat(CWD, folder, access, AtFlags::EACCESS);
    if without_capabilities(has)? != Err(Errno::ACCESS) {
        return Ok(());
    }
    let user = rustix::process::geteuid().as_raw();
    bail!(
        "{}: without capabilities user {user} may not use this folder\n  \
         choose a folder of that user for -o, or leave out --no-follow",
        shown(folder)
    )
}
