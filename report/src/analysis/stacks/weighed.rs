//! The stacks of a trace with their weights.

use crate::analysis::losses::Losses;
use crate::analysis::origin::Origin;
use crate::analysis::stacks::call_facts::CallFacts;
use crate::analysis::stacks::path::{HitsWithoutStack, StackTable};
use crate::analysis::stacks::unnamed::UnnamedFrames;

/// What the weights are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WeightUnit {
    /// Numbers of hits.
    Hits,
    /// Sums of an argument.
    Sum(String),
    /// Time in spans and in no span within them, ns.
    SpanTime,
}

/// The stacks of a trace.
#[derive(Debug)]
pub(crate) struct WeighedStacks {
    pub(crate) origin: Origin,
    pub(crate) losses: Losses,
    pub(crate) unit: WeightUnit,
    /// If they are of functions of scripts: how far they can be trusted.
    pub(crate) calls: Option<CallFacts>,
    /// The stacks that have weight.
    pub(crate) tables: Vec<StackTable>,
    pub(crate) without_stack: HitsWithoutStack,
    /// Frames that have no name.
    pub(crate) unnamed: UnnamedFrames,
}
