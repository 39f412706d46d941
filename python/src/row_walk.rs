//! Rows of a walk that runs on another thread.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usdtrec_report::TraceSession;
use usdtrec_report::arrow::ArrowRows;
use usdtrec_report::rows::{RowReader, TraceRow};

use crate::failure::{Error, message};
use crate::found_notices::FoundNotices;
use crate::question::Question;
use crate::row::OwnedRow;

/// Rows that are handed over together.
const TOGETHER: usize = 256;
/// Such runs of rows that wait to be taken, besides the one that is being made.
const WAITING: usize = 4;

type Rows = Result<Vec<OwnedRow>, String>;

/// Gives rows as dicts, in the order of time.
#[pyclass(frozen, module = "usdtrec._native")]
pub(crate) struct RowIterator(Mutex<Walked>);

struct Walked {
    rows: Receiver<Rows>,
    /// Those that were taken from there, the last one first.
    taken: Vec<OwnedRow>,
}

/// Where a walk puts its rows.
struct Putting {
    to: SyncSender<Rows>,
    rows: Vec<OwnedRow>,
}

impl Putting {
    fn put(&mut self, row: OwnedRow) -> ControlFlow<()> {
        self.rows.push(row);
        match self.rows.len() < TOGETHER {
            true => ControlFlow::Continue(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> ControlFlow<()> {
        let rows = std::mem::take(&mut self.rows);
        match self.to.send(Ok(rows)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl RowIterator {
    /// Starts a walk whose rows are taken from the iterator.
    pub(crate) fn start(
        session: Arc<TraceSession>,
        question: Question,
        notices: FoundNotices,
    ) -> PyResult<Self> {
        let (to, rows) = sync_channel(WAITING);
        let mut putting = Putting {
            to,
            rows: Vec::new(),
        };
        let walk = move || {
            let reader = RowReader::new(&session, &question.selection, &question.rows);
            let walked = reader.and_then(|reader| {
                reader.read(|row| match (row, question.table) {
                    (TraceRow::Event(event), ArrowRows::Events) => {
                        putting.put(OwnedRow::of_event(event))
                    }
                    (TraceRow::Span(span), ArrowRows::Spans) => {
                        putting.put(OwnedRow::of_span(span))
                    }
                    _ => ControlFlow::Continue(()),
                })
            });
            match walked {
                Ok(found) => {
                    notices.set(&found);
                    // Whether they are taken or not, there are no more.
                    let _ = putting.flush();
                }
                // Nobody takes the error, or any row.
                Err(error) => drop(putting.to.send(Err(message(&error)))),
            }
        };
        thread::Builder::new()
            .name("usdtrec".to_owned())
            .spawn(walk)?;
        Ok(Self(Mutex::new(Walked {
            rows,
            taken: Vec::new(),
        })))
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Other threads of Python go on while the next rows are decoded.
        let row = py.detach(|| {
            let mut walked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            while walked.taken.is_empty() {
                match walked.rows.recv() {
                    Ok(rows) => walked.taken = rows?,
                    Err(_) => return Ok(None),
                }
                walked.taken.reverse();
            }
            Ok(walked.taken.pop())
        });
        let row = row.map_err(|message: String| Error::new_err(message))?;
        row.map(|row| row.dict(py)).transpose()
    }
}
