//! `usdtrec top`.

mod screen;

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use usdtrec_report::top::{self, TopOptions};

use self::screen::Screen;
use super::live::Live;
use super::record::Given;
use super::selection;
use crate::cli::{CaptureArgs, TopArgs};
use crate::terminal::Usage;
use crate::units::parse_duration;

/// Runs the verb.
pub(crate) fn run(args: &TopArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    refuse(&args.capture)?;
    let options = TopOptions {
        every: parse_duration("--delay", &args.delay)?,
        tables: args.iterations,
        colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
    };
    let mut out = selection::output()?;
    let verb = Live {
        verb: "top",
        args: &args.capture,
        buildid_dir,
        output: out.try_clone()?,
        muted: true,
        heartbeat: true,
        prints_arguments: false,
    };
    verb.run(|pipe, sources| {
        let path = Path::new("top");
        if out.is_terminal() {
            let screen = Screen::new(out)?;
            top::show(pipe, path, sources, options, &mut |table| {
                screen.show(table)
            })
        } else {
            let mut first = true;
            top::show(pipe, path, sources, options, &mut |table| {
                let between = if std::mem::take(&mut first) { "" } else { "\n" };
                out.write_all(format!("{between}{table}").as_bytes())
            })
        }
    })
}

/// Refuses options about arguments if no filter needs arguments.
fn refuse(args: &CaptureArgs) -> Result<(), Usage> {
    if args.thread_context {
        let reason = "--thread-context has no effect on top: it does not show to which requests events belong";
        return Err(Usage(reason.to_owned()));
    }
    if !args.filter.is_empty() {
        return Ok(());
    }
    let given = Given::from_args(args);
    let about_arguments = [
        ("--strings", given.all_strings),
        ("--strlen", given.strlen),
        ("--nonresident", given.nonresident),
        ("--stack-size", given.stack_size),
        ("--schema", !args.schema.is_empty()),
    ];
    match about_arguments.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Usage(format!(
            "{option} has no effect on top without --filter: it shows no arguments"
        ))),
        None => Ok(()),
    }
}
