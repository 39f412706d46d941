//! Options of `usdtrec report`.

use clap::{Args, ValueEnum};

use super::{OutputFormat, SelectionArgs};

/// By which figure groups of spans are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Number of spans
    Count,
    /// Time in which at least one of them was open
    #[default]
    Total,
    /// Time in them and in none within them
    #[value(name = "self")]
    Own,
    /// Mean time
    Mean,
    /// Median
    P50,
    /// 90th percentile
    P90,
    /// 99th percentile
    P99,
    /// 99.9th percentile
    #[value(name = "p99.9")]
    P999,
    /// Longest
    Max,
}

/// Buckets of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistScale {
    /// Each value where there are few, else powers of two
    #[default]
    Auto,
    /// Powers of two
    Log2,
    /// Twenty of one width
    Linear,
    /// Each value, if there are at most 256
    Value,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// `usdtrec report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Which events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Group by these keys: event, comm, pid, tid, cpu, dso, sym, or an argument's name, with :shape behind it for a text without
    /// its numbers and quoted texts (query:shape)
    #[arg(short, long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) sort: Vec<String>,
    /// With --sort, sum up this argument in each group: sum, mean, percentiles; groups with the greatest sum first (--order says otherwise)
    #[arg(long, value_name = "ARG")]
    pub(crate) value: Option<String>,
    /// Show how long it takes from one probe to another: START..DONE, or the name of a span that report finds by the probes'
    /// names (query for query__start and query__done), with globs
    #[arg(long, value_name = "START..DONE|NAME", conflicts_with = "sort")]
    pub(crate) span: Option<String>,
    /// With --span, what begin and end have in common, and nothing else must: tid, pid, arguments of both (tid,funcname)
    /// [default: tid, and those texts and ids that both have under one name; of some well-known spans an argument; as the report says]
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// With --span, --hist or --heatmap span:NAME, or --rate, group by these keys, as of --sort (query:shape): of the begin, of the end as EVENT.KEY
    /// (request__done.status) or where it alone has the argument
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// With --span, only those of this time or more (10us, 5ms, 1s)
    #[arg(long, value_name = "TIME")]
    pub(crate) min: Option<String>,
    /// With --span and --by, or --sort and --value, sort groups by this figure
    /// [default: total]
    #[arg(long, value_enum)]
    pub(crate) order: Option<Order>,
    /// Show how the values of an argument, or with span:NAME the durations of spans, are spread
    #[arg(long, value_name = "ARG|span:NAME", conflicts_with_all = ["sort", "span"])]
    pub(crate) hist: Option<String>,
    /// Buckets of --hist
    #[arg(long, value_enum)]
    pub(crate) scale: Option<HistScale>,
    /// Show how they are spread over time
    #[arg(long, value_name = "ARG|span:NAME", conflicts_with_all = ["sort", "span", "hist"])]
    pub(crate) heatmap: Option<String>,
    /// Show how many events there are in each interval of this length (1s, 100ms), with --sort by groups
    #[arg(long, value_name = "TIME", conflicts_with_all = ["span", "hist", "heatmap"])]
    pub(crate) rate: Option<String>,
    /// Show so many groups [default: all, with --span 10, and as many of the slowest]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Show the number of events in each group (always so; accepted for perf's sake)
    #[arg(short = 'n', long)]
    pub(crate) show_nr_samples: bool,
    /// Print plain text (always so; accepted for perf's sake)
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only
    #[arg(long)]
    pub(crate) human: bool,
    /// Colours
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        alias = "stdio-color"
    )]
    pub(crate) color: Colour,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}
