//! `usdtrec script`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_report::script::{ScriptOptions, script};

use super::selection;
use crate::cli::ScriptArgs;
use crate::terminal;

/// Runs the verb.
pub(crate) fn run(args: &ScriptArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let session = selection::open(&args.selection, buildid_dir)?;
    let options = ScriptOptions {
        fields: args.fields.unwrap_or_default(),
        nanoseconds: args.ns,
        format: selection::format(args.format),
    };
    let asked = selection::selection(&args.selection);
    let mut out = selection::output()?;
    let notices = script(&session, &asked, &options, &mut out)?;
    selection::tell(&args.selection.input, &notices);
    let lost = session.lost();
    if lost > 0 {
        let told = format!("{lost} events were lost while recording; see usdtrec report");
        terminal::warn(&args.selection.input, &told);
    }
    Ok(ExitCode::SUCCESS)
}
