//! How samples are printed.

use usdtrec_analysis::rows::span_question::SpanRowQuestion;

use crate::format::Format;
use crate::script::choice::FieldChoice;
use crate::script::template::Template;
use crate::script::times::TimeOrigin;

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
