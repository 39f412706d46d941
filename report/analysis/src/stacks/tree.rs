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
        tree.sort();
        tree
    }

    fn weigh(&mut self, at: usize, weight: u64) {
        if let Some(node) = self.nodes.get_mut(at) {
            node.weight = node.weight.saturating_add(weight);
        }
    }

    /// Sorts children by their weights, equals by their names.
    fn sort(&mut self) {
        for at in 0..self.nodes.len() {
            let node = self.nodes.get_mut(at);
            let mut children =
                node.map_or_else(Vec::new, |node| std::mem::take(&mut node.children));
            children.sort_by_cached_key(|&child| {
                let child = self.nodes.get(child);
                let weight = child.map_or(0, |child| child.weight);
                let name = child.and_then(|child| child.step).map(Step::order);
                (Reverse(weight), name)
            });
            if let Some(node) = self.nodes.get_mut(at) {
                node.children = children;
            }
        }
    }

    /// A node.
    pub fn node(&self, at: usize) -> Option<&CallNode<'t>> {
        self.nodes.get(at)
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
