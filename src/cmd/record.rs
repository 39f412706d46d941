//! `usdtrec record`.

mod attach;
mod budget;
mod call_graph;
mod choose;
mod delay;
mod hot_probe;
mod messages;
mod names;
mod no_follow;
mod node;
mod once;
mod options;
mod ring;
mod switch_output;
mod triggered;

use std::path::Path;
use std::process::ExitCode;

use usdtrec_record::{EngineChoice, Signals};

use crate::cli::RecordArgs;
use crate::slow_start::waiting_for;

pub(super) use attach::{Ready, select};
pub(super) use call_graph::for_trace as trace_call_graph;
pub(super) use delay::{AttachContext, EndedBefore, attach_when_due, exit_code};
pub(super) use messages::{
    RunningReports, attached_line, print_attached, print_end_reason, print_losses,
    print_missing_groups, print_notice, print_older, print_scope, print_spans,
};
pub(super) use names::RunningNames;
use once::Once;
pub(super) use options::capture;
use options::options;

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut options = options(args)?;
    options.engine.budget = waiting_for(
        "the measurement of what hits cost, which --budget needs",
        args.capture.quiet,
        || budget::measured(args, &options),
    )?;
    if options.engine.budget.is_some() {
        options.engine.choice = EngineChoice::BpfMulti;
    }
    let once = Once {
        args,
        options,
        buildid_dir,
    };
    let selected = select(&args.capture, buildid_dir)?;
    let signals = Signals::catch(once.takes_switch())?;
    let command = once.record(selected, &signals);
    EndedBefore::exit_code(command.map(exit_code))
}
