//! What is requested of a trace.

use pyo3::prelude::*;
use usdtrec_format::Pattern;
use usdtrec_report::EventSelection;
use usdtrec_report::arrow::ArrowRows;
use usdtrec_report::question::{self, GroupOrder, SpanQuestion};
use usdtrec_report::rows::RowQuestion;

use crate::failure::Error;

/// What is requested, as the package writes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    /// `events`, `spans` or `stacks`.
    table: String,
    events: Vec<String>,
    spans: Vec<String>,
    key: Vec<String>,
    filter: Option<String>,
    time: Option<String>,
    comms: Vec<String>,
    pids: Vec<i32>,
    tids: Vec<i32>,
    cpus: Option<String>,
    stacks: bool,
}

/// What is requested.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) table: ArrowRows,
    pub(crate) selection: EventSelection,
    pub(crate) rows: RowQuestion,
}

impl Asked {
    pub(crate) fn question(self) -> PyResult<Question> {
        let error = |error: &dyn std::fmt::Display| Error::new_err(error.to_string());
        let events = self.events.iter().map(|event| Pattern::parse(event));
        let events = events.collect::<Result<Vec<_>, _>>();
        let time = self.time.map(|time| time.parse()).transpose();
        let cpus = self.cpus.map(|cpus| cpus.parse()).transpose();
        let selection = EventSelection {
            events: events.map_err(|wrong| error(&wrong))?,
            time: time.map_err(|wrong| error(&wrong))?,
            comms: self.comms,
            pids: self.pids,
            tids: self.tids,
            cpus: cpus.map_err(|wrong| error(&wrong))?,
            filter: self.filter,
        };
        Ok(Question {
            table: match &*self.table {
                "spans" => ArrowRows::Spans,
                "stacks" => ArrowRows::Stacks,
                _ => ArrowRows::Events,
            },
            selection,
            rows: RowQuestion {
                spans: self.spans,
                key: self.key,
                stacks: self.stacks,
            },
        })
    }
}

/// What a report answers, as the package writes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedReport {
    sort: Vec<String>,
    value: Option<String>,
    span: Vec<String>,
    key: Vec<String>,
    by: Vec<String>,
    min_ns: u64,
    top: Option<usize>,
    order: Option<String>,
}

impl AskedReport {
    pub(crate) fn question(self) -> PyResult<question::Question> {
        let order: Option<Result<GroupOrder, _>> = self.order.map(|order| order.parse());
        let order = order.transpose().map(Option::unwrap_or_default);
        let order = order.map_err(|error| Error::new_err(error.to_string()))?;
        if !self.span.is_empty() {
            return Ok(question::Question::Spans(SpanQuestion {
                spans: self.span,
                key: self.key,
                by: self.by,
                min: self.min_ns,
                top: self.top,
                order,
                ..SpanQuestion::default()
            }));
        }
        if self.sort.is_empty() {
            return Ok(question::Question::Summary);
        }
        Ok(question::Question::Groups {
            sort: self.sort,
            value: self.value,
            top: self.top,
            order,
        })
    }
}
