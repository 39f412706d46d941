//! `usdtrec trace`.

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use usdtrec_format::LeastParts;
use usdtrec_format::escape::escape;
use usdtrec_record::SlowSpans;
use usdtrec_report::EventSelection;
use usdtrec_report::script::{self, ScriptOptions, SpanRowQuestion, StreamOutput};

use super::live::{Live, LiveFile};
use super::record::trace_call_graph;
use super::{print, selection};
use crate::cli::{CaptureArgs, TraceArgs};
use crate::terminal::{Usage, say};

/// Runs the verb.
pub(crate) fn run(args: &TraceArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut filters = args.capture.filters.iter().flatten();
    let of_added = filters.find(|filter| args.with.are_named_in(filter));
    print::refuse_unused_with(&args.with, of_added.map(String::as_str), &args.print)?;
    let least = args.capture.span_least;
    let spans = print::spans(&args.spans, least, LeastParts::NONE, &args.print)?;
    let graph = trace_call_graph(&args.callers)?;
    let Traced { capture, selection } = match spans {
        Some(_) => selecting(
            &args.capture,
            "spans have one --filter: give all events in one -e, and the filter of begin and end after it",
        )?,
        None if of_added.is_some() => selecting(
            &args.capture,
            "--filter with an argument of --with or --holders is about all events, as those that it comes from are needed: give all events in one -e, and the \
             filter after it",
        )?,
        None => Traced {
            capture: Cow::Borrowed(&args.capture),
            selection: EventSelection::default(),
        },
    };
    let slow_spans = spans.as_ref().and_then(slow_spans);
    let options = ScriptOptions {
        hide_address: true,
        spans,
        ..print::options(&args.print)?
    };
    let mut unnamed = args.output.as_deref().map(LiveFile::create).transpose()?;
    let mut out = match &mut unnamed {
        Some(file) => file.handle()?,
        None => selection::output()?,
    };
    let verb = Live {
        verb: "trace",
        args: &capture,
        buildid_dir,
        output: out.try_clone()?,
        unnamed,
        muted: args.output.is_none(),
        heartbeat: false,
        redraws: false,
        prints_arguments: true,
        graph,
        slow_spans,
        aggregated: None,
    };
    verb.run(|pipe, sources| {
        let to = StreamOutput {
            out: &mut out,
            lost: &mut print_loss,
        };
        let path = Path::new("trace");
        let context = args.with.context();
        script::print_stream(pipe, path, sources, &selection, &context, &options, to)
    })
}

/// What is captured, and what of that is printed.
struct Traced<'a> {
    capture: Cow<'a, CaptureArgs>,
    selection: EventSelection,
}

/// What is captured where a filter selects what is printed of all that is captured: spans, which are matched first, as without the hits that it excludes
/// others would find a wrong partner; and events by arguments that they get from others. `refused` says why events cannot have different filters.
fn selecting<'a>(args: &'a CaptureArgs, refused: &str) -> Result<Traced<'a>, Usage> {
    let mut filters = args.filters.iter();
    let first = filters.next().cloned().flatten();
    Usage::ensure(filters.all(|filter| *filter == first), refused)?;
    let capture = match first {
        None => Cow::Borrowed(args),
        Some(_) => Cow::Owned(CaptureArgs {
            filters: vec![None; args.filters.len()],
            ..args.clone()
        }),
    };
    Ok(Traced {
        capture,
        selection: EventSelection {
            filter: first,
            ..EventSelection::default()
        },
    })
}

/// The spans that programs may match in the kernel.
fn slow_spans(question: &SpanRowQuestion) -> Option<SlowSpans> {
    (question.least > 0).then(|| SlowSpans {
        spans: question.spans.clone(),
        key: question.key.clone(),
        least: question.least,
        is_required: false,
    })
}

/// Prints a loss as soon as it is known. `event` is empty if it is not known which event lost hits.
fn print_loss(event: &str, lost: u64) {
    if event.is_empty() {
        say(format_args!("usdtrec: {lost} hits were lost"));
    } else {
        let event = escape(event);
        say(format_args!("usdtrec: {lost} hits of {event} were lost"));
    }
}
