//! Stacks with their weights, from the outermost frame to the innermost.

use usdtrec_format::perf::ChainCut;
use usdtrec_trace::unwind::cut::StackCut;
use usdtrec_trace::unwind::known_cut::KnownCut;

use crate::stats::keys::stack::{CallStack, FrameName, SameFiles};
use crate::stats::keys::value::KeyValue;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A frame.
    Frame(FrameName),
    /// In place of the frames that are not known: why the stack is cut.
    Cut(KnownCut),
    /// All stacks that are too many to be kept apart.
    OtherStacks,
    /// The event was recorded without stacks.
    NoStack,
}

/// A stack with its weight.
#[derive(Clone, Debug)]
pub struct WeighedPath {
    /// The outermost first. Where the stack is cut, the reason comes first.
    pub steps: Vec<Step>,
    /// Hits, a sum, or ns.
    pub weight: u64,
    /// Hits.
    pub hits: u64,
}

/// The stacks of an event, or of what begins a span.
#[derive(Debug)]
pub struct StackTable {
    /// The event, or the span.
    pub name: String,
    /// In the order of their frames.
    pub paths: Vec<WeighedPath>,
    /// Sum of the weights.
    pub weight: u64,
    /// Sum of the hits.
    pub hits: u64,
}

impl Step {
    /// What decides between steps of equal weight.
    pub(crate) fn order(&self) -> Vec<u8> {
        match self {
            Self::Frame(frame) => frame.order(),
            Self::Cut(cut) => cut.order(),
            Self::OtherStacks => b"~other".to_vec(),
            Self::NoStack => b"~none".to_vec(),
        }
    }
}

impl Step {
    /// What decides whether steps of two recordings are one.
    pub(crate) fn common_order(&self, same_files: &SameFiles) -> Vec<u8> {
        match self {
            Self::Frame(frame) => frame.common_order(same_files),
            Self::Cut(cut) => {
                let file = cut.file.as_deref();
                let same = file.and_then(|file| same_files.get(file));
                let known = same.map(|file| file.to_path_buf());
                KnownCut {
                    file: known.or_else(|| cut.file.clone()),
                    ..cut.clone()
                }
                .order()
            }
            other => other.order(),
        }
    }
}

impl WeighedPath {
    /// The path of a key's value.
    pub(crate) fn from_value(value: KeyValue, weight: u64, hits: u64) -> Self {
        let steps = match value {
            KeyValue::Stack(CallStack { frames, cut }) => {
                let frames = frames.into_iter().rev().map(Step::Frame);
                cut.into_iter().map(Step::Cut).chain(frames).collect()
            }
            KeyValue::OtherStacks => vec![Step::OtherStacks],
            _ => vec![Step::NoStack],
        };
        Self {
            steps,
            weight,
            hits,
        }
    }

    /// Why its hits have no stack; `None` if they have one, of which frames may be missing.
    pub(crate) fn lacks_stack(&self) -> Option<NoStackReason> {
        match self.steps.first()? {
            Step::NoStack => Some(NoStackReason::Unknown),
            Step::Cut(known) if known.cut == StackCut::Recorded(ChainCut::Rate) => {
                Some(NoStackReason::Rate)
            }
            _ => None,
        }
    }
}

/// Why hits have no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoStackReason {
    /// There were too many in a second.
    Rate,
    /// Their event was recorded without stacks, or they are in no function of a script.
    Unknown,
}

/// Hits that have no stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct HitsWithoutStack {
    /// Hits whose stack the recorder did not take, because there were too many in a second.
    pub by_rate: u64,
    /// The others.
    pub others: u64,
}

impl HitsWithoutStack {
    /// Takes the paths without a stack out of those of a table.
    fn take(&mut self, paths: &mut Vec<WeighedPath>) {
        paths.retain(|path| {
            let count = match path.lacks_stack() {
                None => return true,
                Some(NoStackReason::Rate) => &mut self.by_rate,
                Some(NoStackReason::Unknown) => &mut self.others,
            };
            *count = count.saturating_add(path.hits);
            false
        });
    }
}

impl StackTable {
    /// The stacks among paths; hits without one are counted apart, so that shares are of those that have one. `None` if nothing has weight.
    pub(crate) fn new(
        name: String,
        mut paths: Vec<WeighedPath>,
        without: &mut HitsWithoutStack,
    ) -> Option<Self> {
        without.take(&mut paths);
        paths.retain(|path| path.weight > 0);
        let sum = |of: fn(&WeighedPath) -> u64| paths.iter().map(of).fold(0, u64::saturating_add);
        let table = Self {
            name,
            weight: sum(|path| path.weight),
            hits: sum(|path| path.hits),
            paths,
        };
        (!table.paths.is_empty()).then_some(table)
    }
}
