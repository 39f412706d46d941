//! Options of `usdtrec diff`.

use std::path::PathBuf;

use clap::Args;
use usdtrec_report::diff::DiffOptions;

use super::selection::WhichArgs;
use super::stacks::InlineArgs;
use super::text::{Colour, OutputFormat, PagerArgs, WidthArgs};

/// Text after the options in `diff --help`: the statistical method.
const METHOD: &str = "\
A change is beyond noise if 0 is not in its interval, the last column. Intervals of percentiles are those of order statistics, joined by \
     the method of variance estimates recovery (MOVER); those of rates and shares are Welch's t with the variance of independent events. Each trace is \
     divided into 20 time slices. If both traces together show that events depend on each other in time, as under load that comes and goes, intervals are \
     widened to the long-run variance by the slowest changes between slices (equal-weighted cosine estimator, of percentiles of slices). Of 100 comparisons of two recordings of the same load, at \
     most one shows a difference of a kind: rates, shares, or a percentile of spans, of groups or of arguments (Holm's correction). Variation between \
     runs that does not occur within a run cannot be measured from two traces: use --percent-limit to omit small changes.

With --fail-above, the exit status is 1 if a figure differs so much, 0 if none does, and 2 for errors, if nothing can be compared, or if only one trace has spans of a name, at least 10.";

/// `usdtrec diff`.
#[derive(Debug, Args)]
#[command(after_help = METHOD)]
pub(crate) struct DiffArgs {
    /// Trace to compare with
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Trace to compare
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Selection of events; `--time` must be a percentage range
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Frames of inlined functions
    #[command(flatten)]
    pub(crate) inline: InlineArgs,
    /// Compare only these spans, besides probes and arguments: START..DONE, or the name of a span, with globs (may be repeated) [default: those that are found by the names of
    /// probes]
    #[arg(long, value_name = "START..DONE|NAME")]
    pub(crate) span: Vec<String>,
    /// Keys by which begin and end of spans are matched (comma list), as of report
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Compare only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'
    #[arg(long, value_name = "TIME")]
    pub(crate) min: Option<String>,
    /// Also compare spans grouped by these keys: arguments, or keys of report --sort (query:shape)
    ///
    /// Keys are taken from the begin event; from the end event as EVENT.KEY (request__done.status), or if only the end has the argument.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Omit changes smaller than this, in percent of A's value
    #[arg(long, value_name = "PERCENT", default_value_t = DiffOptions::MIN, value_parser = percent)]
    pub(crate) percent_limit: f64,
    /// Exit with status 1 if any figure differs beyond noise by more than this, in percent of A's value; with status 2 for errors
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,
    /// Also show changes within noise
    #[arg(short, long)]
    pub(crate) all: bool,
    /// When to use colours
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// Width of lines
    #[command(flatten)]
    pub(crate) width: WidthArgs,
    /// Pager
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    number
        .ok()
        .filter(|number| (0.0..f64::INFINITY).contains(number))
        .ok_or_else(|| "expected a percentage such as 5 or 2.5".to_owned())
}
