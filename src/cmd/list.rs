//! `usdtrec list`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::ListArgs;

/// Runs the verb.
pub(crate) fn run(_args: &ListArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec list: not built yet")
}
