//! `usdtrec completions`.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::{Cli, CompletionsArgs};

/// Runs the verb.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::listed(), "usdtrec", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
