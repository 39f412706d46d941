//! `--no-inline`.

use clap::Args;

/// Whether stacks have frames of inlined functions.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct InlineArgs {
    /// Do not show frames of functions whose code was inlined, which are marked (inlined)
    #[arg(long)]
    pub(crate) no_inline: bool,
}
