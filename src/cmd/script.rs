//! `usdtrec script`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::ScriptArgs;

/// Runs the verb.
pub(crate) fn run(_args: &ScriptArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec script: not built yet")
}
