//! `usdtrec buildid-cache`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::BuildidCacheArgs;

/// Runs the verb.
pub(crate) fn run(
    _args: &BuildidCacheArgs,
    _buildid_dir: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    anyhow::bail!("usdtrec buildid-cache: not built yet")
}
