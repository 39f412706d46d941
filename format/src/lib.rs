//! What is in files and notes: SDT notes, their operands, values, and the trace file (a perf.data
//! container). No system calls and no privileges are needed for anything here, but for opening files.
//!
//! The way of one argument: a [`Note`] in an ELF file becomes a [`Site`] of a [`Probe`]; its
//! [`Operand`]s say where the arguments live; [`Definitions`] carry them in the trace file; a
//! decoder turns them and a sample into [`Value`]s.

mod arch;
mod build_id;
mod definitions;
pub mod escape;
pub mod expr;
mod grammar;
mod lexer;
mod note;
mod operand;
mod pattern;
pub mod perf;
mod probe;
pub mod raw;
pub mod schema;
pub mod trace;
mod value;

pub use arch::{Arch, Register};
pub use build_id::{BuildId, BuildIdError};
pub use definitions::{CapturePlan, Definitions, FileDefinition, ProbeDefinition, SiteDefinition};
pub use grammar::{parse_operands, split_operands};
pub use note::{Note, NoteError, NoteLayout, notes};
pub use operand::{Constant, Extend, IndexedAddress, JsonOperand, Location, Operand, Relocation};
pub use pattern::{Pattern, PatternError, split_patterns};
pub use probe::{Binary, Probe, Site};
pub use raw::{RawArgument, RawField, RawLayout, RawLength, RawString, StringStatus};
pub use value::{Missing, StringAt, Value};
