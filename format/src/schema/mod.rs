//! Schemas: names, types and meanings of probe arguments, which notes do not have.
//!
//! An [`Argument`] is what is known of an argument; a trace stores it for each probe ([`Definitions`](crate::definitions::Definitions)).
//! [`telemetry`] is what a span that begins or ends at a probe is in OpenTelemetry.
//!
//! With the feature `schemas`, arguments are read from TOML files (`toml`), DTrace provider files (`dtrace`), and a built-in set
//! (`bundled`), and `Schemas::choose` chooses the schema of a probe.

mod argument;
#[cfg(feature = "schemas")]
mod catalog;
mod kind;
mod name_parts;
mod script_call;
pub mod telemetry;
mod unit;

pub use argument::{Argument, Labels, Words};
#[cfg(feature = "schemas")]
pub use catalog::{
    Choice, Description, Disagreement, Language, Misfit, Parsed, ProbeSchema, Problem,
    SchemaFileError, Schemas, SourcedSchema, bundled, conflict, dtrace, read_file, read_open_file,
    toml,
};
pub use kind::{ArgumentType, ArgumentTypeError, Length};
pub use name_parts::{NamePart, name_parts};
pub use script_call::{LockAction, LockUse, ScriptCall};
pub use unit::Unit;
