//! Decoding of samples: the values of a probe's arguments, and filters over them.
//!
//! A [`Decoder`] is compiled once for a site and decodes its samples. A [`Filter`] is an expression whose names are bound to
//! the arguments of a probe. The report uses both, and so does the recorder for filters that the kernel cannot evaluate.

#![forbid(unsafe_code)]

mod decoder;
mod filter;
mod sample_field;

pub use decoder::{
    Decoder, IntegerShape, NumberSource, RawInteger, StringEvidence, TracepointArgument,
    TracepointDecoder, UnreadString,
};
pub use filter::{Filter, FilterError, Readable};
pub use sample_field::{SampleField, SampleStrings};
