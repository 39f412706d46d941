//! `usdtrec record`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::RecordArgs;

/// Runs the verb.
pub(crate) fn run(_args: &RecordArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec record: not built yet")
}
