//! The command line: verbs and their options, in perf's words where perf has them.

mod report;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use usdtrec_format::Pattern;
use usdtrec_report::script::{FieldChoice, Template};
use usdtrec_report::{CpuSet, TimeSpan};

pub(crate) use self::report::{Colour, HistScale, Order, ReportArgs};

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
        let matches = Self::command().get_matches_from(normal(std::env::args_os()));
        let mut cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        #[cfg(feature = "record")]
        if let (Command::Record(args), Some(matches)) =
            (&mut cli.command, matches.subcommand_matches("record"))
        {
            args.pair_filters(matches);
        }
        cli
    }
}

/// Writes `-zLEVEL` as clap can tell it from `-z`: perf's optional values of short options follow at once.
fn normal(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut ours = true;
    args.map(move |arg| {
        ours &= arg != "--";
        match arg.to_str().and_then(|arg| arg.strip_prefix("-z")) {
            Some(level) if ours && level.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("--compression-level={level}").into()
            }
            _ => arg,
        }
    })
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
    /// Sum up a trace: counts, rates, arguments, losses
    Report(ReportArgs),
    /// Print a trace, one line an event
    Script(ScriptArgs),
    /// Show, check, import and export what probes' arguments are called and mean
    Schema(SchemaArgs),
    /// Show the whole way on usdtrec's own probes
    #[cfg(feature = "record")]
    Demo(DemoArgs),
    /// Take a recorder's tracefs events away when it has ended (started by record)
    #[cfg(feature = "record")]
    #[command(name = usdtrec_record::GUARD_VERB, hide = true)]
    GuardTracefs {
        /// Group of the events
        group: String,
    },
    #[cfg(feature = "record")]
    /// Let processes go on that a recorder stopped when it has ended (started by record)
    #[command(name = usdtrec_record::STOPPED_VERB, hide = true)]
    GuardStopped,
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
    /// List the files of a trace that are not in the cache
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
    /// Comma-separated values with a header line
    Csv,
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

/// How to capture.
#[cfg(feature = "record")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The first of these that the kernel allows
    #[default]
    Auto,
    /// Generated BPF programs: any operand, strings, half of perf's cost
    Bpf,
    /// BPF programs, attached to all sites at once (Linux 6.6)
    BpfMulti,
    /// BPF programs, attached site by site (Linux 5.15)
    BpfPerf,
    /// uprobe perf events, with user registers and stack
    Perf,
    /// perf events on tracefs events
    PerfTracefs,
    /// perf events of the uprobe PMU; they cannot follow threads and children
    PerfPmu,
}

/// Which text to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strings {
    /// What unsigned arguments of a pointer's size point to, where it looks like text
    #[default]
    Auto,
    /// The same, taking each of them for a text: an empty one and one that cannot be read show, too
    All,
    /// None
    Off,
}

/// `usdtrec record`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs; comma list, may be repeated. ARGUMENTS are recorded
    /// instead of the note's: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8) (bpf engines)
    #[arg(short, long, value_name = "EVENT", required = true)]
    pub(crate) event: Vec<String>,
    /// Record only those hits of the event before it for which this is true: comparisons of arguments (arg1, or their
    /// names), pid, tid, cpu, comm with constants, && || !; text == "GET", text ~ "GET*" (texts need the bpf engines)
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Vec<String>,
    /// The filter of each event
    #[arg(skip)]
    pub(crate) filters: Vec<Option<String>>,
    /// Record in all processes
    #[arg(short, long)]
    pub(crate) all_cpus: bool,
    /// Record in these processes, with their later threads and children
    #[arg(
        short,
        long,
        value_name = "PID",
        value_delimiter = ',',
        conflicts_with = "all_cpus"
    )]
    pub(crate) pid: Vec<u32>,
    /// Record in these threads only
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with_all = ["all_cpus", "pid"])]
    pub(crate) tid: Vec<u32>,
    /// Record hits on these CPUs only (0-3,6)
    #[arg(short = 'C', long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// Trace file; the one before it is kept as FILE.old. - for a pipe on standard output
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) output: PathBuf,
    /// Size of each CPU's ring: pages, or bytes with B, K, M or G
    #[arg(short, long, value_name = "PAGES|SIZE")]
    pub(crate) mmap_pages: Option<String>,
    /// Compression level of zstd, 1 to 22, 0 for none [default: 1]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u8).range(..=22))]
    pub(crate) compression_level: Option<u8>,
    /// End after this time (10, 10s, 500ms, 2m)
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
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
    /// How to capture
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// Text to read at a hit (bpf engines)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) strings: Strings,
    /// Most bytes to keep of a text, up to 4096
    #[arg(long, value_name = "BYTES", default_value = "256")]
    pub(crate) strlen: String,
    /// Lose nothing: while the ring is half full, stop the processes that hit (SIGSTOP, which their parents see), and let
    /// them go on when it is drained (bpf engines)
    #[arg(long)]
    pub(crate) lossless: bool,
    /// Most bytes of user stack to copy at a hit for operands whose depth cannot be told beforehand
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    pub(crate) stack_size: String,
    /// Take names and types of arguments from these files (.toml, .d, .stp) first
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Plant probes although the checks of the file refuse
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say what is planted and how
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// The command to run and record; with -- in front where it has options of its own
    #[arg(value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Which events to look at; shared by `script` and `report`.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Trace file; - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "usdtrec.data")]
    pub(crate) input: PathBuf,
    /// Only these probes: [sdt_]PROVIDER:NAME with globs
    #[arg(short, long, value_name = "EVENT", value_delimiter = ',', value_parser = Pattern::parse)]
    pub(crate) event: Vec<Pattern>,
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

/// What `--format` may be, besides a word.
const TEMPLATES: &str = "\
Templates for --format: in braces stand comm, tid, pid, cpu, tod, time, reltime, deltatime, period, event, ip, \
     sym, symoff, dso, args (all arguments), and arguments by name, as arg1, arg2, ... or as args.NAME. Behind a colon \
     may stand, in this order: <, ^ or > for the side; 0 to fill numbers up; the width; a point with the digits of \
     times and floats or the most characters of texts; ? for texts in quotes, or x for hexadecimal. Times are \
     cut off, not rounded. An argument that an event does not have is -, one that was not captured its <reason>. \
     Outside of braces, \\n, \\t and \\\\ are a newline, a tab and a backslash, {{ and }} are braces.";

/// `usdtrec script`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATES)]
pub(crate) struct ScriptArgs {
    /// Which events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Fields: comm,tid,pid,cpu,tod,time,period,event,args,ip,sym,symoff,dso, and args.NAME or args.arg1 for one argument;
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
    /// Output format: text, json, csv, or a template for each line ('{comm} {url:?} {time:.3} {pid:>6}'; see below)
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
        "there are text, json, csv, and templates, which have braces ({comm})".to_owned()
    })
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

/// `usdtrec demo`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run the traced workload only (used by the demo itself)
    #[arg(long, hide = true)]
    pub(crate) workload: bool,
}

#[cfg(feature = "record")]
impl RecordArgs {
    /// Gives each event the filters that follow it. Ends the process if one stands before all events.
    fn pair_filters(&mut self, matches: &clap::ArgMatches) {
        let places = |id: &str| {
            matches
                .indices_of(id)
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        };
        let events = places("event");
        self.filters = vec![None; self.event.len()];
        for (filter, place) in self.filter.iter().zip(places("filter")) {
            let before = events.iter().take_while(|event| **event < place).count();
            let Some(slot) = before
                .checked_sub(1)
                .and_then(|at| self.filters.get_mut(at))
            else {
                let message = "--filter belongs to the event before it: give -e first";
                Cli::command()
                    .error(clap::error::ErrorKind::ArgumentConflict, message)
                    .exit();
            };
            // Several filters of one event must all be true.
            *slot = Some(match slot.take() {
                Some(first) => format!("({first}) && ({filter})"),
                None => filter.clone(),
            });
        }
    }
}
