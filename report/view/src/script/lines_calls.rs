//! Whether lines have the functions of scripts.

use std::sync::Arc;

use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;

/// The calls of the trace's scripts, if their functions are requested.
pub(crate) fn calls_of(
    session: &TraceSession,
    options: &ScriptOptions,
) -> Result<Option<Arc<ScriptCalls>>, ReportError> {
    if !options.script_stacks {
        return Ok(None);
    }
    let what = || "a stack of a script".to_owned();
    let calls = ScriptCalls::from_session(session);
    let calls = calls.ok_or_else(|| QuestionError::NoScriptCalls { what: what() })?;
    Ok(Some(calls))
}
