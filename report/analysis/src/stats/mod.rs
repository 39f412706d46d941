//! Statistics in bounded memory, whose results depend neither on the order of what is added nor on the number of threads.

pub(crate) mod argument;
pub mod bursts;
pub(crate) mod coverage;
pub(crate) mod distribution;
pub(crate) mod exact_sum;
pub mod frequency;
pub(crate) mod heat;
pub mod keys;
pub(crate) mod log2;
pub mod number;
pub mod ratio;
pub(crate) mod reasons;
pub mod shape;
mod shape_lists;
pub mod sketch;
pub(crate) mod string_counts;
pub mod timeline;
