//! Options of `usdtrec sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
