//! Schemas: names, types and meanings of probe arguments, which notes do not have.
//!
//! An [`Argument`] is what is known of an argument; a trace stores it for each probe ([`Definitions`](crate::Definitions)).
//!
//! With the feature `schemas`, arguments are read from TOML files (`toml`), DTrace provider files (`dtrace`), SystemTap tapsets
//! (`tapset`), and a built-in set (`bundled`), and `Schemas::choose` chooses the schema of a probe.

mod argument;
#[cfg(feature = "schemas")]
pub mod bundled;
#[cfg(feature = "schemas")]
mod choice;
#[cfg(feature = "schemas")]
mod conflict;
#[cfg(feature = "schemas")]
mod description;
#[cfg(feature = "schemas")]
pub mod dtrace;
mod kind;
mod labels;
#[cfg(feature = "schemas")]
mod language;
#[cfg(feature = "schemas")]
mod parsed;
#[cfg(feature = "schemas")]
mod probe;
#[cfg(feature = "schemas")]
mod problem;
#[cfg(feature = "schemas")]
pub mod tapset;
#[cfg(feature = "schemas")]
pub mod toml;
mod unit;
mod words;

pub use argument::Argument;
#[cfg(feature = "schemas")]
pub use choice::{Choice, Misfit, Schemas};
#[cfg(feature = "schemas")]
pub use conflict::Conflict;
#[cfg(feature = "schemas")]
pub use description::{Description, Disagreement};
pub use kind::{ArgumentType, ArgumentTypeError, Length};
pub use labels::{Labels, Words};
#[cfg(feature = "schemas")]
pub use language::Language;
#[cfg(feature = "schemas")]
pub use parsed::{Hints, Parsed};
#[cfg(feature = "schemas")]
pub use probe::ProbeSchema;
#[cfg(feature = "schemas")]
pub use problem::Problem;
pub use unit::Unit;
