//! Options that select a trace and its events, and the fields that they name.

use std::path::PathBuf;

use clap::Args;
use usdtrec_format::expr::TimedFilter;
use usdtrec_format::{LeastParts, Pattern, PatternError, split_patterns};
use usdtrec_report::fields::{
    FIELDS, Field, FieldSpec, FieldValues, field_help, process_field_names,
};
use usdtrec_report::{CpuSet, TimeSpan};

use super::stacks::InlineArgs;
use super::with::WithArgs;

/// The trace that is written and read if no other is named.
pub(crate) const DEFAULT_TRACE: &str = "usdtrec.data";

/// Patterns of one option.
pub(crate) type Patterns = Vec<Pattern>;

/// Parses a list of patterns.
fn patterns(list: &str) -> Result<Patterns, PatternError> {
    split_patterns(list)
        .into_iter()
        .map(Pattern::parse)
        .collect()
}

/// Long help of `--filter`.
const FILTER: &str = "\
Show only hits for which this expression is true ('bytes > 4096 && url ~ \"/api/*\"')

Operands are arguments (by name, or as arg1, arg2, …), comm, pid, tid, cpu and what is known of the process ({process}); operators are those of C. ~ matches a string against a glob. A hit for which the expression has no value, because an argument was not captured, is not shown. 'span > 100ms', which && may join with the rest, shows only spans of that duration, and 'span.blocked > 10ms' those that were blocked so long; oncpu, runnable and iowait are the other parts of their time, if waits were recorded.";

/// The trace to read and the events to select, for `script` and `report`.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Trace file; several, or a directory or a quoted glob of them, are one trace, in the order of their times; - reads standard input
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) input: Vec<PathBuf>,
    /// Selection of events
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Arguments that events get besides their own
    #[command(flatten)]
    pub(crate) with: WithArgs,
    /// Frames of inlined functions
    #[command(flatten)]
    pub(crate) inline: InlineArgs,
}

/// Selection of events.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Show only these probes: [sdt_]PROVIDER:NAME[@PATH|@build-id:HEX], with globs (comma list, may be repeated)
    #[arg(short, long, value_name = "EVENT", value_parser = patterns)]
    pub(crate) event: Vec<Patterns>,
    /// Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Show only events in this time range: FROM,TO in seconds of the trace's clock, either of which may be empty, percentages of the
    /// trace (10%-20%), the time before its end (-5m, -5m..-1m), or local times of day (02:37:07..02:37:09, 2026-11-20T02:37:07..)
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub(crate) time: Option<TimeSpan>,
    /// Show only threads with these names (comma list)
    #[arg(long, value_name = "COMM", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Show only these processes (comma list)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Show only these threads (comma list)
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Show only hits on these CPUs (0-3,6)
    #[arg(short = 'C', long, value_name = "LIST")]
    pub(crate) cpu: Option<CpuSet>,
    /// Show only hits for which this expression is true ('bytes > 4096 && url ~ "/api/*"')
    #[arg(long, long_help = with_fields(FILTER), value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Duration of the shortest spans that the filter asks for, ns; 0 if it does not ask for any
    #[arg(skip)]
    pub(crate) span_least: u64,
    /// The least times of their parts that it asks for
    #[arg(skip)]
    pub(crate) span_parts: LeastParts,
}

impl WhichArgs {
    /// Takes the durations of spans out of the filter.
    ///
    /// # Errors
    /// The message of a usage error.
    pub(super) fn take_durations(&mut self) -> Result<(), String> {
        let Some(filter) = &self.filter else {
            return Ok(());
        };
        let TimedFilter { least, parts, rest } =
            TimedFilter::parse(filter).map_err(|error| format!("--filter {filter:?}: {error}"))?;
        self.span_least = least;
        self.span_parts = parts;
        self.filter = rest;
        Ok(())
    }

    /// Whether the filter asks for slow spans.
    pub(crate) fn asks_for_spans(&self) -> bool {
        self.span_least > 0 || self.span_parts.first().is_some()
    }
}

/// Keys by which events are grouped, besides arguments and these fields: those that are named before these, and after.
const KEYS: [&[&str]; 2] = [
    &["event", "comm", "pid", "tid", "cpu"],
    &["dso", "sym", "srcline", "caller", "stack"],
];

/// The keys by which events of any trace are grouped.
pub(crate) fn group_keys() -> Vec<&'static str> {
    let [before, after] = KEYS;
    [before, &process_field_names(), after].concat()
}

/// A help text: in place of `{fields}` are all fields with what they are, in place of `{process}` the names of those about the process, in place of
/// `{of hit}` those of the others but the span, and in place of `{keys}` all keys.
pub(super) fn with_fields(help: &str) -> String {
    let is_of_hit = |spec: &&FieldSpec| {
        !matches!(spec.values, FieldValues::Process(_)) && spec.field != Field::Span
    };
    let of_hit = FIELDS.iter().filter(is_of_hit).map(|spec| spec.name);
    let mut text = help.to_owned();
    // Every start of the program comes here: what the text does not have is not made.
    let mut replace = |place, names: &dyn Fn() -> String| {
        if text.contains(place) {
            text = text.replace(place, &names());
        }
    };
    replace("{process}", &|| process_field_names().join(", "));
    replace("{of hit}", &|| {
        of_hit.clone().collect::<Vec<_>>().join(", ")
    });
    replace("{fields}", &|| field_help().join(", "));
    replace("{keys}", &|| group_keys().join(", "));
    text
}
