//! Options of `usdtrec script`.

use clap::{Arg, Args};

use super::print::{PrintArgs, templates};
use super::selection::SelectionArgs;
use super::spans::SpanArgs;
use super::stacks::Stacks;
use super::text::PagerArgs;

/// Spans have no call chains.
fn without_chains(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "span" | "min" => {
            option.conflicts_with_all(["hide_call_graph", "max_stack", "stacks", "no_inline"])
        }
        _ => option,
    }
}

/// `usdtrec script`.
#[derive(Debug, Args)]
#[command(after_help = templates(), mut_args(without_chains))]
pub(crate) struct ScriptArgs {
    /// Selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Spans instead of events
    #[command(flatten)]
    pub(crate) spans: SpanArgs,
    /// Do not print call chains
    #[arg(short = 'G', long, conflicts_with = "no_inline")]
    pub(crate) hide_call_graph: bool,
    /// Which stacks are printed [default: native, call chains]
    ///
    /// The functions of a script need the probes at which functions are called and return, such as php:function__*, python:function__* and ruby:*method__*.
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        conflicts_with = "hide_call_graph"
    )]
    pub(crate) stacks: Option<Stacks>,
    /// Print at most N frames of each call chain [default: all recorded ones, 127 of a copy of the stack]
    ///
    /// Events of `perf record -g` have call chains. Those of `perf record --call-graph dwarf` have a copy of the stack instead, which is unwound
    /// with the unwind information of the recorded files. A chain that is cut ends in a line in brackets with the reason.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "hide_call_graph")]
    pub(crate) max_stack: Option<u16>,
    /// Output options
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Pager
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}
