//! The command line: verbs and their options, in perf's words where perf has them.

#[cfg(feature = "record")]
mod capture;
mod diff;
#[cfg(all(test, feature = "record"))]
mod generated;
mod print;
mod report;
#[cfg(feature = "record")]
mod trace;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use usdtrec_format::escape::escape;
use usdtrec_format::{Pattern, PatternError, split_patterns};
use usdtrec_report::{CpuSet, TimeSpan};

#[cfg(feature = "record")]
pub(crate) use self::capture::{CaptureArgs, Engine, NonResident, Strings};
pub(crate) use self::diff::DiffArgs;
use self::print::TEMPLATES;
pub(crate) use self::print::{PrintArgs, ScriptFormat};
pub(crate) use self::report::{Colour, HistScale, Order, ReportArgs};
#[cfg(feature = "record")]
pub(crate) use self::trace::{TopArgs, TraceArgs};
use crate::terminal;

/// Record and report USDT (SDT) probes, in perf's file formats.
#[derive(Debug, Parser)]
#[command(
    name = "usdtrec",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
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
    /// Parses this process's command line. Exits after printing help, the version or a usage error.
    pub(crate) fn of_process() -> Self {
        let matches = Self::command()
            .try_get_matches_from(normalized(std::env::args_os()))
            .unwrap_or_else(|error| refuse(&error));
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
        #[cfg(feature = "record")]
        let cli = cli.paired(&matches);
        cli
    }

    /// Assigns each `--filter` to the `-e` before it.
    #[cfg(feature = "record")]
    fn paired(mut self, matches: &clap::ArgMatches) -> Self {
        if let (Some(capture), Some((_, matches))) = (self.command.capture(), matches.subcommand())
        {
            capture.pair_filters(matches);
        }
        self
    }
}

/// Prints clap's help or usage error and exits.
///
/// A word of the command line may be a file name from a shell glob. If it has characters that must be escaped, the message is printed
/// escaped and without colours.
fn refuse(error: &clap::Error) -> ! {
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

/// Patterns of one option.
pub(crate) type Patterns = Vec<Pattern>;

/// Parses a list of patterns.
fn patterns(list: &str) -> Result<Patterns, PatternError> {
    split_patterns(list)
        .into_iter()
        .map(Pattern::parse)
        .collect()
}

/// Rewrites what perf accepts and clap does not: `-zLEVEL` becomes `--compression-level=LEVEL`, and process ids separated by spaces,
/// as from `-p $(pidof node)`, become a comma list.
fn normalized(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut ours = true;
    listed_ids(args).into_iter().map(move |arg| {
        ours &= arg != "--";
        match arg.to_str().and_then(|arg| arg.strip_prefix("-z")) {
            Some(level) if ours && level.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("--compression-level={level}").into()
            }
            _ => arg,
        }
    })
}

/// Joins the numbers after `-p`, `--pid`, `-t` or `--tid` with commas, whether they are one word or several.
fn listed_ids(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ids = |arg: &OsString| {
        let text = arg.to_str()?;
        let mut ids = text
            .split([',', ' ', '\t', '\n'])
            .filter(|id| !id.is_empty());
        ids.clone().next()?;
        ids.all(is_number)
            .then(|| text.split_whitespace().collect::<Vec<_>>().join(","))
    };
    let mut args = args.peekable();
    let mut joined = Vec::new();
    while let Some(arg) = args.next() {
        let takes_ids = ["-p", "--pid", "-t", "--tid"]
            .iter()
            .any(|option| arg == *option);
        let ends = arg == "--";
        joined.push(arg);
        if ends {
            break;
        }
        let mut list: Vec<String> = Vec::new();
        while takes_ids && let Some(ids) = args.peek().and_then(ids) {
            list.push(ids);
            args.next();
        }
        if !list.is_empty() {
            joined.push(list.join(",").into());
        }
    }
    joined.extend(args);
    joined
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
    #[cfg(feature = "record")]
    Trace(TraceArgs),
    /// Show the rates of probe hits, once per second
    #[cfg(feature = "record")]
    Top(TopArgs),
    /// Summarize a trace: counts, rates, spans, arguments, losses
    Report(ReportArgs),
    /// Compare two traces, and show the differences beyond noise
    Diff(DiffArgs),
    /// Print a trace, one line per event
    Script(ScriptArgs),
    /// Show, check, import and export schemas: the names, types and meanings of probe arguments
    Schema(SchemaArgs),
    /// Index, list, record and report usdtrec's own probes, as a demonstration
    #[cfg(feature = "record")]
    Demo(DemoArgs),
    /// Show what killed recorders left behind, and remove it with --heal
    ///
    /// A recorder that is killed is cleaned up after by its guard process. If the guard was killed as well, processes may still be
    /// stopped (record --lossless) and tracefs events may still exist. The exit status is 1 if anything is left.
    #[cfg(feature = "record")]
    Doctor(DoctorArgs),
    /// Remove a recorder's tracefs events after it has ended (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::GUARD_VERB, hide = true)]
    GuardTracefs {
        /// Group of the events
        group: String,
    },
    /// Close a recorder's descriptors, which can take the kernel seconds (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::RELEASE_VERB, hide = true)]
    ReleaseProbes {
        /// Number of processes that close them at a time
        at_once: usize,
        /// Number of the descriptor that holds them as well
        keeper: Option<i32>,
    },
    /// Flush a recorded file to disk with fdatasync, which may block for ever (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::SYNC_VERB, hide = true)]
    SyncFile,
    #[cfg(feature = "record")]
    /// Continue the processes that a recorder stopped, after it has ended (started by record)
    #[command(name = usdtrec_record::STOPPED_VERB, hide = true)]
    GuardStopped {
        /// Name of the pinned map of stopped processes
        kept: Option<String>,
    },
    #[cfg(feature = "record")]
    /// Test whether breakpoints on 5-byte nops are safe on this kernel (started by record)
    #[command(name = usdtrec_record::TRIAL_VERB, hide = true)]
    TryNop5,
}

#[cfg(feature = "record")]
impl Command {
    /// The capture options, of `record`, `trace` and `top`.
    fn capture(&mut self) -> Option<&mut CaptureArgs> {
        match self {
            Self::Record(args) => Some(&mut args.capture),
            Self::Trace(args) => Some(&mut args.capture),
            Self::Top(args) => Some(&mut args.capture),
            _ => None,
        }
    }
}

/// `usdtrec buildid-cache`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("action").required(true)))]
pub(crate) struct BuildidCacheArgs {
    /// Add these files (comma list; a name without a slash is looked up in PATH)
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) add: Vec<PathBuf>,
    /// Remove the entries of these files, looked up by the files' current build-ids
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) remove: Vec<PathBuf>,
    /// Remove all entries with these paths, of any build-id
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) purge: Vec<PathBuf>,
    /// Remove all entries
    #[arg(short = 'P', long, group = "action")]
    pub(crate) purge_all: bool,
    /// Replace the entries of these files by their current contents
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) update: Vec<PathBuf>,
    /// List the entries: build-id and path
    #[arg(short, long, group = "action")]
    pub(crate) list: bool,
    /// List the files that have hits in this trace and are not in the cache
    #[arg(short = 'M', long, value_name = "TRACE", group = "action")]
    pub(crate) missing: Option<PathBuf>,
    /// Add every file with probes below this directory
    #[arg(long, value_name = "DIR", group = "action")]
    pub(crate) scan: Vec<PathBuf>,
    /// Name the files that --scan could not read
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Output format of `list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Text; without -v, the lines of `perf list sdt`
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Output format of events and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text; events in the format of `perf script`
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header line; texts that spreadsheets would evaluate as formulas are prefixed with '
    Csv,
    /// Comma-separated values with a header line; all texts unchanged
    CsvRaw,
}

/// `usdtrec list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Probes to list: [sdt_]PROVIDER:NAME, with globs; a pattern without a colon matches any part of a name [default: all]
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// List the probes of this ELF file instead of the cache's
    #[arg(long, value_name = "ELF")]
    pub(crate) file: Vec<PathBuf>,
    /// List the probes of all files that this process maps (comma list)
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// List the probes of all files below this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,
    /// Explain sites, semaphores and operands, with the names and types of arguments if known
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// With -v, take the names and types of arguments from this file (.toml, .d, .stp) first; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// `usdtrec record`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// What to capture
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Trace file; an existing file is renamed to FILE.old; - writes to standard output, which must be a pipe or a file
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) output: PathBuf,
    /// zstd compression level, 1 to 22; 0 disables compression [default: 3]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = clap::value_parser!(u8).range(..=22))]
    pub(crate) compression_level: Option<u8>,
    /// End recording when the trace reaches this size: bytes, or a number with B, K, M or G (100M)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Write numbered files FILE.1, FILE.2, …, each of them a complete trace; start the next one on SIGUSR2 (signal), when a file reaches
    /// a size (10M), or after a time (30s, 5m, 1h) [without a value: signal]
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true, default_missing_value = "signal")]
    pub(crate) switch_output: Option<String>,
    /// With --switch-output, keep only the newest N files
    #[arg(long, value_name = "N", requires = "switch_output", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) switch_max_files: Option<u64>,
    /// Store decoded arguments in the samples, so that stock perf prints them
    ///
    /// The bpf engine always does. With the perf engine this adds half to the recorder's CPU time.
    #[arg(short = 'R', long)]
    pub(crate) raw_samples: bool,
    /// Record timestamps (always on; accepted for compatibility with perf)
    #[arg(short = 'T', long)]
    pub(crate) timestamp: bool,
    /// Options of `perf record` that are refused
    #[command(flatten)]
    pub(crate) unsupported: UnsupportedArgs,
}

/// Options of `perf record` that usdtrec does not support. They are parsed so that the error can give the reason.
#[derive(Debug, Args)]
pub(crate) struct UnsupportedArgs {
    /// Record call chains
    #[arg(short = 'g', hide = true)]
    pub(crate) call_graph: bool,
    /// Record call chains, by this method
    #[arg(long = "call-graph", value_name = "MODE", hide = true)]
    pub(crate) call_graph_mode: Option<String>,
    /// Sampling period
    #[arg(short = 'c', long, value_name = "N", hide = true)]
    pub(crate) count: Option<String>,
    /// Sampling frequency
    #[arg(short = 'F', long, value_name = "N", hide = true)]
    pub(crate) freq: Option<String>,
}

/// The trace to read and the events to select, for `script` and `report`.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Trace file; - reads standard input
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) input: PathBuf,
    /// Selection of events
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

/// Selection of events.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)
    #[arg(short, long, value_name = "EVENT", value_parser = patterns)]
    pub(crate) event: Vec<Patterns>,
    /// Take the names and types of arguments from this file (.toml, .d, .stp) instead of the trace; may be repeated, the last file wins
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Show only events in this time range: FROM,TO in seconds of the trace's clock, either of which may be empty, or percentages of the
    /// trace (10%-20%)
    #[arg(long, value_name = "FROM,TO")]
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
    ///
    /// Operands are arguments (by name, or as arg1, arg2, …), comm, pid, tid and cpu; operators are those of C. ~ matches a text against a glob. A hit
    /// for which the expression has no value, because an argument was not captured, is not shown.
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}

/// `usdtrec script`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATES)]
pub(crate) struct ScriptArgs {
    /// Selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Output options
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// Text after the options in `schema --help`.
const SCHEMA_HELP: &str = "\
A probe gets its schema from the first of these sources that has one with as many arguments as the
probe's note: files given with --schema, the last one first; the user's directory,
~/.config/usdtrec/schemas; the built-in set. If no source has one, names and types come from the
binary's debugging information.

A schema file (`usdtrec schema export node:gc__start` prints one):

  provider = \"app\"
  [enum.kinds]
  1 = \"get\"
  2 = \"put\"
  [[probe]]
  name = \"request\"
  description = \"a request came\"
  arguments = [
      \"url: str(url_len)\",       # NAME: TYPE [UNIT] [enum(NAME)|flags(NAME)] [; DESCRIPTION]
      \"url_len: u32 bytes\",
      \"kind: u8 enum(kinds)\",
      \"waited: u64 ns; in the queue\",
  ]

Types: s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 bool char ptr str str(LENGTH)
bytes(LENGTH), where LENGTH is an argument or a number. Units: ns us ms s bytes KiB, or any word.";

/// `usdtrec schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaArgs {
    /// The action
    #[command(subcommand)]
    pub(crate) action: SchemaAction,
}

/// Actions of `usdtrec schema`.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaAction {
    /// Show the schemas in use, one signature per line, each with its source
    Show {
        /// Probes: [sdt_]PROVIDER:NAME, with globs; a pattern without a colon matches any part of a name [default: all]
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
        /// Schema file (.toml, .d, .stp) that takes precedence; may be repeated, the last file wins
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// Show descriptions, units, and the words of enumerations and flags
        #[arg(short, long)]
        verbose: bool,
    },
    /// Check schema files (.toml, .d, .stp), and with --file compare them with the probes of a program
    ///
    /// Each problem is printed with its line and column. The exit status is 1 if there is an error or a disagreement.
    Check {
        /// Schema files [default: with --file, the schemas in use]
        #[arg(value_name = "FILE", required_unless_present = "file")]
        schema: Vec<PathBuf>,
        /// Program or library with the probes; may be repeated
        #[arg(long, value_name = "ELF")]
        file: Vec<PathBuf>,
    },
    /// Convert schema files (.toml, .d, .stp) to TOML and store them in the user's directory
    Import {
        /// Schema files
        #[arg(value_name = "FILE", required = true)]
        schema: Vec<PathBuf>,
        /// Provider of the probes, instead of the files' own
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
        /// Replace files imported earlier under the same names
        #[arg(short, long)]
        force: bool,
    },
    /// Write schemas to standard output as TOML: those in use, or with -i those stored in a trace
    Export {
        /// Probes: [sdt_]PROVIDER:NAME, with globs; a pattern without a colon matches any part of a name [default: all]
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
        /// Schema file (.toml, .d, .stp) that takes precedence; may be repeated, the last file wins
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// Trace file to read the schemas from
        #[arg(short, long, value_name = "TRACE", conflicts_with = "schema")]
        input: Option<PathBuf>,
    },
}

/// `usdtrec doctor`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Continue the processes that a killed recorder stopped (record --lossless), and remove its tracefs events
    #[arg(long)]
    pub(crate) heal: bool,
}

/// `usdtrec demo`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run only the traced workload (started by the demo)
    #[arg(long, hide = true)]
    pub(crate) workload: bool,
}
