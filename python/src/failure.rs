//! Errors as exceptions of Python.

use std::error::Error as _;

use pyo3::exceptions::PyException;
use pyo3::{PyErr, create_exception};
use usdtrec_report::ReportError;

create_exception!(
    usdtrec,
    Error,
    PyException,
    "A trace cannot be read, or does not have what is requested."
);

/// The message of an error with those of its causes.
pub(crate) fn message(error: &ReportError) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// An exception with the message of an error.
pub(crate) fn exception(error: &ReportError) -> PyErr {
    Error::new_err(message(error))
}
