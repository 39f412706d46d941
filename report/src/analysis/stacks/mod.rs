//! `report -g`, `report --folded`, `flame`: hits, values or times by stack.

pub(crate) mod call_facts;
pub(crate) mod compare;
pub(crate) mod diff_tree;
mod files;
pub(crate) mod names;
pub(crate) mod path;
pub(crate) mod sliced;
pub(crate) mod tree;
pub(crate) mod unnamed;
pub(crate) mod weigh;
pub(crate) mod weighed;
