//! The functions of scripts as keys.

use std::sync::Arc;

use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::calls::function::ScriptFunction;
use usdtrec_trace::calls::paths::CallPath;

use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::stack::{CallStack, FrameName};

/// A key that is about functions of scripts.
#[derive(Clone, Debug)]
pub struct ScriptKey {
    /// As it was requested.
    pub(crate) name: String,
    pub(crate) calls: Arc<ScriptCalls>,
}

impl PartialEq for ScriptKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ScriptKey {}

impl ScriptKey {
    /// The word of a path: its number, or where nothing is kept, a hash.
    pub(crate) fn word(&self, path: CallPath, dictionary: &Dictionary) -> u64 {
        match dictionary.is_hashing() {
            true => self.calls.hash(path),
            false => path.0.into(),
        }
    }

    /// The stack that a word stands for.
    pub(crate) fn stack(&self, word: u64) -> CallStack {
        let functions = self.calls.functions(CallPath(word as u32));
        CallStack {
            frames: functions.iter().map(|function| frame(function)).collect(),
            cut: None,
        }
    }

    /// The path of the caller alone; `None` if there is no caller.
    pub(crate) fn caller(&self, path: CallPath) -> Option<CallPath> {
        self.calls.alone(self.calls.caller(path))
    }
}

fn frame(function: &ScriptFunction) -> FrameName {
    FrameName::Script {
        name: Arc::clone(&function.name),
        file: function.file.clone(),
    }
}
