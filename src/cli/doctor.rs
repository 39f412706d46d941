//! Options of `usdtrec doctor`.

use clap::Args;

/// `usdtrec doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Continue the processes that a killed recorder stopped (record --lossless, --no-gap), decrement the semaphores that it left incremented, remove its
    /// tracefs events, and restore the instructions at its sites
    #[arg(long)]
    pub(crate) heal: bool,
}
