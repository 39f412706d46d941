//! `usdtrec demo`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::DemoArgs;

/// Runs the verb.
pub(crate) fn run(_args: &DemoArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec demo: not built yet")
}
