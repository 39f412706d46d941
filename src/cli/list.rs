//! Options of `usdtrec list`.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args, ValueEnum};

use super::text::{PagerArgs, WidthArgs};

/// Output format of `list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Text; without -v, the lines of `perf list sdt`
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// What the files of `list -a` are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKey {
    /// Containers, and units of systemd outside of them
    Container,
}

/// The lines of `perf list` have no width.
fn with_columns(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "width" => option.requires("columns"),
        _ => option,
    }
}

/// `usdtrec list`.
#[derive(Debug, Default, Args)]
#[command(
    group(ArgGroup::new("columns").args(["all", "verbose"]).multiple(true)),
    mut_args(with_columns)
)]
pub(crate) struct ListArgs {
    /// Probes to list: [sdt_]PROVIDER:NAME[@PATH|@build-id:HEX], with globs; a file at PATH need not be in the cache; a pattern without a colon matches any part of a name [default: all]
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// List the probes of this ELF file instead of the cache's
    #[arg(long, value_name = "ELF")]
    pub(crate) file: Vec<PathBuf>,
    /// List the probes of all files that this process maps (comma list)
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// List running files with probes, in any container; with -v, their probes
    #[arg(short, long, conflicts_with_all = ["file", "pid", "dir"])]
    pub(crate) all: bool,
    /// With -a, group the files by the containers and units that run them
    #[arg(
        long,
        value_enum,
        value_name = "KEY",
        requires = "all",
        conflicts_with_all = ["verbose", "schema"]
    )]
    pub(crate) by: Option<ListKey>,
    /// List the probes of all files below this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,
    /// Explain sites, semaphores and operands, with the names and types of arguments if known
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// With -v, take the names and types of arguments from this file (.toml, .d) first; may be repeated
    #[arg(long, value_name = "FILE", requires = "verbose")]
    pub(crate) schema: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
    /// Width of lines
    #[command(flatten)]
    pub(crate) width: WidthArgs,
    /// Pager
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}
