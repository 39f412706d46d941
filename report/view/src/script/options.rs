//! How samples are printed.

use std::io::Write;
use std::sync::Arc;

use usdtrec_analysis::rows::row_walk::SpanRowQuestion;
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::fields::{FIELDS, Field, Fields};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::format::Format;
use crate::script::choice::FieldChoice;
use crate::script::template::Template;
use crate::script::times::{TextTimes, TimeOrigin};

/// The fields that lines of spans have if nothing is said.
const USUAL_OF_SPANS: Fields = Fields::from_slice(&[
    Field::Comm,
    Field::Tid,
    Field::Cpu,
    Field::Time,
    Field::Event,
    Field::Span,
    Field::Args,
]);

/// How samples are printed.
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// Which fields.
    pub fields: FieldChoice,
    /// What times are counted from.
    pub times: TimeOrigin,
    /// Whether text has times with nine digits after the point, not six.
    pub nanoseconds: bool,
    /// Maximum number of frames shown of a call chain, from 1. `None`: all that were recorded, and up to 127 of a copy of the stack.
    pub max_stack: Option<usize>,
    /// Whether the functions of the script that the thread is in are shown in place of call chains.
    pub script_stacks: bool,
    /// Whether call chains are left out.
    pub hide_call_graph: bool,
    /// Output format.
    pub format: Format,
    /// Template of each line, in place of fields and format.
    pub template: Option<Template>,
    /// Whether text has the address of a hit before its arguments only if the field `ip` is requested.
    pub hide_address: bool,
    /// If lines are those of spans: which.
    pub spans: Option<SpanRowQuestion>,
}

impl ScriptOptions {
    /// The fields of lines of spans.
    pub(crate) fn fields_of_spans(&self) -> Fields {
        self.fields.apply(USUAL_OF_SPANS)
    }

    /// The fields of lines that are data.
    pub(crate) fn data_fields(&self) -> Fields {
        match self.spans {
            // Those of events have pids, too.
            Some(_) => self
                .fields_of_spans()
                .with(Fields::from_slice(&[Field::Pid])),
            None => self.fields.apply(Fields::DATA),
        }
    }

    /// How times are written in text.
    pub(crate) const fn text_times(&self) -> TextTimes {
        TextTimes {
            origin: self.times,
            digits: if self.nanoseconds { 9 } else { 6 },
        }
    }

    /// The calls of the trace's scripts, if their functions are requested.
    pub(crate) fn calls(
        &self,
        session: &TraceSession,
    ) -> Result<Option<Arc<ScriptCalls>>, QuestionError> {
        if !self.script_stacks {
            return Ok(None);
        }
        let calls = ScriptCalls::from_session(session);
        let what = "a stack of a script".to_owned();
        calls.map(Some).ok_or(QuestionError::NoScriptCalls { what })
    }

    /// Refuses fields that spans do not have.
    pub(crate) fn refuse_fields_of_events(&self) -> Result<(), QuestionError> {
        let fields = self.fields_of_spans().without(Fields::OF_SPANS);
        match FIELDS.iter().find(|spec| fields.has(spec.field)) {
            Some(spec) => Err(QuestionError::FieldOfEvents { field: spec.name }),
            None => Ok(()),
        }
    }
}

/// Where a stream is printed to.
pub struct StreamOutput<'a> {
    /// Takes the lines, and is flushed after those that came together.
    pub out: &'a mut dyn Write,
    /// Takes the name of an event, empty where it is not known, and the number of its losses, whenever the stream has a record of losses.
    pub lost: &'a mut dyn FnMut(&str, u64),
}

impl StreamOutput<'_> {
    /// Reports losses of an event.
    pub(crate) fn lose(&mut self, session: &TraceSession, event: Option<usize>, lost: u64) {
        let event = event.and_then(|event| session.events().events.get(event));
        (self.lost)(event.map_or("", |event| &event.name), lost);
    }
}
