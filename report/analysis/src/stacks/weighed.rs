//! The stacks of a trace with their weights.

use usdtrec_trace::session::loss_ledger::LossLedger;

use crate::origin::Origin;
use crate::stacks::call_facts::CallFacts;
use crate::stacks::path::{HitsWithoutStack, StackTable};
use crate::stacks::unnamed_frames::UnnamedFrames;

/// What the weights are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightUnit {
    /// Numbers of hits.
    Hits,
    /// Sums of an argument.
    Sum(String),
    /// Time in spans and in no span within them, ns.
    SpanTime,
}

/// The stacks of a trace.
#[derive(Debug)]
pub struct WeighedStacks {
    /// Facts about the trace.
    pub origin: Origin,
    /// Events that were lost.
    pub losses: LossLedger,
    /// What the weights are.
    pub unit: WeightUnit,
    /// If they are of functions of scripts: how far they can be trusted.
    pub calls: Option<CallFacts>,
    /// The stacks that have weight.
    pub tables: Vec<StackTable>,
    /// Hits that have no stack.
    pub without_stack: HitsWithoutStack,
    /// Frames that have no name.
    pub unnamed: UnnamedFrames,
}
