//! `usdtrec script`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_report::script::{self, Field, Fields, ScriptOptions, StreamOutput};
use usdtrec_report::{
    EventSelection, NoEventsReason, Notices, Sentences, StreamSummary, TraceSession,
};

use super::selection::Extent;
use super::{print, selection};
use crate::advice::HINTS;
use crate::cli::{PagerArgs, ScriptArgs, stack_kind};
use crate::{progress, terminal};
use usdtrec_report::question::StackKind;

/// Runs the verb.
pub(crate) fn run(args: &ScriptArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let which = &args.selection.which;
    let spans = print::spans(&args.spans, which.span_least, which.span_parts, &args.print)?;
    print::refuse_unused_with(&args.selection.with, which.filter.as_deref(), &args.print)?;
    let options = ScriptOptions {
        spans,
        max_stack: args.max_stack.map(usize::from),
        hide_call_graph: args.hide_call_graph,
        script_stacks: stack_kind(args.stacks) == StackKind::Script,
        ..print::options(&args.print)?
    };
    let from_pipe = selection::is_stdin(&args.selection) && selection::stdin_file()?.is_none();
    let mut unknown = false;
    let StreamSummary {
        notices,
        lost,
        reasons,
        ..
    } = if from_pipe {
        anyhow::ensure!(
            !options.script_stacks,
            "--stacks script needs a trace in a file: standard input is a pipe"
        );
        from_stdin(args, buildid_dir, &options)?
    } else {
        let fields = options.fields.apply(Fields::default());
        let extent = Extent::for_spans(options.spans.is_some() || fields.has(Field::Span));
        let session = selection::open(&args.selection, extent, buildid_dir)?;
        unknown = session.losses().known_total().is_none();
        let asked = selection::selection(&args.selection.which);
        StreamSummary {
            notices: printed(&session, &asked, &options, args.pager)?,
            lost: session.losses().total(),
            // If the trace has samples, the options select none of them, and there is nothing to explain.
            reasons: match session.time() {
                None => NoEventsReason::find(&session, |_| true),
                Some(_) => Vec::new(),
            },
            ..StreamSummary::default()
        }
    };
    let input = TraceSession::name_of(&args.selection.input);
    selection::print_notices(&input, &notices);
    for reason in reasons.sentences(HINTS) {
        terminal::warn(&input, &reason);
    }
    selection::print_losses(&input, (!unknown).then_some(lost));
    Ok(ExitCode::SUCCESS)
}

/// Prints the events. A progress bar is shown unless the events go to a terminal.
fn printed(
    session: &TraceSession,
    asked: &EventSelection,
    options: &ScriptOptions,
    pager: PagerArgs,
) -> anyhow::Result<Notices> {
    let mut out = selection::paged_output(pager)?;
    let is_seen = out.is_seen();
    let mut print = || script::print(session, asked, options, &mut out);
    let notices = if is_seen {
        print()
    } else {
        progress::shown(session, print)
    };
    Ok(notices?)
}

/// Prints a trace from standard input while it is written.
fn from_stdin(
    args: &ScriptArgs,
    buildid_dir: Option<&Path>,
    options: &ScriptOptions,
) -> anyhow::Result<StreamSummary> {
    let sources = selection::sources(&args.selection.which, args.selection.inline, buildid_dir)?;
    let asked = selection::selection(&args.selection.which);
    let mut out = selection::paged_output(args.pager)?;
    let input = std::io::stdin().lock();
    let name = TraceSession::name_of(&args.selection.input);
    let streamed = script::print_stream(
        input,
        &name,
        &sources,
        &asked,
        &args.selection.with.context(),
        options,
        StreamOutput {
            out: &mut out,
            // Losses are printed in one line at the end.
            lost: &mut |_, _| {},
        },
    );
    streamed.map_err(|error| selection::named(error, &name))
}
