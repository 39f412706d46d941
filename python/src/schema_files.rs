//! Schemas of files.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use pyo3::{PyErr, PyResult};
use usdtrec_format::escape::shown;
use usdtrec_format::schema::{Schemas, read_file};

use crate::failure::Error;

/// The schemas of files, each of which takes precedence over those before it.
///
/// # Errors
/// A file cannot be read, has an error, or has no probe.
pub(crate) fn schemas(paths: &[PathBuf]) -> PyResult<Schemas> {
    let mut schemas = Schemas::default();
    for path in paths {
        let parsed = read_file(path).map_err(|error| match error.source() {
            Some(source) => Error::new_err(format!("{error}: {source}")),
            None => Error::new_err(error.to_string()),
        })?;
        if let Some(problem) = parsed.problems.iter().find(|problem| problem.error) {
            return Err(failed(path, &problem.to_string()));
        }
        if parsed.probes.is_empty() {
            return Err(failed(path, " expected a definition of a probe"));
        }
        schemas.add(shown(path).to_string(), parsed.probes);
    }
    Ok(schemas)
}

/// An error in a file. The words begin with the place.
fn failed(path: &Path, words: &str) -> PyErr {
    Error::new_err(format!("{}:{words}", shown(path)))
}
