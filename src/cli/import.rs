//! Options of `usdtrec import`.

use std::path::PathBuf;

use clap::Args;

/// `usdtrec import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Output of bpftrace -f json; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Trace file; an existing file is renamed to FILE.old
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
