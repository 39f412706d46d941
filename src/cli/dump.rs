//! Options of `usdtrec dump`.

use clap::Args;

/// `usdtrec dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The recorder with this process id [default: the only one that there is]
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// All recorders of this user
    #[arg(short, long, conflicts_with = "pid")]
    pub(crate) all: bool,
}
