//! Options of the verbs that print events.

use clap::{Args, ValueEnum};
use usdtrec_report::script::{FieldChoice, Template};

use super::OutputFormat;

/// What `--format` may be, besides a word.
pub(super) const TEMPLATES: &str = "\
Templates for --format: in braces stand comm, tid, pid, cpu, tod, time, reltime, deltatime, period, event, ip, \
     sym, symoff, dso, args (all arguments), and arguments by name, as arg1, arg2, ... or as args.NAME. Behind a colon \
     may stand, in this order: <, ^ or > for the side; 0 to fill numbers up; the width; a point with the digits of \
     times and floats or the most characters of texts; ? for texts in quotes, or x for hexadecimal. Times are \
     cut off, not rounded. An argument that an event does not have is -, one that was not captured its <reason>. \
     Outside of braces, \\n, \\t and \\\\ are a newline, a tab and a backslash, {{ and }} are braces.";

/// How to print events.
#[derive(Debug, Args)]
pub(crate) struct PrintArgs {
    /// Fields: comm,tid,pid,cpu,tod,time,period,event,args,ip,sym,symoff,dso,span (which span an event ends, and how long it lasted), and args.NAME or args.arg1 for one argument;
    /// with + or - in front, added or removed
    #[arg(short = 'F', long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) fields: Vec<FieldChoice>,
    /// Times since the first event shown; in JSON and CSV as reltime_ns
    #[arg(long, conflicts_with = "deltatime")]
    pub(crate) reltime: bool,
    /// Times since the line before; in JSON and CSV as deltatime_ns
    #[arg(long)]
    pub(crate) deltatime: bool,
    /// Show the time of day, too (as -F +tod): of this machine's time zone; in JSON and CSV UTC
    #[arg(long)]
    pub(crate) tod: bool,
    /// Times with nanoseconds
    #[arg(long)]
    pub(crate) ns: bool,
    /// Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only
    #[arg(long)]
    pub(crate) human: bool,
    /// Output format: text, json, csv, csv-raw (texts that spreadsheets take for formulas as they are), or a template for each line ('{comm} {url:?} {time:.3} {pid:>6}'; see below)
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = script_format)]
    pub(crate) format: ScriptFormat,
}

/// How `script` prints.
#[derive(Clone, Debug)]
pub(crate) enum ScriptFormat {
    /// In one of the ways that there are.
    Known(OutputFormat),
    /// As a template says.
    Template(Template),
}

fn script_format(text: &str) -> Result<ScriptFormat, String> {
    if text.contains('{') {
        return text.parse().map(ScriptFormat::Template);
    }
    let known = OutputFormat::from_str(text, false).map(ScriptFormat::Known);
    known.map_err(|_| {
        "there are text, json, csv, csv-raw, and templates, which have braces ({comm})".to_owned()
    })
}
