//! Options of `usdtrec trace`.

use std::path::PathBuf;

use clap::Args;

use super::print::TEMPLATES;
use super::{CaptureArgs, PrintArgs};

/// `usdtrec trace`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATES)]
pub(crate) struct TraceArgs {
    /// What
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// How it looks
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Print into this file; the one before it is kept as FILE.old [default: standard output, and that of CMD becomes
    /// standard error]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
