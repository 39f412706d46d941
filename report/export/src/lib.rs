//! `export`: the events and spans of a trace in the formats of other programs.
//!
//! Each format is a folder that implements `RowSink`, or shows the weighed stacks of a trace, and
//! uses none of the others. What several formats need of a timeline is in the files next to them.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "formats"),
    allow(
        dead_code,
        reason = "some of what is shared is for these formats alone"
    )
)]

#[cfg(feature = "arrow")]
pub mod arrow;
pub(crate) mod dataset_table;
#[cfg(feature = "formats")]
pub(crate) mod export_format;
#[cfg(feature = "formats")]
pub(crate) mod export_options;
#[cfg(feature = "formats")]
pub(crate) mod folded;
#[cfg(feature = "formats")]
pub(crate) mod formats;
pub(crate) mod frame_file;
#[cfg(feature = "formats")]
pub(crate) mod html;
pub(crate) mod lanes;
#[cfg(feature = "formats")]
pub(crate) mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "formats")]
pub(crate) mod perf;
#[cfg(feature = "formats")]
pub(crate) mod perfetto;
#[cfg(feature = "formats")]
pub(crate) mod pprof;
#[cfg(feature = "formats")]
pub(crate) mod pprof_fields;
pub(crate) mod protobuf;
#[cfg(feature = "redaction")]
pub(crate) mod redaction;
pub mod rows;
pub(crate) mod thread_names;
pub(crate) mod typed_value;

pub use crate::dataset_table::{ColumnType, DatasetTable};
#[cfg(feature = "redaction")]
pub use crate::redaction::Redaction;
#[cfg(feature = "formats")]
pub use crate::{
    export_format::{ExportFormat, RowFormat, StackFormat},
    export_options::ExportOptions,
    formats::write,
    perf::write as write_perf,
};
