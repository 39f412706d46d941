//! What a sample holds: the values of a probe's arguments, and whether an expression over them is true.
//!
//! A [`Decoder`] is compiled once for a site and decodes its samples; a [`Filter`] is an expression whose names were found among
//! the arguments of a probe. The report shows and chooses samples by both, and the recorder, where the kernel cannot choose.

mod decoder;
mod filter;

pub use decoder::{Decoder, RegisterWord, TracepointArgument};
pub use filter::{Filter, FilterError, Readable};
