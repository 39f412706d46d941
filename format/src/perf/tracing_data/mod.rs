//! `TRACING_DATA`: the formats of the tracepoints among the events of a trace.

mod arguments;
mod build;
mod field;
mod parse;
mod text;

pub(crate) use build::{TextSink, put_aligned_tracing_data, put_tracing_data};
pub use build::{TracepointField, TracepointFormat};
pub use field::FieldShape;
pub use parse::{TracingData, TracingDataCut};
