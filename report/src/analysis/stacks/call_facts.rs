//! How far stacks of functions of scripts can be trusted.

use crate::analysis::losses::lost;
use crate::trace::calls::{CallDoubts, ScriptCalls};
use crate::trace::session::TraceSession;

/// How far stacks of functions of scripts can be trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallFacts {
    /// Calls and returns that were lost; `None` if that is not known.
    pub(crate) lost: Option<u64>,
    pub(crate) doubts: CallDoubts,
}

impl CallFacts {
    /// After a walk over the trace.
    pub(crate) fn new(calls: &ScriptCalls, session: &TraceSession) -> Self {
        Self {
            lost: lost(session, |event| calls.has(event)),
            doubts: calls.doubts(),
        }
    }
}
