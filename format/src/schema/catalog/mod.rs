//! Schemas of probes: where they come from, and which one is used for a probe.

pub mod bundled;
mod choice;
mod conflict;
mod description;
pub mod dtrace;
mod file;
mod probe;
mod problem;
pub mod toml;

pub use choice::{Choice, Misfit, Schemas, SourcedSchema};
pub use conflict::conflict;
pub use description::{Description, Disagreement};
pub use file::{Language, SchemaFileError, read_file, read_open_file};
pub use probe::ProbeSchema;
pub use problem::{Parsed, Problem};
