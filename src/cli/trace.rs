//! Options of `usdtrec trace` and `usdtrec top`.

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

/// `usdtrec top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// What
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Time from one table to the next (1, 500ms)
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    pub(crate) delay: String,
    /// End after so many tables
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
}
