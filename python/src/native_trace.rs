//! An open trace.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use usdtrec_report::rows::{LossCounts, RowQuestion, RowReader};
use usdtrec_report::{
    AnswerQuestions as _, ContextQuestion, EventSelection, HintWords, ReportError, Sentences,
    Sources, TraceSession, report,
};

use crate::failure::exception;
use crate::native_rows::NativeRows;
use crate::question::{Asked, AskedReport};
use crate::schema_files;

/// An open trace. Nothing in it changes.
#[pyclass(frozen, module = "usdtrec._native")]
pub(crate) struct NativeTrace {
    session: Arc<TraceSession>,
}

#[pymethods]
impl NativeTrace {
    #[new]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        schemas: Vec<PathBuf>,
        buildid_dir: Option<PathBuf>,
        inline: bool,
        with_spans: Vec<String>,
        holders: bool,
    ) -> PyResult<Self> {
        let sources = Sources {
            schemas: schema_files::schemas(&schemas)?,
            buildid_dir,
            no_inline: !inline,
            ..Sources::default()
        };
        let context = ContextQuestion {
            with: with_spans,
            holders,
        };
        let opened = py.detach(|| {
            let mut session = TraceSession::open_files(&paths, &sources)?;
            context.add_to(&mut session)?;
            Ok(session)
        });
        Ok(Self {
            session: Arc::new(opened.map_err(|error: ReportError| exception(&error))?),
        })
    }

    /// The selected rows. Nothing is read yet.
    fn rows(&self, asked: Asked) -> PyResult<NativeRows> {
        NativeRows::new(Arc::clone(&self.session), asked.question()?)
    }

    /// The answer to a question in JSON, and what is wrong with the trace.
    fn report(
        &self,
        py: Python<'_>,
        selected: Asked,
        asked: AskedReport,
    ) -> PyResult<(String, Vec<String>)> {
        let question = asked.question()?;
        let selection = selected.question()?.selection;
        let answer = py
            .detach(|| self.session.answer(&selection, &question))
            .map_err(|error| exception(&error))?;
        Ok((
            py.detach(|| report::json(&answer.facts).to_string()),
            answer.notices.sentences(HintWords::default()),
        ))
    }

    /// Names of the events that the trace can have, each once.
    fn event_names(&self) -> Vec<&str> {
        let events = self.session.events().events.iter();
        let names = events.filter(|event| !event.is_dummy());
        let mut all: Vec<&str> = Vec::new();
        for event in names {
            if !all.contains(&&*event.name) {
                all.push(&event.name);
            }
        }
        all
    }

    /// Names of the kinds of spans that are found by the names of probes.
    fn span_names(&self) -> PyResult<Vec<String>> {
        let question = RowQuestion::default();
        let reader = RowReader::new(&self.session, &EventSelection::default(), &question);
        let reader = reader.map_err(|error| exception(&error))?;
        Ok(reader.span_names().map(str::to_owned).collect())
    }

    /// How many events were lost.
    fn losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let losses = LossCounts::new(&self.session);
        let probes = PyList::empty(py);
        for probe in &losses.probes {
            let one = PyDict::new(py);
            one.set_item("event", probe.event.as_deref())?;
            one.set_item("lost", probe.lost)?;
            probes.append(one)?;
        }
        let all = PyDict::new(py);
        all.set_item("lost", losses.lost())?;
        all.set_item("exact", losses.is_exact)?;
        all.set_item("counted", losses.counted_word())?;
        all.set_item("doubt", losses.doubt.as_deref())?;
        all.set_item("probes", probes)?;
        Ok(all)
    }
}
