//! `usdtrec script`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_report::script::{
    Field, FieldChoice, Format, ScriptOptions, Streamed, Template, Times, live, script,
};

use super::selection;
use crate::cli::{ScriptArgs, ScriptFormat};
use crate::terminal::{self, Usage};

/// Runs the verb.
pub(crate) fn run(args: &ScriptArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let fields = fields(args);
    let options = ScriptOptions {
        fields: if args.tod {
            fields.and(Field::Tod)
        } else {
            fields
        },
        times: match (args.reltime, args.deltatime) {
            (true, _) => Times::First,
            (_, true) => Times::Previous,
            _ => Times::Clock,
        },
        nanoseconds: args.ns,
        human: args.human,
        format: match args.format {
            ScriptFormat::Known(format) => selection::format(format),
            ScriptFormat::Template(_) => Format::Text,
        },
        template: template(args)?,
    };
    let from_pipe = selection::is_stdin(&args.selection) && selection::stdin_file()?.is_none();
    let Streamed { notices, lost } = if from_pipe {
        from_stdin(args, buildid_dir, &options)?
    } else {
        let session = selection::open(&args.selection, buildid_dir)?;
        let asked = selection::selection(&args.selection);
        Streamed {
            notices: script(&session, &asked, &options, &mut selection::output()?)?,
            lost: session.lost(),
        }
    };
    selection::tell(&args.selection.input, &notices);
    if lost > 0 {
        let told = format!("{lost} events were lost while recording; see usdtrec report");
        terminal::warn(&args.selection.input, &told);
    }
    Ok(ExitCode::SUCCESS)
}

/// The template for lines, if there is one. It says itself what is shown.
fn template(args: &ScriptArgs) -> Result<Option<Template>, Usage> {
    match &args.format {
        ScriptFormat::Known(_) => Ok(None),
        ScriptFormat::Template(_) if args.tod || !args.fields.is_empty() => Err(Usage(
            "a template for --format says which fields are shown: name them there ({tod}), without -F and --tod"
                .to_owned(),
        )),
        ScriptFormat::Template(template) => Ok(Some(template.clone())),
    }
}

/// The fields: each `-F` changes what those before it say.
fn fields(args: &ScriptArgs) -> FieldChoice {
    if args.fields.iter().skip(1).any(FieldChoice::is_list) {
        terminal::say("usdtrec: of several lists of fields, the last one counts");
    }
    let choices = args.fields.iter().cloned();
    choices.reduce(FieldChoice::then).unwrap_or_default()
}

/// Prints what comes from a pipe as it comes.
fn from_stdin(
    args: &ScriptArgs,
    buildid_dir: Option<&Path>,
    options: &ScriptOptions,
) -> anyhow::Result<Streamed> {
    let sources = selection::sources(&args.selection, buildid_dir)?;
    let asked = selection::selection(&args.selection);
    let mut out = selection::output()?;
    let input = std::io::stdin().lock();
    let streamed = live(
        input,
        &args.selection.input,
        &sources,
        (&asked, options),
        &mut out,
    );
    streamed.map_err(|error| selection::named(error, args.selection.input.as_path()))
}
