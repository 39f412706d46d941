//! Parquet: a dataset of one table for each probe and each kind of span, in folders as Hive has them. `docs/parquet.md` describes the tables.
//!
//! Rows are record batches of Arrow, of which crate `parquet` makes the files. Encoded rows are in memory until a row
//! group of their table is complete, at most 64 MiB of all tables. A file is written by one group after the other.
//!
//! * Times are integers, because Spark refuses timestamps of nanoseconds.
//! * The columns of an argument follow from its schema and its operands, not from the values, so they are the same in
//!   all files of a probe.
//! * A file is open only while it is written, and begins anew after 64 row groups, because their descriptions are in
//!   memory until its end.
//! * Ids of stacks and traces are hashes: folders of many hosts can be copied into one.

pub(crate) mod argument;
pub(crate) mod arguments;
pub(crate) mod batch_rows;
pub(crate) mod column;
pub(crate) mod dataset;
pub(crate) mod event_tables;
pub(crate) mod fact_tables;
pub(crate) mod facts;
pub(crate) mod names;
pub(crate) mod span_tables;
pub(crate) mod stack_table;
pub(crate) mod table;

use std::path::Path;

use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk};
use usdtrec_format::LeastParts;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::parquet::dataset::ParquetDataset;
use crate::parquet::facts::DatasetFacts;
use crate::redaction::{RedactedArguments, Redaction};

/// What a dataset has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Spans to export alone: `START..DONE`, or names of spans that are found by the names of probes, with globs. Empty: all events, and the
    /// spans that are found by the names of probes.
    pub spans: Vec<String>,
    /// Keys by which begins and ends of spans are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Of the spans that are named, those of at least this duration, ns.
    pub min: u64,
    /// And those with at least this time of each part; not in stacks and pages.
    pub least_parts: LeastParts,
    /// Arguments that are left out or hashed.
    pub redaction: Redaction,
}

/// Writes the selected events and spans into a folder, which exists and is empty.
///
/// # Errors
/// [`ReportError::Question`] if the trace does not have what is requested; [`ReportError::Write`] if a file cannot be written. What was written until
/// then is not complete.
pub fn write(
    session: &TraceSession,
    selection: &EventSelection,
    options: &DatasetOptions,
    folder: &Path,
) -> Result<Notices, ReportError> {
    let question = RowQuestion {
        spans: options.spans.clone(),
        key: options.key.clone(),
        stacks: true,
    };
    let walk = RowWalk::new(session, selection, &question)?;
    let walk = walk.at_least(options.min, options.least_parts)?;
    let redacted = RedactedArguments::new(session, &options.redaction)?;
    let facts = DatasetFacts::new(session, folder);
    let mut dataset = ParquetDataset::new(session, &walk, facts, &redacted)?;
    let mut notices = Notices::new(session);
    redacted.run(&walk, &mut dataset, &mut notices)?;
    dataset.finish()?;
    Ok(notices)
}
