//! What to type after the list of what runs.

use std::io::{self, Write as _};

use super::Matching;
use crate::{fold, shell};

/// Prints a command that records the file that most processes run, and where the other commands are.
pub(super) fn print(files: &[Matching<'_>]) -> io::Result<()> {
    let mut out = fold::stdout();
    let sudo = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "sudo "
    };
    match files.iter().max_by_key(|file| file.running.processes.len()) {
        Some(file) => {
            let event = shell::event(&format!("{}:*", file.provider()), file.path());
            writeln!(out, "\nTo record what runs, for example:")?;
            writeln!(out, "  {sudo}usdtrec record -a -e {event} --duration 10s")?;
            writeln!(out, "  usdtrec report")?;
        }
        None => {
            writeln!(
                out,
                "No process that you may see runs code with USDT probes. To record a program:"
            )?;
            writeln!(
                out,
                "  {sudo}usdtrec record -e '*:*@./PROGRAM' -- ./PROGRAM"
            )?;
            writeln!(out, "  usdtrec report")?;
        }
    }
    writeln!(
        out,
        "To see it on probes of its own: {sudo}usdtrec demo. All commands: usdtrec --help"
    )?;
    out.flush()
}
