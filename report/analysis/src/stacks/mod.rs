//! `report -g`, `export --to folded`, `flame`: hits, values or times by stack.

pub mod call_facts;
pub mod compare;
pub mod diff_tree;
pub mod names;
pub mod path;
pub(crate) mod sliced;
pub mod tree;
pub mod unnamed_frames;
pub(crate) mod weigh;
pub mod weighed;
