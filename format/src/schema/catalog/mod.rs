//! Schemas of probes: where they come from, and which one is used for a probe.

pub mod bundled;
mod choice;
mod conflict;
mod description;
pub mod dtrace;
mod file;
mod language;
mod note_name;
mod parsed;
mod probe;
mod problem;
pub mod toml;

pub use choice::{Choice, Misfit, Schemas, SourcedSchema};
pub use conflict::Conflict;
pub use description::{Description, Disagreement};
pub use file::{SchemaFileError, read_file, read_open_file};
pub use language::Language;
pub use parsed::Parsed;
pub use probe::ProbeSchema;
pub use problem::Problem;
