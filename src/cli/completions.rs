//! Options of `usdtrec completions` and `usdtrec man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// `usdtrec completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `usdtrec man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write the pages into; it is made if it does not exist, and pages that are there are replaced
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
