//! What the options of the verbs that print events ask for.

use usdtrec_report::script::{Field, FieldChoice, Format, ScriptOptions, Template, Times};

use super::selection;
use crate::cli::{OutputFormat, PrintArgs, ScriptFormat};
use crate::terminal::{self, Usage};

/// How events are printed.
///
/// # Errors
/// [`Usage`] if the options contradict each other.
pub(super) fn options(args: &PrintArgs) -> Result<ScriptOptions, Usage> {
    refuse(args)?;
    let fields = fields(args);
    Ok(ScriptOptions {
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
    })
}

/// Refuses options that would have no effect.
fn refuse(args: &PrintArgs) -> Result<(), Usage> {
    let since = args.reltime || args.deltatime;
    let reason = match &args.format {
        ScriptFormat::Known(OutputFormat::Text) => return Ok(()),
        ScriptFormat::Known(_) if args.ns => {
            "--ns has no effect on JSON and CSV: times are in nanoseconds there"
        }
        ScriptFormat::Known(_) if args.human => {
            "--human has no effect on JSON and CSV: numbers are plain there"
        }
        ScriptFormat::Template(template) if since && !template.shows_time() => {
            "--reltime and --deltatime are about {time}, which the template does not have: it may have {reltime} and {deltatime}"
        }
        _ => return Ok(()),
    };
    Err(Usage(reason.to_owned()))
}

/// The template for lines, if there is one. It says itself what is shown.
fn template(args: &PrintArgs) -> Result<Option<Template>, Usage> {
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
fn fields(args: &PrintArgs) -> FieldChoice {
    if args.fields.iter().skip(1).any(FieldChoice::is_list) {
        terminal::say("usdtrec: of several lists of fields, the last one counts");
    }
    let choices = args.fields.iter().cloned();
    choices.reduce(FieldChoice::then).unwrap_or_default()
}
