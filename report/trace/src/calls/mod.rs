//! The functions of a script that a thread is in at each event: PHP, Python, Ruby, Java, without any support of the runtime.
//!
//! They follow from the calls and returns that were recorded ([`ScriptCall`](usdtrec_format::schema::ScriptCall)), in the order of time.
//! What needs the arguments of hits is done in parallel (`ScriptCalls::step`), what needs their order is a few words a hit
//! (`CallThreads::take`).
//!
//! Schemas say at which probes functions are called and return. Each path of calls has a number, so the answer does not
//! depend on the number of threads.
//!
//! * A return that matches no call is counted and ignored.
//! * A return that matches an older call ends what was called after it.
//! * A fork or `execve` begins with no functions.
//! * What was called before a pause of these probes is forgotten in it: whether it returned is not known.
//! * Paths have two million functions together at most; what is beyond them is one group.

pub mod function;
pub mod paths;
pub(crate) mod role;
pub(crate) mod threads;

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use usdtrec_format::perf::Sample;

use crate::calls::function::{FunctionNumber, FunctionText, Functions, ScriptFunction};
use crate::calls::paths::{CallPath, CallPaths};
use crate::calls::role::{CallRole, roles};
use crate::session::TraceSession;
use crate::session::ids::SampleTarget;
use crate::session::paused_times::PausedTimes;
use crate::session::resolver::Resolver;

/// What a hit does to the stack of functions of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStep {
    /// Nothing.
    Stay,
    /// A function is called: it is in the stack of the hit.
    Call(FunctionNumber),
    /// A function returns: it is in the stack of the hit, and after it no more.
    Return(FunctionNumber),
}

/// The calls and returns of a trace's scripts.
#[derive(Debug)]
pub struct ScriptCalls {
    /// Roles of each event.
    roles: Vec<Option<CallRole>>,
    functions: RwLock<Functions>,
    paths: RwLock<CallPaths>,
    doubts: Mutex<CallDoubts>,
}

/// What makes stacks of functions doubtful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallDoubts {
    /// Returns of functions that were called before the recording, or whose calls were lost.
    pub uncalled: u64,
    /// Functions that did not return before the one that called them: left by an exception that the runtime does not report, or their returns
    /// were lost, or a pause began.
    pub unreturned: u64,
    /// Functions that were forgotten because too many were open at once.
    pub forgotten: u64,
}

impl ScriptCalls {
    /// `None` if the trace has no event at which functions are called with one at which they return.
    pub fn from_session(session: &TraceSession) -> Option<Arc<Self>> {
        let roles = roles(&session.events().events);
        let any = roles.iter().any(Option::is_some);
        any.then(|| Arc::new(Self::with(roles)))
    }

    fn with(roles: Vec<Option<CallRole>>) -> Self {
        Self {
            roles,
            functions: RwLock::default(),
            paths: RwLock::default(),
            doubts: Mutex::default(),
        }
    }

    /// Whether functions are called or return at an event.
    pub fn has(&self, event: usize) -> bool {
        matches!(self.roles.get(event), Some(Some(_)))
    }

    /// When probes at which functions are called or return were detached.
    pub(crate) fn pauses(&self, session: &TraceSession) -> PausedTimes {
        let pauses = session.pauses();
        let events = (0..self.roles.len()).filter(|&event| self.has(event));
        PausedTimes::of_any(events.filter_map(|event| pauses.of_event(event)))
    }

    /// What a sample does. `text` is a buffer.
    pub(crate) fn step(
        &self,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
        text: &mut FunctionText,
    ) -> CallStep {
        let Some(Some(role)) = self.roles.get(target.event as usize) else {
            return CallStep::Stay;
        };
        role.read(resolver, target, sample, text);
        let known = {
            let functions = self.functions.read();
            let functions = functions.unwrap_or_else(PoisonError::into_inner);
            functions.known(text)
        };
        let number = known.unwrap_or_else(|| {
            let functions = self.functions.write();
            let mut functions = functions.unwrap_or_else(PoisonError::into_inner);
            functions.number(text)
        });
        match role.enters {
            true => CallStep::Call(number),
            false => CallStep::Return(number),
        }
    }

    /// A function by its number.
    pub(crate) fn function(&self, number: FunctionNumber) -> Arc<ScriptFunction> {
        let functions = self.functions.read();
        let functions = functions.unwrap_or_else(PoisonError::into_inner);
        functions.get(number)
    }

    /// The functions of a path, the innermost first.
    pub fn functions(&self, path: CallPath) -> Vec<Arc<ScriptFunction>> {
        let numbers = self.paths().functions(path);
        numbers
            .into_iter()
            .map(|number| self.function(number))
            .collect()
    }

    /// The path without its innermost function.
    pub fn caller(&self, path: CallPath) -> CallPath {
        self.paths().caller(path)
    }

    /// The innermost function of a path as a path of its own; `None` of an empty one.
    pub fn alone(&self, path: CallPath) -> Option<CallPath> {
        if path == CallPath::OTHERS {
            return Some(path);
        }
        let number = self.paths().innermost(path)?;
        Some(self.called(CallPath::EMPTY, number, self.function(number).hash))
    }

    /// A hash of a path that is the same in every run.
    pub fn hash(&self, path: CallPath) -> u64 {
        self.paths().hash(path)
    }

    /// What made stacks doubtful in the last walk.
    pub fn doubts(&self) -> CallDoubts {
        *self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, doubts: CallDoubts) {
        *self.doubts.lock().unwrap_or_else(PoisonError::into_inner) = doubts;
    }

    /// The path on which a function is called from the end of another one.
    fn called(&self, caller: CallPath, function: FunctionNumber, hash: u64) -> CallPath {
        let paths = self.paths.write();
        let mut paths = paths.unwrap_or_else(PoisonError::into_inner);
        paths.called(caller, function, hash)
    }

    fn paths(&self) -> RwLockReadGuard<'_, CallPaths> {
        // Nothing in here can be left half-done by a panic elsewhere.
        self.paths.read().unwrap_or_else(PoisonError::into_inner)
    }
}
