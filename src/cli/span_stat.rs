//! Options of spans that are aggregated, of `stat` and `top`.

use clap::Args;

/// Which spans are aggregated.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpanStatArgs {
    /// Match spans in the kernel, and show how long they lasted, by the keys of --by: START..DONE, or the name of a span, with globs (may be repeated)
    ///
    /// Spans are found by the names of the probes of -e, as by report: query__start and query__done make the span query. Keys of --by that are arguments are those of the begin, other keys
    /// are those of the thread that began. The hits of begins and ends are counted as spans; those of other probes are left out, unless stat --value or --hist has arguments of them. Spans nest to 16 levels. Begins and ends without a partner are counted.
    #[arg(long, value_name = "START..DONE|NAME")]
    pub(crate) span: Vec<String>,
    /// With --span, keys by which begin and end are matched (comma list), as of report: tid, pid, an integer argument, or one of tid and pid with an argument
    #[arg(long, value_name = "KEYS", value_delimiter = ',', requires = "span")]
    pub(crate) key: Vec<String>,
    /// Add up only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'; shorter ones are counted
    #[arg(long, value_name = "TIME", requires = "span")]
    pub(crate) min: Option<String>,
}
