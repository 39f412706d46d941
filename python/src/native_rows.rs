//! The selected rows of a trace.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usdtrec_report::rows::RowReader;
use usdtrec_report::{HintWords, Notices, TraceSession};

use crate::arrow_stream::arrow_stream;
use crate::failure::exception;
use crate::question::Question;
use crate::row_walk::RowIterator;

/// What is wrong with a trace, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundNotices(Arc<Mutex<Option<Vec<String>>>>);

impl FoundNotices {
    pub(crate) fn set(&self, notices: &Notices) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some(notices.sentences(HintWords::default()));
    }
}

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
        let found = self.notices.0.lock();
        let found = found.unwrap_or_else(PoisonError::into_inner).clone();
        found.unwrap_or_else(|| {
            let damage = self.session.damage().iter();
            damage.map(ToString::to_string).collect()
        })
    }
}
