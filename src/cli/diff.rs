//! Options of `usdtrec diff`.

use std::path::PathBuf;

use clap::Args;
use usdtrec_report::diff::DiffOptions;

use super::{Colour, OutputFormat, WhichArgs};

/// How noise is told from change.
const METHOD: &str = "\
A figure is beyond noise if it differs by more than it varies within each trace. Both are cut into 20 slices of time: \
     rates and shares are compared by Welch's t over the slices, percentiles by the intervals of their order statistics, made wider \
     where slices differ, which must not overlap. The limits are such that of 100 comparisons of like with like at most one \
     shows anything at all. What differs from run to run, but not within one, no single pair of traces can tell: --min leaves small changes out. \
     Noise is the least difference that would count.";

/// `usdtrec diff`.
#[derive(Debug, Args)]
#[command(after_help = METHOD)]
pub(crate) struct DiffArgs {
    /// The trace before
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The trace after
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Which events; of --time, only parts of each trace (10%-20%)
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Compare spans by these keys of the begin, too: arguments' names, or keys as of report --sort (query:shape)
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Leave out changes of less than this, in percent of A's figure
    #[arg(long, value_name = "PERCENT", default_value_t = DiffOptions::MIN, value_parser = percent)]
    pub(crate) min: f64,
    /// Show what is within noise, too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only
    #[arg(long)]
    pub(crate) human: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    number
        .ok()
        .filter(|number| (0.0..).contains(number))
        .ok_or_else(|| "expected a number of percent such as 5 or 2.5".to_owned())
}
