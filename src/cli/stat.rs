//! Options of `usdtrec stat`.

use std::path::PathBuf;

use clap::Args;

use super::capture::CaptureArgs;
use super::format::OutputFormat;

/// `usdtrec stat`.
#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// What to count
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Print the counts of each interval (500ms, 2s), at least 10ms; a number without a unit is milliseconds, as in perf stat [default: once, at the end]
    #[arg(short = 'I', long, value_name = "TIME", alias = "interval-print")]
    pub(crate) interval: Option<String>,
    /// Output format: text, or the counts of each probe as JSON or CSV
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// As --format csv, for command lines of perf stat
    #[arg(short = 'x', long, value_name = "SEP", value_parser = [","], conflicts_with = "format")]
    pub(crate) field_separator: Option<String>,
    /// Print to this file; an existing file is renamed to FILE.old [default: standard output, and CMD's output goes to standard error]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
