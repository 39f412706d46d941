//! Options of `usdtrec schema`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
        /// Schema file (.toml, .d) that takes precedence; may be repeated, the last file wins
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// Show descriptions, units, attributes of OpenTelemetry, and the words of enumerations and flags
        #[arg(short, long)]
        verbose: bool,
    },
    /// Check schema files (.toml, .d), and with --file compare them with the probes of a program
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
    /// Convert schema files (.toml, .d) to TOML and store them in the user's directory
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
        /// Schema file (.toml, .d) that takes precedence; may be repeated, the last file wins
        #[arg(long, value_name = "FILE")]
        schema: Vec<PathBuf>,
        /// Trace file to read the schemas from
        #[arg(short, long, value_name = "TRACE", conflicts_with = "schema")]
        input: Option<PathBuf>,
    },
}
