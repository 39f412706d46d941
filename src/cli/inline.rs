//! `--inline`, `--no-inline`.

use clap::Args;

/// Whether stacks have frames of inlined functions.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct InlineArgs {
    /// Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)
    #[arg(long, overrides_with = "no_inline")]
    inline: bool,
    /// Do not show frames of functions whose code was inlined
    #[arg(long, overrides_with = "inline")]
    pub(crate) no_inline: bool,
}
