//! Options of `usdtrec doctor`.

use clap::Args;

/// `usdtrec doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Continue the processes that a killed recorder stopped (record --lossless), decrement the semaphores that it left
    /// incremented, and remove its tracefs events
    #[arg(long)]
    pub(crate) heal: bool,
}
