//! The selected rows of a trace.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usdtrec_report::TraceSession;
use usdtrec_report::rows::RowReader;

use crate::arrow_stream::arrow_stream;
use crate::failure::exception;
use crate::found_notices::FoundNotices;
use crate::question::Question;
use crate::row_walk::RowIterator;

/// The selected rows of a trace.
#[pyclass(frozen, module = "usdtrec._native")]
pub(crate) struct NativeRows {
    session: Arc<TraceSession>,
    question: Question,
    notices: FoundNotices,
}

impl NativeRows {
    pub(crate) fn new(session: Arc<TraceSession>, question: Question) -> PyResult<Self> {
        let reader = RowReader::new(&session, &question.selection, &question.rows);
        let reader = reader.map(drop);
        reader.map_err(|error| exception(&error))?;
        Ok(Self {
            session,
            question,
            notices: FoundNotices::default(),
        })
    }
}

#[pymethods]
impl NativeRows {
    /// The rows as dicts.
    fn iterate(&self) -> PyResult<RowIterator> {
        let session = Arc::clone(&self.session);
        RowIterator::start(session, self.question.clone(), self.notices.clone())
    }

    /// The rows as a stream of the Arrow C data interface.
    fn arrow_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let session = Arc::clone(&self.session);
        let stream = arrow_stream(session, self.question.clone(), self.notices.clone())?;
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// What is wrong with the trace; before all rows were taken, as far as it is known.
    fn notices(&self) -> Vec<String> {
        self.notices.sentences().unwrap_or_else(|| {
            let files = self.session.files();
            let damage = self.session.damage().iter();
            damage
                .map(|damage| files.place(damage).to_string())
                .collect()
        })
    }
}
