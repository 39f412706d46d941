//! Statistics in bounded memory, whose results depend neither on the order of what is added nor on the number of threads.

pub(crate) mod argument;
pub(crate) mod bursts;
pub(crate) mod coverage;
pub(crate) mod distribution;
pub(crate) mod exact_sum;
pub(crate) mod frequency;
pub(crate) mod heat;
pub(crate) mod keys;
pub(crate) mod log2;
pub(crate) mod number;
pub(crate) mod ratio;
pub(crate) mod reasons;
pub(crate) mod shape;
pub(crate) mod sketch;
pub(crate) mod text_counts;
pub(crate) mod timeline;
