//! Options of `usdtrec trace` and `usdtrec top`.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args, ValueEnum};

use super::capture::{CaptureArgs, DelayArgs, counted};
use super::print::{PrintArgs, templates};
use super::spans::{SpanArgs, SpanStatArgs};
use super::stacks::CallersArgs;
use super::with::WithArgs;

/// Lines of spans have no callers.
fn without_callers(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "span" | "min" => option.conflicts_with("recorded_callers"),
        _ => option,
    }
}

/// Rates by keys are counted where the hits happen.
fn without_rings(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "mmap_pages" => option.conflicts_with("counted"),
        _ => counted(option),
    }
}

/// `usdtrec trace`.
#[derive(Debug, Args)]
#[command(after_help = templates(), mut_args(without_callers))]
pub(crate) struct TraceArgs {
    /// What to capture
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// When probes are attached
    #[command(flatten)]
    pub(crate) delay: DelayArgs,
    /// Spans instead of events
    #[command(flatten)]
    pub(crate) spans: SpanArgs,
    /// Callers
    #[command(flatten)]
    pub(crate) callers: CallersArgs,
    /// Output options
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Arguments that events get besides their own
    #[command(flatten)]
    pub(crate) with: WithArgs,
    /// Print to this file; an existing file is renamed to FILE.old [default: standard output, and CMD's output goes to standard error]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `usdtrec top`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("counted").args(["by", "span"]).multiple(true)),
    group(ArgGroup::new("arguments").args(["filter", "by", "span"]).multiple(true)),
    mut_args(without_rings)
)]
pub(crate) struct TopArgs {
    /// What to capture
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Interval between tables (500ms, 2s); a number without a unit is seconds
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    pub(crate) delay: String,
    /// End after N tables [default: unlimited]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// Show the rates by these keys, counted in the kernel, so that no hit is copied out: comm, pid, tid, uid, container, unit, stack (not with --span), arguments by name or as arg1, arg2, …, or ARG:shape (comma list)
    ///
    /// As stat --by, which has the details. On a terminal, q quits, / filters by a part of a key or name, s changes the order, and space holds the table; not with CMD, which has the input. Needs the bpf engine.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Spans whose durations are shown
    #[command(flatten)]
    pub(crate) spans: SpanStatArgs,
    /// With --by or --span, sort by hits or spans of the interval, by those since the start, or by keys; with --span, also by durations in the interval
    #[arg(
        long,
        alias = "sort",
        value_enum,
        value_name = "ORDER",
        default_value_t,
        requires = "counted",
        requires_ifs = [("p99", "span"), ("max", "span"), ("p50", "span")]
    )]
    pub(crate) order: TopOrder,
}

/// The order of the rows of `top --by` and `top --span`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopOrder {
    /// The most hits or spans in the interval first
    #[default]
    Rate,
    /// The longest 99th percentile of durations in the interval first
    P99,
    /// The longest spans of the interval first
    Max,
    /// The longest median of durations in the interval first
    P50,
    /// The most hits or spans since the start first
    Total,
    /// By probe and keys
    Key,
}
