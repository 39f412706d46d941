//! `usdtrec report`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::ReportArgs;

/// Runs the verb.
pub(crate) fn run(_args: &ReportArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec report: not built yet")
}
