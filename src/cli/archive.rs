//! Options of `usdtrec archive`.

use std::path::PathBuf;

use clap::Args;

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
