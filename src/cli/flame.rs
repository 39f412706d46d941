//! Options of `usdtrec flame`.

use std::path::PathBuf;

use clap::Args;

use super::selection::SelectionArgs;
use super::stacks::Stacks;

/// `usdtrec flame`.
#[derive(Debug, Args)]
pub(crate) struct FlameArgs {
    /// Picture to write: FILE.svg, or FILE.html for a page that fits the window, and is dark or light as the system; an existing file is replaced
    #[arg(value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The trace and the selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Compare the stacks of two traces: frames are as wide as the mean of their shares in A and B; red ones have a greater share in B, blue ones in A, beyond
    /// noise (as of diff), all others are grey
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["input", "value", "span", "key", "with", "holders"])]
    pub(crate) diff: Vec<PathBuf>,
    /// Which stacks are drawn [default: native where they were recorded, else script]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) stacks: Option<Stacks>,
    /// Weigh stacks by the sum of this argument instead of their hits
    #[arg(long, value_name = "ARG", conflicts_with = "span")]
    pub(crate) value: Option<String>,
    /// Weigh stacks by the time in the spans that begin there, without the spans within them: START..DONE, or the name of a span, with globs (may be repeated)
    #[arg(long, value_name = "START..DONE|NAME")]
    pub(crate) span: Vec<String>,
    /// With --span, keys by which begin and end are matched (comma list), as of report
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Show only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'; without --span, of all spans that are found by the names of probes
    #[arg(long, value_name = "TIME", conflicts_with_all = ["diff", "value"])]
    pub(crate) min: Option<String>,
}
