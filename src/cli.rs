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

/// Records and reports USDT (SDT) probes, in perf's formats.
#[derive(Debug, Parser)]
#[command(
    name = "usdtrec",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// The build-id cache's directory [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) buildid_dir: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line of this process. Ends the process for help and for wrong usage.
    pub(crate) fn of_process() -> Self {
        let matches = Self::command()
            .try_get_matches_from(normal(std::env::args_os()))
            .unwrap_or_else(|error| refuse(&error));
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
        #[cfg(feature = "record")]
        let cli = cli.paired(&matches);
        cli
    }

    /// With each filter at the event that it follows.
    #[cfg(feature = "record")]
    fn paired(mut self, matches: &clap::ArgMatches) -> Self {
        if let (Some(capture), Some((_, matches))) = (self.command.capture(), matches.subcommand())
        {
            capture.pair_filters(matches);
        }
        self
    }
}

/// Ends the process with the help that was asked for, or with what is wrong with the command line.
///
/// A word of the command line may be a file name that a glob of the shell found; one that cannot be printed as it is is
/// shown as all messages are, without colours.
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

/// Writes `-zLEVEL` as clap can tell it from `-z`: perf's optional values of short options follow at once. Writes process ids
/// that stand beside each other, as `-p $(pidof node)` gives them, as a list.
fn normal(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
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

/// Joins the numbers that follow `-p`, `--pid`, `-t` or `--tid` by commas, in one word or in several.
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
    /// Index binaries' probes, in the same cache as perf buildid-cache
    BuildidCache(BuildidCacheArgs),
    /// List probes of the cache, a file, a process or a directory
    List(ListArgs),
    /// Record probe hits into a trace file
    #[cfg(feature = "record")]
    Record(RecordArgs),
    /// Print probe hits as they come, one line an event
    #[cfg(feature = "record")]
    Trace(TraceArgs),
    /// Show again and again which probes are hit how often
    #[cfg(feature = "record")]
    Top(TopArgs),
    /// Sum up a trace: counts, rates, arguments, losses
    Report(ReportArgs),
    /// Compare two traces: what differs by more than varies within each of them
    Diff(DiffArgs),
    /// Print a trace, one line an event
    Script(ScriptArgs),
    /// Show, check, import and export what probes' arguments are called and mean
    Schema(SchemaArgs),
    /// Show the whole way on usdtrec's own probes
    #[cfg(feature = "record")]
    Demo(DemoArgs),
    /// Show what recorders left that were killed together with their guards, and clear it away
    #[cfg(feature = "record")]
    Doctor(DoctorArgs),
    /// Take a recorder's tracefs events away when it has ended (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::GUARD_VERB, hide = true)]
    GuardTracefs {
        /// Group of the events
        group: String,
    },
    /// Close a recorder's descriptors, which may take the kernel long (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::RELEASE_VERB, hide = true)]
    ReleaseProbes {
        /// Threads that close them
        threads: usize,
    },
    /// Bring a recorded file to the disk, which may never answer (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::SYNC_VERB, hide = true)]
    SyncFile,
    #[cfg(feature = "record")]
    /// Let processes go on that a recorder stopped when it has ended (started by record)
    #[command(name = usdtrec_record::STOPPED_VERB, hide = true)]
    GuardStopped {
        /// Under which name the stopped processes are kept
        kept: Option<String>,
    },
    #[cfg(feature = "record")]
    /// Try whether breakpoints on 5-byte nops are sound on this kernel (started by record)
    #[command(name = usdtrec_record::TRIAL_VERB, hide = true)]
    TryNop5,
}

#[cfg(feature = "record")]
impl Command {
    /// What to capture, of a verb that does.
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
    /// Add files (comma list; a bare name is looked up in PATH)
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) add: Vec<PathBuf>,
    /// Remove the entries of these files, by the build-id that the files have now
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) remove: Vec<PathBuf>,
    /// Remove all entries that were ever added for these paths
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) purge: Vec<PathBuf>,
    /// Empty the cache
    #[arg(short = 'P', long, group = "action")]
    pub(crate) purge_all: bool,
    /// Replace what is cached for these files
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_delimiter = ',',
        group = "action"
    )]
    pub(crate) update: Vec<PathBuf>,
    /// List what is in the cache
    #[arg(short, long, group = "action")]
    pub(crate) list: bool,
    /// List the files with hits in a trace that are not in the cache
    #[arg(short = 'M', long, value_name = "TRACE", group = "action")]
    pub(crate) missing: Option<PathBuf>,
    /// Add every file below this directory that carries probes
    #[arg(long, value_name = "DIR", group = "action")]
    pub(crate) scan: Vec<PathBuf>,
    /// Say more
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// How to print events or a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people; what perf prints where perf prints it
    #[default]
    Text,
    /// One JSON object a line
    Json,
    /// Comma-separated values with a header line; a text that a spreadsheet would take for a formula has ' before it
    Csv,
    /// Comma-separated values with all texts as they are
    CsvRaw,
}

/// `usdtrec list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Probes to list: [sdt_]PROVIDER:NAME with globs; without a colon, any part of a name
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// List the probes of this ELF file
    #[arg(long, value_name = "ELF")]
    pub(crate) file: Vec<PathBuf>,
    /// List the probes of everything that this process maps
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// List the probes of every file below this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,
    /// Explain sites, semaphores and operands, with names and types of arguments where they are known
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// With -v, take names and types of arguments from these files (.toml, .d, .stp) first
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
    /// What
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Trace file; the one before it is kept as FILE.old. - for a pipe on standard output
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) output: PathBuf,
    /// Compression level of zstd, 1 to 22, 0 for none [default: 3]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = clap::value_parser!(u8).range(..=22))]
    pub(crate) compression_level: Option<u8>,
    /// End when the trace has this size (B, K, M or G)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Write numbered files FILE.1, FILE.2, …, each complete in itself: a new one on SIGUSR2 (signal), at a
    /// size (10M) or after a time (30s, 5m)
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true, default_missing_value = "signal")]
    pub(crate) switch_output: Option<String>,
    /// Keep only the newest N of the numbered files
    #[arg(long, value_name = "N", requires = "switch_output", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) switch_max_files: Option<u64>,
    /// Record arguments as raw data too, so that stock perf shows them (always so with the bpf engine; with the perf engine
    /// it costs the recorder half as much again)
    #[arg(short = 'R', long)]
    pub(crate) raw_samples: bool,
    /// Record times (always so; accepted for perf's sake)
    #[arg(short = 'T', long)]
    pub(crate) timestamp: bool,
    /// What perf records of other events, and we do not
    #[command(flatten)]
    pub(crate) unsupported: UnsupportedArgs,
}

/// Options of `perf record` that cannot be had, so that what is said of them is why.
#[derive(Debug, Args)]
pub(crate) struct UnsupportedArgs {
    /// Record call chains
    #[arg(short = 'g', hide = true)]
    pub(crate) call_graph: bool,
    /// Record call chains, in this way
    #[arg(long = "call-graph", value_name = "MODE", hide = true)]
    pub(crate) call_graph_mode: Option<String>,
    /// Period
    #[arg(short = 'c', long, value_name = "N", hide = true)]
    pub(crate) count: Option<String>,
    /// Frequency
    #[arg(short = 'F', long, value_name = "N", hide = true)]
    pub(crate) freq: Option<String>,
}

/// Which events of which trace to look at; shared by `script` and `report`.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Trace file; - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) input: PathBuf,
    /// Which events
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

/// Which events to look at.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Only these probes: [sdt_]PROVIDER:NAME with globs
    #[arg(short, long, value_name = "EVENT", value_parser = patterns)]
    pub(crate) event: Vec<Patterns>,
    /// Take names and types of arguments from these files (.toml, .d, .stp) instead of the trace
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Only events in this span of time: FROM,TO in seconds of the trace's clock, either may be empty; or 10%-20%
    #[arg(long, value_name = "FROM,TO")]
    pub(crate) time: Option<TimeSpan>,
    /// Only threads of these names
    #[arg(long, value_name = "COMM", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Only hits on these CPUs (0-3,6)
    #[arg(short = 'C', long, value_name = "LIST")]
    pub(crate) cpu: Option<CpuSet>,
    /// Only hits of which this is true: C's operators over arguments by name or as arg1, arg2, …, comm, pid, tid and
    /// cpu; ~ fits a text to a glob ('bytes > 4096 && url ~ "/api/*"')
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}

/// `usdtrec script`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATES)]
pub(crate) struct ScriptArgs {
    /// Which events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// How they look
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// What `schema --help` says of files.
const SCHEMA_HELP: &str = "\
The first place that has a probe, with as many arguments as the note, is taken whole: files named
with --schema, the last one first; ~/.config/usdtrec/schemas; the built-in set. Where none has it,
the binary's debugging information is asked.

A schema file (format/SCHEMAS.md describes it; `usdtrec schema export node:gc__start` shows one):

  provider = \"app\"
  [enum.kinds]
  1 = \"get\"
  2 = \"put\"
  [[probe]]
  name = \"request\"
  description = \"a request came\"
  arguments = [
      \"url: str(url_len)\",       # NAME: TYPE [UNIT] [enum(WORDS)|flags(WORDS)] [; DESCRIPTION]
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
    /// What to do
    #[command(subcommand)]
    pub(crate) action: SchemaAction,
}

/// What to do with schemas.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaAction {
    /// Show the signatures that are in force: named files first, then the user's directory, then what is built in
    Show {
        /// Probes: [sdt_]PROVIDER:NAME with globs; without a colon, any part of a name
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
        /// Files (.toml, .d, .stp) that take precedence
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// With what is known of each argument
        #[arg(short, long)]
        verbose: bool,
    },
    /// Check schema files (.toml, .d, .stp), telling line and column, and with --file against the probes of a program
    Check {
        /// The files [default: with --file, what is in force]
        #[arg(value_name = "FILE", required_unless_present = "file")]
        schema: Vec<PathBuf>,
        /// A program or library with the probes
        #[arg(long, value_name = "ELF")]
        file: Vec<PathBuf>,
    },
    /// Keep schema files (.toml, .d, .stp) in the user's directory, as TOML
    Import {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        schema: Vec<PathBuf>,
        /// Provider of the probes, whatever the files say
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
        /// Replace what was imported from files of these names before
        #[arg(short, long)]
        force: bool,
    },
    /// Write schemas as TOML to standard output: those in force, or with -i those that a trace has stored
    Export {
        /// Probes: [sdt_]PROVIDER:NAME with globs; without a colon, any part of a name
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
        /// Files (.toml, .d, .stp) that take precedence
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// The trace
        #[arg(short, long, value_name = "TRACE", conflicts_with = "schema")]
        input: Option<PathBuf>,
    },
}

/// `usdtrec doctor`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Let processes go on that a killed recorder stopped (record --lossless), and remove its tracefs events
    #[arg(long)]
    pub(crate) heal: bool,
}

/// `usdtrec demo`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run the traced workload only (used by the demo itself)
    #[arg(long, hide = true)]
    pub(crate) workload: bool,
}
