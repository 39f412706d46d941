//! Options of the verbs that print events.

use clap::{Args, ValueEnum};
use usdtrec_report::script::{FieldChoice, Template, TemplateError};

use super::selection::with_fields;
use super::text::OutputFormat;
use crate::advice;

/// Text after the options in `script --help` and `trace --help`: the syntax of templates.
pub(super) fn templates() -> String {
    with_fields(TEMPLATES)
}

const TEMPLATES: &str = "\
Templates for --format print one line per event: '{comm} {url:?} {time:.3} {pid:>6}'

  {FIELD} or {FIELD:SPEC}   FIELD is {of hit},
                            {process}, reltime, deltatime,
                            or an argument by name, as arg1, arg2, ..., or as args.NAME; args is all arguments.
  SPEC, in this order       < ^ >  align left, centre, right
                            0      pad numbers with zeros
                            WIDTH  minimum width
                            .N     digits of times and floats (times are truncated, not rounded),
                                   or maximum length of strings
                            ? x    quote strings; print numbers in hexadecimal
  \\n \\t \\\\ {{ }}             newline, tab, backslash, braces

With --span, --min or --filter 'span > TIME', a line is of a span: {span} is its duration, {span_ns} in nanoseconds, {span_name} its name;
{span.oncpu}, {span.runnable}, {span.iowait} and {span.blocked} are what it was spent on, {span.blocked_ns} in nanoseconds;
{begin.FIELD} and {end.FIELD} are of the event that begins or ends it. Other fields are of its end, arguments of its begin if it has them.

An argument that the event does not have prints as -, one that was not captured as its <reason>.";

/// Long help of `-F`.
const FIELDS: &str = "\
Fields to print (comma list); with + or - before a field, add it to the default fields or remove it (-F +tod,-cpu)

Fields are {fields}, and args.NAME or args.arg1 for a single argument.";

/// Output options of `script` and `trace`.
#[derive(Debug, Args)]
pub(crate) struct PrintArgs {
    /// Fields to print (comma list); with + or - before a field, add it to the default fields or remove it (-F +tod,-cpu)
    #[arg(short = 'F', long, long_help = with_fields(FIELDS), value_name = "FIELDS", allow_hyphen_values = true, value_parser = field_choice)]
    pub(crate) fields: Vec<FieldChoice>,
    /// How times are printed (comma list): from which start, with how many decimals; -F +tod adds the time of day [default: clock]
    #[arg(long, value_enum, value_name = "TIMES", value_delimiter = ',')]
    pub(crate) times: Vec<Times>,
    /// Output format: text, json, csv, csv-raw, or a template ('{comm} {url:?} {time:.3}'; see below)
    ///
    /// json is one object per line. csv prefixes strings that spreadsheets would evaluate as formulas with '; csv-raw leaves them unchanged.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = script_format)]
    pub(crate) format: ScriptFormat,
}

/// Item of `--times`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Times {
    /// Times of the trace's clock
    Clock,
    /// Times since the first event printed; in JSON and CSV, reltime_ns is added
    Reltime,
    /// Times since the previous line; in JSON and CSV, deltatime_ns is added
    Deltatime,
    /// Nine decimals instead of six
    Ns,
}

impl PrintArgs {
    /// Whether this is an item of `--times`.
    pub(crate) fn has(&self, item: Times) -> bool {
        self.times.contains(&item)
    }
}

/// Value of `--format`.
#[derive(Clone, Debug)]
pub(crate) enum ScriptFormat {
    /// A format with a name.
    Known(OutputFormat),
    /// A template for each line.
    Template(Template),
}

fn field_choice(text: &str) -> Result<FieldChoice, String> {
    text.parse().map_err(|error| advice::for_field(&error))
}

fn script_format(text: &str) -> Result<ScriptFormat, String> {
    if text.contains('{') {
        let template = text.parse().map(ScriptFormat::Template);
        return template.map_err(|error: TemplateError| error.to_string());
    }
    let known = OutputFormat::from_str(text, false).map(ScriptFormat::Known);
    known.map_err(|_| {
        "expected text, json, csv, csv-raw, or a template with braces such as '{comm} {args}'"
            .to_owned()
    })
}
