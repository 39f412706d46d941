//! Paths of calls: which function was called by which, from the outermost one on, each path once.

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::quality::FixedState;

use crate::calls::function::FunctionNumber;

/// Functions in all paths together: some tens of megabytes, also where all of them are shown.
const MAX_PARTS: usize = 1 << 21;

/// A path by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallPath(pub u32);

impl CallPath {
    /// In no function.
    pub const EMPTY: Self = Self(0);
    /// One of those beyond the paths that are kept.
    pub const OTHERS: Self = Self(u32::MAX);
}

/// A path: another one and a function that is called there.
#[derive(Clone, Copy, Debug)]
struct Step {
    caller: CallPath,
    function: FunctionNumber,
    /// Number of its functions.
    depth: usize,
    /// Hash; the same in every run.
    hash: u64,
}

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct CallPaths {
    /// The step of number 1, and so on.
    steps: Vec<Step>,
    numbers: HashMap<(CallPath, FunctionNumber), CallPath>,
    /// Functions in all of them.
    parts: usize,
}

impl CallPaths {
    /// The path on which `function`, with this hash, is called from the end of another one.
    pub(crate) fn called(
        &mut self,
        caller: CallPath,
        function: FunctionNumber,
        hash: u64,
    ) -> CallPath {
        if caller == CallPath::OTHERS {
            return caller;
        }
        if let Some(known) = self.numbers.get(&(caller, function)) {
            return *known;
        }
        let (depth, outer) = match self.step(caller) {
            Some(step) => (step.depth + 1, step.hash),
            None => (1, 0),
        };
        if self.parts + depth > MAX_PARTS {
            return CallPath::OTHERS;
        }
        self.parts += depth;
        self.steps.push(Step {
            caller,
            function,
            depth,
            hash: FixedState::with_seed(0x7061_7468).hash_one((outer, hash)),
        });
        let path = CallPath(self.steps.len() as u32);
        self.numbers.insert((caller, function), path);
        path
    }

    /// The functions of a path, the innermost first.
    pub(crate) fn functions(&self, mut path: CallPath) -> Vec<FunctionNumber> {
        let mut functions = Vec::new();
        while let Some(step) = self.step(path) {
            functions.push(step.function);
            path = step.caller;
        }
        functions
    }

    pub(crate) fn caller(&self, path: CallPath) -> CallPath {
        self.step(path).map_or(path, |step| step.caller)
    }

    pub(crate) fn innermost(&self, path: CallPath) -> Option<FunctionNumber> {
        Some(self.step(path)?.function)
    }

    pub(crate) fn hash(&self, path: CallPath) -> u64 {
        self.step(path).map_or(path.0.into(), |step| step.hash)
    }

    fn step(&self, path: CallPath) -> Option<&Step> {
        self.steps.get((path.0 as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::function::{FunctionText, Functions};

    /// Numbers of functions `f0`, `f1`, ….
    fn numbers(count: usize) -> Vec<FunctionNumber> {
        let mut functions = Functions::default();
        let text = |at| FunctionText {
            name: format!("f{at}").into_bytes(),
            ..FunctionText::default()
        };
        (0..count).map(|at| functions.number(&text(at))).collect()
    }

    #[test]
    fn a_path_is_known_by_its_functions() {
        let f = numbers(3);
        let mut paths = CallPaths::default();
        let a = paths.called(CallPath::EMPTY, f[0], 10);
        let b = paths.called(a, f[1], 11);
        assert_eq!(paths.called(a, f[1], 11), b);
        assert_eq!(paths.functions(b), [f[1], f[0]]);
        assert_eq!((paths.caller(b), paths.innermost(b)), (a, Some(f[1])));
        assert_eq!(paths.innermost(CallPath::EMPTY), None);
        // Another order gives other numbers, and the same hashes.
        let mut others = CallPaths::default();
        others.called(CallPath::EMPTY, f[2], 12);
        let other = others.called(CallPath::EMPTY, f[0], 10);
        let other = others.called(other, f[1], 11);
        assert_ne!(other, b);
        assert_eq!(others.hash(other), paths.hash(b));
        assert_ne!(paths.hash(a), paths.hash(b));
    }

    #[test]
    fn paths_are_bounded() {
        let f = numbers(1)[0];
        let mut paths = CallPaths::default();
        let mut path = CallPath::EMPTY;
        for _ in 0..10_000 {
            path = paths.called(path, f, 1);
        }
        assert_eq!(path, CallPath::OTHERS);
        assert!(paths.parts <= MAX_PARTS);
        assert_eq!(paths.functions(path), []);
        assert_eq!(paths.called(path, f, 1), CallPath::OTHERS);
        // What is known is still known.
        assert_eq!(paths.called(CallPath::EMPTY, f, 1), CallPath(1));
    }
}
