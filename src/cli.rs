//! The command line: verbs and their options, in perf's words where perf has them.

mod buildid_cache;
#[cfg(feature = "record")]
mod capture;
mod completions;
mod conflicts;
mod diff;
#[cfg(feature = "record")]
mod doctor;
mod example;
mod export;
#[cfg(feature = "flame")]
mod flame;
#[cfg(all(test, feature = "record"))]
mod generated;
mod hidden_options;
mod list;
mod option_tips;
mod perf_syntax;
mod print;
#[cfg(feature = "record")]
mod record;
mod report;
#[cfg(feature = "record")]
mod ring;
mod schema;
mod script;
mod selection;
#[cfg(feature = "record")]
mod short_help;
mod spans;
mod stacks;
#[cfg(feature = "record")]
mod stat;
mod text;
#[cfg(feature = "record")]
mod trace;
mod with;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use usdtrec_format::escape::escape;

pub(crate) use self::buildid_cache::BuildidCacheArgs;
#[cfg(feature = "record")]
pub(crate) use self::capture::{CaptureArgs, Engine, NoGap, NonResident, Strings};
pub(crate) use self::completions::{CompletionsArgs, ManArgs};
pub(crate) use self::diff::DiffArgs;
#[cfg(feature = "record")]
pub(crate) use self::doctor::{DemoArgs, DoctorArgs, DoctorFormat, HitKind};
pub(crate) use self::example::Example;
#[cfg(feature = "record")]
pub(crate) use self::export::ImportArgs;
pub(crate) use self::export::{ArchiveArgs, ExportArgs, ExportTo, SqlArgs, SqlEngine};
#[cfg(feature = "flame")]
pub(crate) use self::flame::FlameArgs;
pub(crate) use self::list::{ListArgs, ListFormat};
use self::perf_syntax::normalized;
pub(crate) use self::print::{PrintArgs, ScriptFormat, Times};
#[cfg(feature = "record")]
pub(crate) use self::record::RecordArgs;
pub(crate) use self::report::{HistScale, ReportArgs};
#[cfg(feature = "record")]
pub(crate) use self::ring::DumpArgs;
pub(crate) use self::schema::{SchemaAction, SchemaArgs};
pub(crate) use self::script::ScriptArgs;
pub(crate) use self::selection::{DEFAULT_TRACE, SelectionArgs, WhichArgs, group_keys};
#[cfg(feature = "record")]
pub(crate) use self::spans::SpanStatArgs;
pub(crate) use self::spans::{ALL_SPANS, SpanArgs};
#[cfg(feature = "record")]
pub(crate) use self::stacks::CallersArgs;
pub(crate) use self::stacks::{InlineArgs, kind as stack_kind};
#[cfg(feature = "record")]
pub(crate) use self::stat::StatArgs;
pub(crate) use self::text::{Colour, OutputFormat, PagerArgs};
#[cfg(feature = "record")]
pub(crate) use self::trace::{TopArgs, TopOrder, TraceArgs};
pub(crate) use self::with::{HOLDER_KEYS, WithArgs};
use crate::pager::Paged;
use crate::terminal;

/// Styles of help and of usage errors: clap's, but for green and yellow, which cannot be read on a light background.
const STYLES: Styles = Styles::styled()
    .valid(Style::new().bold())
    .invalid(AnsiColor::Red.on_default());

/// Record and report USDT (SDT) probes, in perf's file formats.
#[derive(Debug, Parser)]
#[command(
    name = "usdtrec",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    styles = STYLES
)]
pub(crate) struct Cli {
    /// Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) buildid_dir: Option<PathBuf>,
    /// The verb and its options
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What help and documents show.
    pub(crate) fn with_examples() -> clap::Command {
        let command = Self::command();
        #[cfg(feature = "record")]
        let command = short_help::with_short_help(command);
        example::with_examples(command)
    }

    /// What completions show.
    pub(crate) fn listed() -> clap::Command {
        completions::shown_command(&Self::with_examples())
    }

    /// All options, and what help and messages show.
    fn whole() -> clap::Command {
        hidden_options::with_hidden_options(Self::with_examples())
    }

    /// All options.
    fn parsed() -> clap::Command {
        hidden_options::with_hidden_options(Self::command())
    }

    /// Parses this process's command line. Exits after printing help, the version or a usage error.
    pub(crate) fn from_command_line() -> Self {
        let words: Vec<OsString> = normalized(std::env::args_os()).collect();
        let mut command = Self::parsed();
        // Texts of help are made only where they are shown.
        let matches = command
            .try_get_matches_from_mut(&words)
            .or_else(|error| match error.kind() {
                ErrorKind::DisplayVersion => Err(error),
                _ => Self::whole().try_get_matches_from(&words),
            })
            .unwrap_or_else(|error| refuse(&true_advice(error)));
        conflicts::check(&mut command, &matches).unwrap_or_else(|error| refuse(&error));
        let cli =
            Self::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&true_advice(error)));
        #[cfg(feature = "record")]
        let cli = cli.paired(&matches);
        cli.with_equivalents(&matches).resolved()
    }

    /// Adds to `--times` what options of perf ask for.
    fn with_equivalents(mut self, matches: &clap::ArgMatches) -> Self {
        let print = match &mut self.command {
            Command::Script(args) => &mut args.print,
            #[cfg(feature = "record")]
            Command::Trace(args) => &mut args.print,
            _ => return self,
        };
        if let Some((_, matches)) = matches.subcommand() {
            print.times.extend(hidden_options::times(matches));
        }
        self
    }

    /// Takes the durations of spans out of filters of traces, and gives the keys of groups one name. Exits if the options cannot be
    /// understood.
    fn resolved(mut self) -> Self {
        let taken = match &mut self.command {
            Command::Report(args) => args.resolve(),
            Command::Script(args) => args.selection.which.take_durations(),
            Command::Export(args) => args.selection.which.take_durations(),
            #[cfg(feature = "flame")]
            Command::Flame(args) => args.selection.which.take_durations(),
            Command::Diff(args) => args.which.take_durations(),
            _ => Ok(()),
        };
        if let Err(message) = taken {
            Self::whole().error(ErrorKind::InvalidValue, message).exit();
        }
        self
    }

    /// Assigns each option about one event to the `-e` before it. Exits if there is none, and at `-R` with a perf engine.
    #[cfg(feature = "record")]
    fn paired(mut self, matches: &clap::ArgMatches) -> Self {
        let is_record = matches!(&self.command, Command::Record(_));
        let delay = match &self.command {
            Command::Record(args) => args.delay.parsed(),
            Command::Trace(args) => args.delay.parsed(),
            Command::Stat(args) => args.delay.parsed(),
            _ => Ok(None),
        };
        let mut paired = Ok(());
        if let (Some(capture), Some((_, matches))) = (self.command.capture(), matches.subcommand())
        {
            paired = capture.pair_filters(matches);
            if paired.is_ok() && is_record {
                paired = hidden_options::check_raw_samples(matches, capture.engine.is_perf());
            }
        }
        let set = |delay| {
            if let Some(capture) = self.command.capture() {
                capture.delay = delay;
            }
        };
        paired = paired.and(delay.map(set));
        if let Err(message) = paired {
            Self::whole()
                .error(ErrorKind::ArgumentConflict, message)
                .exit();
        }
        self
    }
}

/// Prints clap's help or usage error and exits.
///
/// A word of the command line may be a file name from a shell glob. If it has characters that must be escaped, the message is printed
/// escaped and without colours.
fn refuse(error: &clap::Error) -> ! {
    if error.kind() == ErrorKind::DisplayHelp {
        let _ = show_help(error);
    }
    let is_plain = |word: OsString| {
        let word = word.to_string_lossy();
        escape(&word) == word
    };
    if !error.use_stderr() || std::env::args_os().all(is_plain) {
        error.exit();
    }
    terminal::say(error.render());
    std::process::exit(error.exit_code())
}

/// Shows a help text in a pager, if there is one, and exits.
///
/// # Errors
/// That of `dup`, if standard output is closed. A pager that is left is none.
fn show_help(error: &clap::Error) -> io::Result<()> {
    let is_wanted = std::env::args_os().all(|word| word != "--no-pager");
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut out = Paged::new(is_wanted, out);
    if !out.has_pager() {
        return Ok(());
    }
    let text = error.render();
    let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let text = match has_colours {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let _ = out.write_all(text.as_bytes());
    out.finish();
    std::process::exit(error.exit_code())
}

/// Leaves out advice of clap that is wrong here: to pass an option as a value (it would be run as the command, or be the name of a file), and options
/// that are not similar.
fn true_advice(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains(" as a value, use "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    option_tips::with_true_tips(error, Cli::whole, std::env::args_os())
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add binaries and their probes to the build-id cache, remove them, or list them
    ///
    /// The cache is the one of `perf buildid-cache`: each tool lists what the other one added. `record -e PROVIDER:NAME` and `list` find
    /// probes in the files of the cache.
    BuildidCache(BuildidCacheArgs),
    /// List the probes in the cache, a file, a process or a directory
    List(ListArgs),
    /// Record probe hits into a trace file
    ///
    /// Recording ends on Ctrl-C, when the command or all recorded processes have ended, after --duration, or at --max-size. The trace is a
    /// perf.data file, which `usdtrec report`, `usdtrec script` and stock perf read.
    #[cfg(feature = "record")]
    Record(RecordArgs),
    /// Print probe hits while they happen, one line per event
    ///
    /// Lines are in the order of time, and at most about a tenth of a second late.
    #[cfg(feature = "record")]
    Trace(TraceArgs),
    /// Show the rates of probe hits, once per second
    #[cfg(feature = "record")]
    Top(TopArgs),
    /// Count probe hits in the kernel, and print the counts at the end
    ///
    /// No hit is copied out of the kernel, and no trace is written: the counts are exact at any rate. They go to standard output, as what other verbs print, and CMD's
    /// output to standard error; perf stat does it the other way round. Needs the bpf engine.
    #[cfg(feature = "record")]
    Stat(StatArgs),
    /// Summarize a trace: counts, rates, spans, arguments, losses
    Report(ReportArgs),
    /// Draw the stacks of a trace as a flame graph (SVG or HTML)
    #[cfg(feature = "flame")]
    Flame(FlameArgs),
    /// Compare two traces, and show the differences beyond noise
    Diff(DiffArgs),
    /// Print a trace, one line per event
    Script(ScriptArgs),
    /// Write the events and spans of a trace in a format of other programs
    Export(ExportArgs),
    /// Print SQL over datasets of export --to parquet: views, and examples of questions
    Sql(SqlArgs),
    /// Make a trace of the output of bpftrace -f json
    ///
    /// Each event is a line: a printf of nsecs, cpu, probe, pid, tid, comm and NAME=VALUE for each argument, with tabs between and a newline at the end. Lines of other forms are left
    /// out and counted.
    #[cfg(feature = "record")]
    Import(ImportArgs),
    /// Collect what another host needs to name the functions in a trace
    ///
    /// The names of functions in stacks are stored in a trace when recording ends. For a trace that has none (record --no-symbols), archive stores them later, on the
    /// host of the recording. archive --debug writes the programs themselves, for other tools and for more than names.
    Archive(ArchiveArgs),
    /// Show, check, import and export schemas: the names, types and meanings of probe arguments
    Schema(SchemaArgs),
    /// Print the completions of a shell
    ///
    /// The completions of bash, zsh and fish complete patterns by what is indexed and what runs, and keys of --by and --sort by the arguments of the trace.
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    Man(ManArgs),
    /// Index, list, record and report usdtrec's own probes, as a demonstration
    #[cfg(feature = "record")]
    Demo(DemoArgs),
    /// Show what recording needs of this host and what killed recorders left behind, and remove that with --heal
    ///
    /// What does not work is printed with the reason and what to do; --try records probes of usdtrec's own with each engine. The guard process of a killed recorder cleans up after it. If the guard was killed as well, tracefs events may still exist. The exit status is 1 if anything is left, for which --format json does not look, and with -p if a probe cannot be recorded.
    #[cfg(feature = "record")]
    Doctor(DoctorArgs),
    /// Have a running record --ring write its last seconds to a file
    ///
    /// Waits until the file is complete, and prints its path. Recorders of this user are found; with -p, root finds those of others, too.
    #[cfg(feature = "record")]
    Dump(DumpArgs),
}

#[cfg(feature = "record")]
impl Command {
    /// The capture options, of `record`, `trace`, `top` and `stat`.
    fn capture(&mut self) -> Option<&mut CaptureArgs> {
        match self {
            Self::Record(args) => Some(&mut args.capture),
            Self::Trace(args) => Some(&mut args.capture),
            Self::Top(args) => Some(&mut args.capture),
            Self::Stat(args) => Some(&mut args.capture),
            _ => None,
        }
    }
}
