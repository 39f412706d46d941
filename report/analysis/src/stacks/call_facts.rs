//! How far stacks of functions of scripts can be trusted.

use usdtrec_trace::calls::{CallDoubts, ScriptCalls};
use usdtrec_trace::session::TraceSession;

/// How far stacks of functions of scripts can be trusted.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts {
    /// Calls and returns that were lost; `None` if that is not known.
    pub lost: Option<u64>,
    /// What of the stacks is doubtful.
    pub doubts: CallDoubts,
}

impl CallFacts {
    /// After a walk over the trace.
    pub(crate) fn new(calls: &ScriptCalls, session: &TraceSession) -> Self {
        Self {
            lost: session.losses().lost_of(|event| calls.has(event)),
            doubts: calls.doubts(),
        }
    }
}
