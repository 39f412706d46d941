//! Record batches through the Arrow C data interface.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::PyResult;
use usdtrec_report::arrow::ArrowReader;
use usdtrec_report::{ReportError, TraceSession};

use crate::failure::{exception, message};
use crate::found_notices::FoundNotices;
use crate::question::Question;

/// Batches that wait to be taken, besides the one that is being made.
const WAITING: usize = 1;

/// Batches of a walk that runs on another thread.
struct WalkedBatches {
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch, String>>,
}

impl Iterator for WalkedBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.recv().ok()?;
        Some(batch.map_err(ArrowError::ComputeError))
    }
}

impl RecordBatchReader for WalkedBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn reader<'s>(
    session: &'s TraceSession,
    question: &Question,
) -> Result<ArrowReader<'s>, ReportError> {
    let Question {
        table,
        selection,
        rows,
    } = question;
    ArrowReader::new(session, selection, rows, *table)
}

/// Starts a walk whose batches are taken from the stream.
pub(crate) fn arrow_stream(
    session: Arc<TraceSession>,
    question: Question,
    notices: FoundNotices,
) -> PyResult<FFI_ArrowArrayStream> {
    let schema = reader(&session, &question).map(|reader| reader.schema());
    let schema = schema.map_err(|error| exception(&error))?;
    let (put, batches) = sync_channel(WAITING);
    let walk = move || {
        let walked = reader(&session, &question).and_then(|reader| {
            reader.read(|batch| match put.send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        match walked {
            Ok(found) => notices.set(&found),
            // Nobody takes the error, or any batch.
            Err(error) => drop(put.send(Err(message(&error)))),
        }
    };
    thread::Builder::new()
        .name("usdtrec".to_owned())
        .spawn(walk)?;
    let batches = WalkedBatches { schema, batches };
    Ok(FFI_ArrowArrayStream::new(Box::new(batches)))
}
