//! Module `usdtrec._native`: what package `usdtrec` of Python is made of.
//!
//! A walk over a trace runs on a thread of its own and hands its rows over through a channel of a few places, so that Python takes them when it
//! wants, and memory is bounded. A walk ends when nothing takes its rows any more.
//!
//! Batches are passed by the Arrow C data interface (`__arrow_c_stream__`), so the package needs no pyarrow to build,
//! and any library that reads the interface can have them. It is built once for all versions of Python (`abi3`).
//! `.ci/python` compares its values with `script --format json` and its tables with what pyarrow reads of `export --to
//! parquet`.

mod arrow_stream;
mod failure;
mod found_notices;
mod native_rows;
mod native_trace;
mod question;
mod row;
mod row_walk;
mod schema_files;

use pyo3::prelude::*;

/// Registers the classes.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::failure::Error;
    #[pymodule_export]
    use crate::native_rows::NativeRows;
    #[pymodule_export]
    use crate::native_trace::NativeTrace;
    #[pymodule_export]
    use crate::row_walk::RowIterator;
}
