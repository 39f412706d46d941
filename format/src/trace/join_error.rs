//! Why files are not one trace.

use std::path::PathBuf;

use thiserror::Error;

use crate::clock_seconds;
use crate::escape::{escape, shown};

/// Files that do not belong together.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There is no file.
    #[error("expected at least one file, found none")]
    NoFile,
    /// Two files differ in what all files of a trace have in common.
    #[error(
        "{} and {} are not parts of one trace: {what} is {} in the first and {} in the second; read them one by one, or compare them with diff",
        shown(.a), shown(.b), escape(.of_a), escape(.of_b)
    )]
    Differs {
        /// What differs.
        what: &'static str,
        /// One file.
        a: PathBuf,
        /// What it has.
        of_a: String,
        /// The other file.
        b: PathBuf,
        /// What it has.
        of_b: String,
    },
    /// Two files were recorded at the same time.
    #[error(
        "{} and {} are not parts of one trace: both were recorded from {} to {} s of the trace's clock; read them one by one",
        shown(.a), shown(.b), clock_seconds(*.from), clock_seconds(*.to)
    )]
    Overlap {
        /// One file.
        a: PathBuf,
        /// The other file.
        b: PathBuf,
        /// Begin of the time that both have, ns.
        from: u64,
        /// End of that time, ns.
        to: u64,
    },
}
