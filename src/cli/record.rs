//! Options of `usdtrec record`.

use std::path::PathBuf;

use clap::Args;

use super::capture::{CaptureArgs, DelayArgs};
use super::ring::RingArgs;
use super::stacks::CallersArgs;

/// `usdtrec record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// What to capture
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// When probes are attached
    #[command(flatten)]
    pub(crate) delay: DelayArgs,
    /// Trace file; an existing file is renamed to FILE.old; - writes to standard output, which must be a pipe or a file
    #[arg(short, long, value_name = "FILE", default_value = super::DEFAULT_TRACE)]
    pub(crate) output: PathBuf,
    /// zstd compression level, 1 to 22; 0 disables compression [default: 3]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = clap::value_parser!(u8).range(..=22))]
    pub(crate) compression_level: Option<u8>,
    /// End recording when the trace reaches this size: bytes, or a number with B, K, M or G (100M)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Write numbered files FILE.1, FILE.2, …, each of them a complete trace; start the next one on SIGUSR2 (signal), when a file reaches
    /// a size (10M), or after a time (30s, 5m, 1h) [without a value: signal]
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true, default_missing_value = "signal")]
    pub(crate) switch_output: Option<String>,
    /// With --switch-output, keep only the newest N files (with --trigger at least 2)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) switch_max_files: Option<u64>,
    /// Triggers
    #[command(flatten)]
    pub(crate) ring: Box<RingArgs>,
    /// Limit the overhead of probes to this part of each recorded thread's time (2%): hot ones are repeatedly detached for a time
    ///
    /// Of each thread the shares of all probes are added up; those with the largest one are paused first, the probes that begin and end a span
    /// together. What a hit costs is measured when recording begins. The trace says when probes were paused. Hits that --filter excludes, and probes of
    /// files that appear while recording, are not counted. Needs uprobe_multi links (Linux 6.6); with 2%,optional it is recorded without a budget where
    /// there are none, with a message.
    #[arg(long, value_name = "PART%[,optional]")]
    pub(crate) budget: Option<String>,
    /// Callers
    #[command(flatten)]
    pub(crate) callers: CallersArgs,
    /// With -g or --call-graph, record the callers of at most N hits a second of each site and thread
    ///
    /// For probes that are hit too often. Events without callers say so. Of more than 16,384 sites and threads, those that were not hit for
    /// the longest time begin anew. Needs the bpf engine.
    #[arg(long, value_name = "N", requires = "recorded_callers", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(crate) stack_rate: Option<u32>,
    /// With -g or --call-graph, do not store the names of functions in the trace
    ///
    /// They are looked up when recording ends, for at most ten seconds, so that script, report and flame show them on any host.
    #[arg(long, requires = "recorded_callers")]
    pub(crate) no_symbols: bool,
    /// With --min, record only spans that are slow: START..DONE, or the name of a span, with globs (may be repeated) [default with --min: all spans of the probes]
    ///
    /// The hits that begin and end a slow span are recorded, and no others. Spans are matched in the kernel: by the thread, and the strings and ids that both probes have under the same name, or by --key. Shorter spans are counted. Needs the bpf engine; at most 16 spans of a thread, or of a
    /// key, may be open at once.
    #[arg(long, value_name = "START..DONE|NAME")]
    pub(crate) span: Vec<String>,
    /// With --min, keys by which begin and end are matched (comma list): tid, pid, or one integer that both have, alone or with one of these [default: as of report]
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Record only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'
    #[arg(long, value_name = "TIME", conflicts_with = "recorded_callers")]
    pub(crate) min: Option<String>,
}
