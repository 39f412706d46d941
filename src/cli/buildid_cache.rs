//! Options of `usdtrec buildid-cache`.

use std::path::PathBuf;

use clap::Args;

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
