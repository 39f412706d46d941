//! Options about the callers of hits, of `record` and `trace`.

use clap::{ArgGroup, Args};

/// Whether callers are recorded, and how.
#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("recorded_callers").args(["callers", "call_graph"]).multiple(true)))]
pub(crate) struct CallersArgs {
    /// Record the callers of each hit, as with --call-graph auto
    #[arg(short = 'g')]
    pub(crate) callers: bool,
    /// Record the callers of each hit: auto; fp, by frame pointers; dwarf or dwarf,SIZE, by unwind tables from a copy of SIZE bytes of stack (8 to
    /// 32K, 8K without SIZE)
    ///
    /// auto copies as much as the stacks of each site need: 512 bytes to 16K, 16K at first, and always 2K with a perf engine. The
    /// recorder unwinds the copies and writes the callers. A stack that is cut is marked with the reason.
    #[arg(long, value_name = "MODE")]
    pub(crate) call_graph: Option<String>,
    /// With -g or --call-graph, record at most N frames of each hit, 1 to 1024 [default: 127]
    #[arg(long, value_name = "N", requires = "recorded_callers", value_parser = clap::value_parser!(u16).range(1..=i64::from(usdtrec_record::CallGraph::MAX_FRAMES)))]
    pub(crate) max_stack: Option<u16>,
}
