//! Options of `usdtrec report`.

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, ValueEnum};
use usdtrec_format::TimePart;
use usdtrec_report::question::GroupOrder;
use usdtrec_report::report::CallGraphStyle;

use super::selection::{SelectionArgs, with_fields};
use super::spans::ALL_SPANS;
use super::stacks::{Stacks, call_graph};
use super::text::{Colour, OutputFormat, PagerArgs, WidthArgs};

/// Help of `--sort`.
const SORT: &str = "\
Group events by these keys (comma list): {keys}, an argument, or ARG:shape";
const SORT_KEYS: &str = "\
The shape of a string is the string without its numbers and quoted strings: query:shape groups SQL statements that differ only in their values. cgroup is the control group of the process after its first hit, and so its container or service, and container the container's id in it; a process that ended at once may have none. sym is the function with the probe, srcline its line of source (where there is debugging information), caller the one that called it, stack all of them: both need a trace that was recorded with stacks, or with the calls and returns of a script's functions (see --stacks). stack:native and stack:script say which of the two, as do caller:native and caller:script.";

/// Figure by which groups are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order(pub(crate) GroupOrder);

impl ValueEnum for Order {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Order; GroupOrder::ALL.len()] = {
            let mut all = [Order(GroupOrder::Count); GroupOrder::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = Order(GroupOrder::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            GroupOrder::Count => "Number of spans or events",
            GroupOrder::Total => {
                "Time in which at least one span of the group was open, each moment once; with --value, the sum"
            }
            GroupOrder::Sum => {
                "Sum of the durations of the spans, also of those that were open at once; with --value, the sum"
            }
            GroupOrder::Own => {
                "Sum of the times of the spans outside those nested in them, also of spans that were open at once (spans only)"
            }
            GroupOrder::Mean => "Mean",
            GroupOrder::P50 => "Median",
            GroupOrder::P90 => "90th percentile",
            GroupOrder::P99 => "99th percentile",
            GroupOrder::P999 => "99.9th percentile (spans only)",
            GroupOrder::Max => "Maximum",
            GroupOrder::Part(TimePart::OnCpu) => {
                "Time in spans on a CPU (spans only, as the next three: with recorded waits)"
            }
            GroupOrder::Part(TimePart::Runnable) => {
                "Time in spans in which their thread waited for a CPU"
            }
            GroupOrder::Part(TimePart::Iowait) => "Time in spans in which it waited for disks",
            GroupOrder::Part(TimePart::Blocked) => {
                "Time in spans in which it waited for something else"
            }
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

/// Buckets of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistScale {
    /// One bucket per value if there are few values, else powers of two
    #[default]
    Auto,
    /// Powers of two
    Log2,
    /// Twenty buckets of equal width
    Linear,
    /// One bucket per value; refused above 256 values
    Value,
}

/// `usdtrec report`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("weighed").args(["sort", "by", "call_graph"])))]
pub(crate) struct ReportArgs {
    /// The trace and the selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[arg(short, long, help = with_fields(SORT), long_help = with_fields(&format!("{SORT}\n\n{SORT_KEYS}")), value_name = "KEYS", value_delimiter = ',')]
    pub(crate) sort: Vec<String>,
    /// With --sort, show sum, mean and percentiles of this argument for each group; sorts by sum unless --order is given. With
    /// --call-graph, weigh stacks by its sum
    #[arg(long, value_name = "ARG", requires = "weighed", conflicts_with_all = ["span", "hist", "heatmap", "rate"])]
    pub(crate) value: Option<String>,
    /// Show durations from one probe to another: START..DONE, or the name of a span, with globs (may be repeated)
    ///
    /// Spans are found by the names of probes: query__start and query__done make the span query; so do entry and return, begin and end.
    #[arg(long, value_name = "START..DONE|NAME", conflicts_with = "sort")]
    pub(crate) span: Vec<String>,
    /// With --span, keys by which begin and end are matched (comma list): tid, pid, or arguments that both have (tid,funcname)
    ///
    /// Default: tid, the strings and ids that both probes have under the same name, and an integer that behaves as an id in the whole trace; for some known
    /// spans, one argument. The report shows what is used. tid alone: the newest begin of the thread ends first.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Group spans (with --span, and --hist or --heatmap span:NAME) or events by these keys of --sort (comma list, query:shape); for events, --by is --sort
    ///
    /// Keys of spans are taken from the begin event; from the end event as EVENT.KEY (request__done.status), or if only the end has the argument.
    #[arg(
        long,
        value_name = "KEYS",
        value_delimiter = ',',
        conflicts_with = "sort"
    )]
    pub(crate) by: Vec<String>,
    /// Show only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'; without --span, and --hist or --heatmap span:NAME, of all spans that are found by
    /// the names of probes
    #[arg(long, value_name = "TIME", conflicts_with_all = ["sort", "value", "rate"])]
    pub(crate) min: Option<String>,
    /// With --span and --by, or --sort and --value, sort groups by this value [default: total]
    #[arg(long, value_enum)]
    pub(crate) order: Option<Order>,
    /// Show a histogram of an argument, or with span:NAME of the durations of spans (span.blocked:NAME: of a part of their time)
    #[arg(long, value_name = "ARG|span:NAME", conflicts_with_all = ["sort", "span"])]
    pub(crate) hist: Option<String>,
    /// Buckets of --hist [default: auto]
    // What is required is not where it conflicts with what is there.
    #[arg(long, value_enum, requires = "hist", conflicts_with_all = ["sort", "span", "heatmap", "rate", "call_graph"])]
    pub(crate) scale: Option<HistScale>,
    /// Show the distribution of an argument, or with span:NAME of the durations of spans, over time
    #[arg(long, value_name = "ARG|span:NAME", conflicts_with_all = ["sort", "span", "hist"])]
    pub(crate) heatmap: Option<String>,
    /// Show the stacks as a tree: caller (the outermost function first) or callee (the function with the probe first), and the least percentage
    /// shown (callee,5) [default: caller,0.5]
    ///
    /// Needs a trace that was recorded with stacks. Weights are numbers of hits; with --value the sum of an argument; with --span the time in spans, and in no
    /// span within them, on the stack of their begin. At the end, it says which files have frames without a name.
    #[arg(
        short = 'g',
        long,
        value_name = "ORDER,PERCENT",
        num_args = 0..=1,
        default_missing_value = "caller",
        value_parser = call_graph,
        conflicts_with_all = ["sort", "hist", "heatmap", "rate"]
    )]
    pub(crate) call_graph: Option<CallGraphStyle>,
    /// Which stacks --call-graph shows [default: native where they were recorded, else script]
    ///
    /// The functions of a script need the probes at which functions are called and return, such as php:function__*, python:function__*, ruby:*method__* and
    /// hotspot:method__*, and no support of the runtime. With --sort and --by, use stack:script and caller:script.
    #[arg(long, value_enum, value_name = "KIND", requires = "call_graph", conflicts_with_all = ["sort", "hist", "heatmap", "rate"])]
    pub(crate) stacks: Option<Stacks>,
    /// Show the number of events in each interval of this length (1s, 100ms); with --by or --sort, for each group
    #[arg(long, value_name = "TIME", conflicts_with_all = ["span", "hist", "heatmap"])]
    pub(crate) rate: Option<String>,
    /// Show at most N groups, and with --span also the N slowest spans [default: all groups; 10 with --span]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// With --span or --heatmap, print moments by the trace's clock (CLOCK_MONOTONIC) instead of times of day in the local time zone; text format
    /// only
    #[arg(long)]
    pub(crate) clock: bool,
    /// When to use colours
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
    /// Width of lines
    #[command(flatten)]
    pub(crate) width: WidthArgs,
    /// Pager
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

impl ReportArgs {
    /// Takes the durations of spans out of the filter. Options that ask for slow spans ask for all spans if no others are named; else the keys of
    /// `--by` are those of `--sort`.
    ///
    /// # Errors
    /// The message of a usage error.
    pub(super) fn resolve(&mut self) -> Result<(), String> {
        self.selection.which.take_durations()?;
        let is_slow = self.min.is_some() || self.selection.which.asks_for_spans();
        let is_about_others = !self.sort.is_empty()
            || self.hist.is_some()
            || self.heatmap.is_some()
            || self.rate.is_some()
            || self.value.is_some();
        if is_slow && self.span.is_empty() && !is_about_others {
            self.span.push(ALL_SPANS.to_owned());
        }
        let is_about_events = self.span.is_empty()
            && self.hist.is_none()
            && self.heatmap.is_none()
            && self.rate.is_none()
            && self.call_graph.is_none();
        if is_about_events && !self.by.is_empty() {
            self.sort = std::mem::take(&mut self.by);
        }
        Ok(())
    }
}
