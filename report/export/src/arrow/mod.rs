//! Record batches of Apache Arrow: the events, spans or stacks of a trace as one table.
//!
//! The columns are those of `export --to parquet` (`docs/parquet.md`), after the names of the probe that Parquet has in folders: `provider` and `probe`, or
//! `provider` and `span`. The table of several probes has the columns of the arguments of all; arguments of one name share their columns. `stack_id` leads to
//! the table of stacks.
//!
//! `no_begin` is about spans whose begins are among the selected events.
//!
//! Batches come in the order of time. In memory are the blocks that are decoded at once, open spans, and the rows of one batch.
//!
//! Batches are made of the columns in which rows of Parquet wait, with the code that fills these:
//! `parquet/` says once which columns there are. A dataset has a table for each probe; a batch has all
//! selected events, because a data frame is one table. The feature has crates `arrow-array`, `arrow-buffer` and
//! `arrow-schema` without `arrow`, which would bring arithmetic and casts, too: with `arrow-data` and `num-complex`
//! five more crates than `parquet` alone.

pub(crate) mod arrow_reader;
pub(crate) mod arrow_table;
pub(crate) mod row_batches;

pub use crate::arrow::arrow_reader::{ArrowReader, ArrowRows};
