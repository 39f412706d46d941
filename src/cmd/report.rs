//! `usdtrec report`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_report::report::{ReportOptions, report};

use super::selection;
use crate::cli::ReportArgs;
use crate::terminal;

/// Runs the verb.
pub(crate) fn run(args: &ReportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let session = selection::open(&args.selection, buildid_dir)?;
    let options = ReportOptions {
        sort: args.sort.clone(),
        show_samples: args.show_nr_samples,
        human: args.human,
        format: selection::format(args.format),
    };
    let asked = selection::selection(&args.selection);
    let notices = report(&session, &asked, &options, &mut selection::output()?)?;
    selection::tell(&args.selection.input, &notices);
    if let Some(tail) = session.trace().uncommitted() {
        terminal::warn(&args.selection.input, tail);
    }
    Ok(ExitCode::SUCCESS)
}
