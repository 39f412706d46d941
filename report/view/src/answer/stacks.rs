//! Stacks with their weights.

use serde::Serialize;
use serde_json::Value;
use usdtrec_analysis::stacks::path::{StackTable, Step, WeighedPath};
use usdtrec_analysis::stacks::weighed::WeighedStacks;

use crate::frames::frame_json;
use crate::stack_cut::reason;

/// The stacks of an event, or of what begins a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StacksAnswer {
    /// The event, or the span.
    pub name: String,
    /// Sum of the weights: hits, the sum of an argument, or ns of spans.
    pub weight: u64,
    /// Sum of the hits, or spans.
    pub hits: u64,
    /// In the order of their frames.
    pub stacks: Vec<StackPath>,
}

/// A stack with its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StackPath {
    /// Its frames, the innermost first, as of the key `stack`; `None` for all stacks that are too many to be counted one by one.
    pub stack: Option<Vec<Value>>,
    /// Why the stack is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_cut: Option<String>,
    /// Hits, a sum, or ns.
    pub weight: u64,
    /// Hits, or spans.
    pub hits: u64,
}

impl StacksAnswer {
    pub(crate) fn all(stacks: &WeighedStacks) -> Vec<Self> {
        let one = |table: &StackTable| Self {
            name: table.name.clone(),
            weight: table.weight,
            hits: table.hits,
            stacks: table.paths.iter().map(StackPath::new).collect(),
        };
        stacks.tables.iter().map(one).collect()
    }
}

impl StackPath {
    fn new(path: &WeighedPath) -> Self {
        let frame = |step: &Step| match step {
            Step::Frame(frame) => Some(frame_json(frame)),
            _ => None,
        };
        let is_one = !path.steps.contains(&Step::OtherStacks);
        let frames = path.steps.iter().rev().filter_map(frame);
        let cut = path.steps.iter().find_map(|step| match step {
            Step::Cut(cut) => Some(reason(cut).into_owned()),
            _ => None,
        });
        Self {
            stack: is_one.then(|| frames.collect()),
            stack_cut: cut,
            weight: path.weight,
            hits: path.hits,
        }
    }
}
