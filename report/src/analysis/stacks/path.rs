//! Stacks with their weights, from the outermost frame to the innermost.

use usdtrec_format::perf::ChainCut;

use crate::stats::keys::stack::{CallStack, FrameName};
use crate::stats::keys::value::KeyValue;
use crate::trace::unwind::cut::StackCut;
use crate::trace::unwind::known_cut::KnownCut;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
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
pub(crate) struct WeighedPath {
    /// The outermost first. Where the stack is cut, the reason comes first.
    pub(crate) steps: Vec<Step>,
    /// Hits, a sum, or ns.
    pub(crate) weight: u64,
    /// Hits.
    pub(crate) hits: u64,
}

/// The stacks of an event, or of what begins a span.
#[derive(Debug)]
pub(crate) struct StackTable {
    /// The event, or the span.
    pub(crate) name: String,
    /// In the order of their frames.
    pub(crate) paths: Vec<WeighedPath>,
    /// Sum of the weights.
    pub(crate) weight: u64,
    /// Sum of the hits.
    pub(crate) hits: u64,
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

impl WeighedPath {
    /// The path of a key's value.
    pub(crate) fn of(value: KeyValue, weight: u64, hits: u64) -> Self {
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
}

impl StackTable {
    /// `None` if nothing has weight.
    pub(crate) fn new(name: String, mut paths: Vec<WeighedPath>) -> Option<Self> {
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

    /// Hits of which the recorder took no stack, because there were too many in a second.
    pub(crate) fn without_stack(&self) -> u64 {
        let is_left_out = |path: &&WeighedPath| {
            let cut = path.steps.first();
            matches!(cut, Some(Step::Cut(known)) if known.cut == StackCut::Recorded(ChainCut::Rate))
        };
        self.paths
            .iter()
            .filter(is_left_out)
            .map(|path| path.hits)
            .sum()
    }
}
