//! `-g`, `--call-graph`, `--max-stack`, `--stack-rate`, `--no-symbols`.

use std::num::NonZeroU32;

use usdtrec_record::{CallGraph, CallGraphMethod};

use crate::cli::{CallersArgs, RecordArgs};
use crate::terminal::Usage;
use crate::units::parse_size;

/// Bytes that `dwarf` copies, as in perf.
const DWARF: u32 = 8 << 10;

/// How callers are recorded; `None` if they are not.
pub(super) fn from_args(args: &RecordArgs) -> Result<Option<CallGraph>, Usage> {
    let is_perf = args.capture.engine.is_perf();
    let refused = "--stack-rate needs the bpf engine";
    Usage::ensure(args.stack_rate.is_none() || !is_perf, refused)?;
    let graph = for_trace(&args.callers)?;
    Ok(graph.map(|graph| CallGraph {
        rate: args.stack_rate.and_then(NonZeroU32::new),
        ..graph
    }))
}

/// How callers are recorded where that is all that can be said of them; `None` if they are not.
pub(in crate::cmd) fn for_trace(args: &CallersArgs) -> Result<Option<CallGraph>, Usage> {
    let graph = parsed_method(args)?.map(|method| CallGraph {
        method,
        frames: args.max_stack.unwrap_or(CallGraph::USUAL_FRAMES),
        rate: None,
    });
    Ok(graph)
}

/// The method; `None` if callers are not recorded.
fn parsed_method(args: &CallersArgs) -> Result<Option<CallGraphMethod>, Usage> {
    match args.call_graph.as_deref() {
        Some(text) => method(text).map(Some),
        None if args.callers => Ok(Some(CallGraphMethod::CopyNeeded)),
        None => Ok(None),
    }
}

fn method(text: &str) -> Result<CallGraphMethod, Usage> {
    let copy = |bytes| Ok(CallGraphMethod::Copy { bytes });
    match text.split_once(',') {
        None if text == "fp" => Ok(CallGraphMethod::FramePointers),
        None if text == "auto" => Ok(CallGraphMethod::CopyNeeded),
        None if text == "dwarf" => copy(DWARF),
        Some(("dwarf", size)) => {
            let bytes = parse_size("--call-graph dwarf", size, 1)?;
            match u32::try_from(bytes) {
                Ok(bytes @ 8..=CallGraph::MAX_BYTES) => copy(bytes.next_multiple_of(8)),
                _ => Err(Usage(format!(
                    "--call-graph dwarf: expected 8 bytes to 32K of stack, found {size:?}"
                ))),
            }
        }
        _ => Err(Usage(format!(
            "--call-graph: expected auto, fp, dwarf or dwarf,SIZE, found {text:?}"
        ))),
    }
}
