//! Options of `usdtrec demo`.

use clap::Args;

/// `usdtrec demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run only the traced workload (started by the demo)
    #[arg(long, hide = true)]
    pub(crate) workload: bool,
}
