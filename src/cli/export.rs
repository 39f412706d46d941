//! Options of the verbs that write and read files of other programs and hosts: `export`, `sql`, `import`, `archive`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::selection::SelectionArgs;
use super::stacks::Stacks;

/// `usdtrec export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The trace and the selection of events
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Format to write
    #[arg(long, value_parser = ExportToParser, value_name = "FORMAT")]
    pub(crate) to: ExportTo,
    /// File to write, compressed with gzip if its name ends with .gz; - writes to standard output. An existing file is replaced when the new one is complete. With --to
    /// parquet a folder, which does not exist
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: PathBuf,
    /// Export only these spans: START..DONE, or the name of a span, with globs (may be repeated) [default: all events, and the spans that are found by
    /// the names of probes]
    #[arg(long, value_name = "START..DONE|NAME")]
    pub(crate) span: Vec<String>,
    /// With --span, keys by which begin and end are matched (comma list), as of report
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Export only spans of at least this duration (10us, 5ms, 1s), as --filter 'span >= TIME'; without --span, of all spans that are found by the names of probes
    #[arg(long, value_name = "TIME", conflicts_with = "value")]
    pub(crate) min: Option<String>,
    /// With --to folded or pprof, weigh stacks by the sum of this argument instead of their hits
    #[arg(long, value_name = "ARG", conflicts_with = "span")]
    pub(crate) value: Option<String>,
    /// With --to folded or pprof, which stacks are exported [default: native where they were recorded, else script]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) stacks: Option<Stacks>,
    /// With --to otlp, the argument that has the id of the trace: 32 hexadecimal digits, a UUID, or a traceparent [default: each span has a trace of its own]
    #[arg(long, value_name = "ARG")]
    pub(crate) trace_id: Option<String>,
    /// An argument to leave out, as if its probes did not have it (may be repeated; not with --to folded, pprof and perf)
    #[arg(long, value_name = "ARG")]
    pub(crate) drop: Vec<String>,
    /// An argument whose values are replaced by keyed hashes: equal values stay equal (may be repeated; not with --to folded, pprof and perf)
    #[arg(long, value_name = "ARG")]
    pub(crate) hash: Vec<String>,
    /// With --hash, the file whose bytes are the key: equal values have equal hashes in all exports with one key [default: a random key that is not kept]
    #[arg(long, value_name = "PATH", requires = "hash")]
    pub(crate) hash_key: Option<PathBuf>,
}

/// Formats of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    /// A page for browsers with the answers of report, which needs no network and no other file
    Html,
    /// A folder of Parquet files: a table for each probe and each kind of span
    Parquet,
    /// Perfetto's own format, for ui.perfetto.dev and trace_processor
    Perfetto,
    /// OpenTelemetry spans (OTLP) as lines of JSON; events of no span are left out
    Otlp,
    /// OpenTelemetry spans (OTLP) as a protobuf message
    OtlpProto,
    /// Folded stacks (outer;inner WEIGHT), for flame graph programs: by hits, with --span by time, with --value by sum
    Folded,
    /// A plain perf.data file without compression, for programs that do not read compressed ones
    Perf,
    /// pprof's profiles (gzip): stacks by hits, with --span by number and time, with --value by sum
    Pprof,
}

/// Parses a format. Of formats whose viewers read another one, the error names that one.
#[derive(Clone, Copy, Debug)]
struct ExportToParser;

impl TypedValueParser for ExportToParser {
    type Value = ExportTo;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ExportTo, clap::Error> {
        match value.to_str().and_then(instead) {
            Some(instead) => {
                let refused = format!("there is no --to {}: {instead}", value.display());
                Err(command.clone().error(ErrorKind::InvalidValue, refused))
            }
            None => EnumValueParser::new().parse_ref(command, argument, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = ExportTo::value_variants().iter();
        Some(Box::new(values.filter_map(ValueEnum::to_possible_value)))
    }
}

/// What to use instead of a format that is not written.
fn instead(format: &str) -> Option<&'static str> {
    Some(match format {
        "chrome" => "use --to perfetto, which ui.perfetto.dev opens",
        "ctf" | "ctf2" => {
            "use stock perf, for babeltrace2 and Trace Compass: perf data convert --to-ctf=DIR -i TRACE"
        }
        "firefox" => {
            "use stock perf, for profiler.firefox.com: perf script -F +pid,+ip,+sym,+dso -i TRACE > trace.perf"
        }
        "speedscope" => "use --to folded, which speedscope.app opens",
        _ => return None,
    })
}

/// `usdtrec sql`.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Engine to write SQL for
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: SqlEngine,
    /// Folder of export --to parquet, or the address of one (s3://…). Of a folder there is a view for each probe and each kind of span, too
    #[arg(value_name = "DIR", default_value = "dataset")]
    pub(crate) dataset: PathBuf,
}

/// Engines of `sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlEngine {
    /// DuckDB
    Duckdb,
    /// Spark SQL
    Spark,
}

/// `usdtrec import`.
#[cfg(feature = "record")]
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Output of bpftrace -f json; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Trace file; an existing file is renamed to FILE.old
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// `usdtrec archive`.
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// Trace file
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = super::DEFAULT_TRACE,
        conflicts_with = "unpack"
    )]
    pub(crate) input: PathBuf,
    /// Write the programs and libraries in which the trace has hits or frames, and their separate files with debugging information, into a tarball in the
    /// layout of perf archive
    #[arg(long)]
    pub(crate) debug: bool,
    /// With --debug, the tarball to write [default: FILE.tar.bz2]; an existing file is replaced
    #[arg(short, long, value_name = "TARBALL", requires = "debug")]
    pub(crate) output: Option<PathBuf>,
    /// Add the files of a tarball, of archive --debug or of perf archive, to the build-id cache
    #[arg(long, value_name = "TARBALL", conflicts_with = "debug")]
    pub(crate) unpack: Option<PathBuf>,
}
