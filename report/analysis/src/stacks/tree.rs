//! Stacks as a tree: frames that stacks have in common are one node.

use std::cmp::Reverse;

use foldhash::HashMap;

use crate::question::CallOrder;
use crate::stacks::path::{StackTable, Step};

/// A node.
#[derive(Debug)]
pub struct CallNode<'t> {
    /// `None` for the root, which is above all.
    pub step: Option<&'t Step>,
    /// Weight of all stacks that go through it.
    pub weight: u64,
    /// Weight of those that end in it.
    pub own: u64,
    /// Places of the next nodes, the greatest weight first.
    pub children: Vec<usize>,
}

/// A tree. Its first node is the root.
#[derive(Debug)]
pub struct CallTree<'t> {
    pub(crate) nodes: Vec<CallNode<'t>>,
}

impl<'t> CallTree<'t> {
    /// The tree of some stacks.
    pub fn new(table: &'t StackTable, order: CallOrder) -> Self {
        let mut tree = Self {
            nodes: vec![CallNode::new(None)],
        };
        let mut places: HashMap<(usize, &Step), usize> = HashMap::default();
        for path in &table.paths {
            let mut at = 0;
            let mut add = |step: &'t Step, tree: &mut Self| {
                tree.weigh(at, path.weight);
                at = *places.entry((at, step)).or_insert_with(|| {
                    let place = tree.nodes.len();
                    tree.nodes.push(CallNode::new(Some(step)));
                    if let Some(parent) = tree.nodes.get_mut(at) {
                        parent.children.push(place);
                    }
                    place
                });
            };
            match order {
                CallOrder::Caller => path.steps.iter().for_each(|step| add(step, &mut tree)),
                CallOrder::Callee => path
                    .steps
                    .iter()
                    .rev()
                    .for_each(|step| add(step, &mut tree)),
            }
            tree.weigh(at, path.weight);
            if let Some(last) = tree.nodes.get_mut(at) {
                last.own = last.own.saturating_add(path.weight);
            }
        }
        // The greatest weight first, equals by their names.
        let order = |node: &CallNode<'_>| (Reverse(node.weight), node.step.map(Step::order));
        sort_children(&mut tree.nodes, |node| &mut node.children, order);
        tree
    }

    fn weigh(&mut self, at: usize, weight: u64) {
        if let Some(node) = self.nodes.get_mut(at) {
            node.weight = node.weight.saturating_add(weight);
        }
    }

    /// A node.
    pub fn node(&self, at: usize) -> Option<&CallNode<'t>> {
        self.nodes.get(at)
    }
}

/// Sorts the children of each node, which are places of nodes.
pub(crate) fn sort_children<N, K: Ord>(
    nodes: &mut [N],
    children: fn(&mut N) -> &mut Vec<usize>,
    order: impl Fn(&N) -> K,
) {
    for at in 0..nodes.len() {
        let unsorted = nodes.get_mut(at).map(children);
        let mut sorted = unsorted.map(std::mem::take).unwrap_or_default();
        sorted.sort_by_cached_key(|&child| nodes.get(child).map(&order));
        if let Some(node) = nodes.get_mut(at) {
            *children(node) = sorted;
        }
    }
}

impl<'t> CallNode<'t> {
    const fn new(step: Option<&'t Step>) -> Self {
        Self {
            step,
            weight: 0,
            own: 0,
            children: Vec::new(),
        }
    }
}
