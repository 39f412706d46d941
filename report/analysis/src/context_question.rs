//! Which arguments events get besides their own.

use std::sync::{Arc, OnceLock};

use usdtrec_trace::added::added_argument::AddedArgument;
use usdtrec_trace::added::{AddedArguments, FindAdded, add_arguments};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::enclosing::arguments::ContextArguments;
use crate::enclosing::parts::Parts;
use crate::enclosing::roles::SpanRoles;
use crate::holders::roles::LockRoles;

/// Which arguments events get besides their own: what is known of each from other events of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextQuestion {
    /// Names of spans, with globs, or `START..DONE`. An event gets the arguments of the one that it is in: those of the span `query` are called
    /// `query.NAME`.
    pub with: Vec<String>,
    /// Whether events that end a wait for a lock get who held it: `holder.comm`, `holder.tid`, `holder.blocked`, `holder.held`, `holder.others`, and
    /// `holder.query.NAME` for the spans of `with`. Of a group of locks, they are called `candidate.comm` and so on.
    pub holders: bool,
}

impl ContextQuestion {
    /// Whether events get no more than their own.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.with.is_empty() && !self.holders
    }

    /// Adds the arguments to the events of an open trace, in place of those that were added before.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace has no such spans, a thread has several of them at once, or the trace does not have the probes of
    /// a lock.
    pub fn add_to(&self, session: &mut TraceSession) -> Result<(), ReportError> {
        add_arguments(session, self)
    }
}

impl FindAdded for ContextQuestion {
    fn find(&self, session: &TraceSession) -> Result<Option<Arc<dyn AddedArguments>>, ReportError> {
        if self.is_empty() {
            return Ok(None);
        }
        // A stream may be without events at its beginning: those of a process that is yet to start come later.
        let mut events = session.events().events.iter();
        let has_events = events.any(|event| !event.is_dummy());
        let mut parts = Parts::default();
        for text in &self.with {
            match parts.add(text, session) {
                Err(ReportError::Question(QuestionError::NoSpan { .. })) if !has_events => {}
                added => added?,
            }
        }
        let of_parts = parts.arguments(session);
        let of_spans: Vec<AddedArgument> = of_parts.iter().flatten().cloned().collect();
        let locks = match self.holders && has_events {
            true => LockRoles::new(session, &of_spans)?,
            false => LockRoles::default(),
        };
        let events = 0..session.events().events.len();
        let of_events = events.map(|event| {
            let mut of_event = parts.arguments_of_event(event, &of_parts);
            of_event.extend(locks.arguments(event, &of_spans));
            of_event
        });
        Ok(Some(Arc::new(ContextArguments {
            of_events: of_events.collect(),
            parts: parts.count(),
            roles: SpanRoles::new(&parts, &of_parts, session)?,
            locks,
            survey: OnceLock::new(),
        })))
    }
}
