//! The functions that each thread is in, while hits are taken in the order of time.

use foldhash::HashMap;
use usdtrec_format::perf::Sample;

use crate::calls::function::FunctionNumber;
use crate::calls::paths::CallPath;
use crate::calls::{CallDoubts, CallStep, ScriptCalls};
use crate::session::TraceSession;
use crate::session::paused_times::PausedTimes;

/// Functions that are open at once at most; beyond them all are forgotten.
const MAX_OPEN: usize = 1 << 21;
/// Functions from the innermost one on, among which one is searched of which a part is not known.
const NEAR: usize = 64;

/// A hit, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallHit {
    pub(crate) step: CallStep,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// ns.
    pub(crate) time: u64,
}

/// The threads of a trace.
#[derive(Debug)]
pub(crate) struct CallThreads<'c> {
    session: &'c TraceSession,
    calls: &'c ScriptCalls,
    pauses: PausedTimes,
    threads: HashMap<i32, Thread>,
    /// Functions that are open.
    open: usize,
    doubts: CallDoubts,
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    /// The functions that it is in, the outermost first.
    frames: Vec<Frame>,
    /// How often each of them is among them.
    counts: HashMap<FunctionNumber, u32>,
    /// When the program that it runs began, by fork or execve, ns.
    began: u64,
    /// Until when that is known to be so, ns.
    until: u64,
    /// Time of its latest hit, ns; not used if there are no pauses.
    latest: u64,
}

/// A function that was called.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: FunctionNumber,
    path: CallPath,
    partial: bool,
}

impl CallHit {
    pub(crate) const fn new(step: CallStep, sample: &Sample<'_>) -> Self {
        Self {
            step,
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time,
        }
    }
}

impl<'c> CallThreads<'c> {
    pub(crate) fn new(session: &'c TraceSession, calls: &'c ScriptCalls) -> Self {
        Self {
            session,
            calls,
            pauses: calls.pauses(session),
            threads: HashMap::default(),
            open: 0,
            doubts: CallDoubts::default(),
        }
    }

    /// Takes the next hit, and gives the path of calls that its thread was in.
    pub(crate) fn take(&mut self, hit: CallHit) -> CallPath {
        let CallHit { pid, tid, time, .. } = hit;
        let is_call = matches!(hit.step, CallStep::Call(_));
        if !is_call && !self.threads.contains_key(&tid) {
            self.doubts.uncalled += u64::from(hit.step != CallStep::Stay);
            return CallPath::EMPTY;
        }
        if is_call && self.open >= MAX_OPEN {
            self.doubts.forgotten += self.open as u64;
            self.open = 0;
            self.threads.clear();
        }
        let thread = self.threads.entry(tid).or_default();
        if time >= thread.until {
            let mappings = self.session.mappings();
            let began = mappings.began(pid, time);
            if began != thread.began {
                // Another program runs, or another process has the number.
                self.open -= thread.frames.len();
                thread.frames.clear();
                thread.counts.clear();
            }
            thread.began = began;
            thread.until = mappings.mappings_until(pid, time);
        }
        if !self.pauses.is_empty() {
            let latest = std::mem::replace(&mut thread.latest, time);
            if self.pauses.between(latest, time).is_some() {
                self.doubts.unreturned += thread.frames.len() as u64;
                self.open -= thread.frames.len();
                thread.cut(0);
            }
        }
        let before = thread.frames.len();
        let path = match hit.step {
            CallStep::Stay => thread.path(),
            CallStep::Call(function) => thread.call(function, self.calls),
            CallStep::Return(function) => match thread.find(function, self.calls) {
                Some(at) => {
                    let path = thread
                        .frames
                        .get(at)
                        .map_or(CallPath::EMPTY, |frame| frame.path);
                    self.doubts.unreturned += (thread.frames.len() - at - 1) as u64;
                    thread.cut(at);
                    path
                }
                None => {
                    self.doubts.uncalled += 1;
                    thread.path()
                }
            },
        };
        self.open = self.open - before + thread.frames.len();
        path
    }

    /// All hits were taken.
    pub(crate) fn finish(self) {
        self.calls.note(self.doubts);
    }
}

impl Thread {
    fn path(&self) -> CallPath {
        self.frames
            .last()
            .map_or(CallPath::EMPTY, |frame| frame.path)
    }

    fn call(&mut self, function: FunctionNumber, calls: &ScriptCalls) -> CallPath {
        let known = calls.function(function);
        let path = calls.called(self.path(), function, known.hash);
        self.frames.push(Frame {
            function,
            path,
            partial: known.partial,
        });
        *self.counts.entry(function).or_default() += 1;
        path
    }

    /// The innermost call of a function; where a part of the name of one of the two is not known, the innermost one nearby that may be it.
    fn find(&self, function: FunctionNumber, calls: &ScriptCalls) -> Option<usize> {
        if self.counts.contains_key(&function) {
            let frames = self.frames.iter();
            return frames
                .rev()
                .position(|frame| frame.function == function)
                .map(|above| self.frames.len() - 1 - above);
        }
        let partial = calls.function(function).partial;
        let near = self.frames.iter().enumerate().rev().take(NEAR);
        let mut fitting = near.filter(|(_, frame)| partial || frame.partial);
        fitting.next().map(|(at, _)| at)
    }

    /// Leaves the function at a place, and those that were called from there.
    fn cut(&mut self, at: usize) {
        for frame in self.frames.drain(at..) {
            if let Some(count) = self.counts.get_mut(&frame.function) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&frame.function);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::function::FunctionText;

    fn number(calls: &ScriptCalls, name: &str, partial: bool) -> FunctionNumber {
        let functions = calls.functions.write();
        functions.unwrap().number(&FunctionText {
            name: name.into(),
            file: Vec::new(),
            partial,
        })
    }

    #[test]
    fn a_return_belongs_to_the_newest_call_of_its_function() {
        let calls = ScriptCalls::with(Vec::new());
        let [a, b, c] = ["a", "b", "c"].map(|name| number(&calls, name, false));
        let mut thread = Thread::default();
        for function in [a, b, a, c] {
            thread.call(function, &calls);
        }
        assert_eq!(thread.find(c, &calls), Some(3));
        assert_eq!(thread.find(a, &calls), Some(2));
        assert_eq!(thread.find(b, &calls), Some(1));
        thread.cut(1);
        assert_eq!(thread.find(b, &calls), None);
        assert_eq!(thread.find(a, &calls), Some(0));
        thread.cut(0);
        assert_eq!(thread.find(a, &calls), None);
        assert_eq!(thread.path(), CallPath::EMPTY);
    }

    #[test]
    fn a_function_without_a_known_name_may_be_any_nearby() {
        let calls = ScriptCalls::with(Vec::new());
        let [a, b] = ["a", "b"].map(|name| number(&calls, name, false));
        let unknown = number(&calls, "?", true);
        let mut thread = Thread::default();
        thread.call(a, &calls);
        thread.call(unknown, &calls);
        // It is the one whose name is not known; a third one is none of them.
        assert_eq!(thread.find(b, &calls), Some(1));
        thread.cut(1);
        assert_eq!(thread.find(b, &calls), None);
        assert_eq!(thread.find(unknown, &calls), Some(0));
        for _ in 0..NEAR {
            thread.call(a, &calls);
        }
        assert_eq!(thread.find(b, &calls), None);
    }
}
