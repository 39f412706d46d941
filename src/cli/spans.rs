//! Options about spans, of verbs that show spans instead of events.

use clap::Args;

/// The pattern of all spans that are found by the names of probes.
pub(crate) const ALL_SPANS: &str = "*:*";

/// Which spans are printed instead of events.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpanArgs {
    /// Print spans instead of events, each with the arguments of its begin and its end: START..DONE, or the name of a span, with globs (may be repeated)
    ///
    /// Spans are found by the names of probes: query__start and query__done make the span query; so do entry and return, begin and end. A span is printed when it has ended. If --filter or --min ask for slow
    /// spans, the default is all of them.
    #[arg(long, value_name = "START..DONE|NAME", conflicts_with_all = ["with", "holders"])]
    pub(crate) span: Vec<String>,
    /// With --span, keys by which begin and end are matched (comma list), as of report
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Print only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'
    #[arg(long, value_name = "TIME", conflicts_with_all = ["with", "holders"])]
    pub(crate) min: Option<String>,
}

/// Which spans are aggregated.
#[cfg(feature = "record")]
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
