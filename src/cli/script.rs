//! Options of `usdtrec script`.

use clap::Args;

use super::print::{PrintArgs, TEMPLATES};
use super::selection::SelectionArgs;

/// `usdtrec script`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATES)]
pub(crate) struct ScriptArgs {
    /// Selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Output options
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
