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
    /// Count the hits of each value of these keys: comm, pid, tid, uid, or arguments by name or as arg1, arg2, … (comma list)
    ///
    /// A text must be declared, by a schema or an argument list: -e 'app:request(url=str(arg2))' --by url. With --strings all, every unsigned argument of pointer size is one. Of a text, as many
    /// bytes are compared as --strlen says; one that is cut is marked. At most 65,536 groups are kept, in at most 64 MiB; further hits are counted as others.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Print the counts of each interval (500ms, 2s), at least 10ms; a number without a unit is milliseconds, as in perf stat [default: once, at the end]
    ///
    /// On a terminal, text is one table that is redrawn at each interval, with the hits since the start and the last intervals as a line of bars.
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
