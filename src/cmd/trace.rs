//! `usdtrec trace`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_format::escape::escape;
use usdtrec_report::EventSelection;
use usdtrec_report::script::{self, StreamOutput};

use super::live::Live;
use super::{print, selection};
use crate::cli::TraceArgs;
use crate::output;
use crate::terminal::say;

/// Runs the verb.
pub(crate) fn run(args: &TraceArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let options = print::options(&args.print)?;
    let mut out = match &args.output {
        Some(path) => output::create(path)?,
        None => selection::output()?,
    };
    let verb = Live {
        verb: "trace",
        args: &args.capture,
        buildid_dir,
        output: out.try_clone()?,
        muted: args.output.is_none(),
        heartbeat: false,
        redraws: false,
        prints_arguments: true,
        aggregated: None,
    };
    verb.run(|pipe, sources| {
        let to = StreamOutput {
            out: &mut out,
            lost: &mut print_loss,
        };
        let all = EventSelection::default();
        script::print_stream(pipe, Path::new("trace"), sources, &all, &options, to)
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
