//! Our own schema files, in TOML.
//!
//! ```toml
//! # Of all probes below that name none themselves.
//! provider = "node"
//!
//! # Words for numbers, by a name of their own. Numbers may be written 0x10; of flags each is a bit or several.
//! [enum.gc_type]
//! 1 = "scavenge"
//! 2 = "mark_sweep_compact"
//!
//! [flags.open]
//! 0x1 = "write"
//! 0x40 = "create"
//!
//! [[probe]]
//! name = "gc__start"                # as in the note; gc-start is the same
//! description = "a collection begins"
//! arguments = [
//!     "type: s32 enum(gc_type)",    # NAME: TYPE [UNIT] [enum(WORDS)|flags(WORDS)] [; DESCRIPTION]
//!     "pause: u64 ns; since the last one",
//!     "isolate",                    # a name alone leaves the type to the note
//!     "_: ptr",                     # a type alone; the name is that of its place, arg4
//!     { name = "mode", type = "u32", flags = { 1 = "full", 2 = "forced" }, unit = "bits", description = "how" },
//! ]
//! more = true                       # further arguments may follow
//! ```
//!
//! A program's versions may differ in a probe's arguments: then it has several entries, and the one with the number
//! of arguments that the note has is taken. For types see [`ArgumentType`](super::ArgumentType), for units
//! [`Unit`](super::Unit); an enum or flags without a type is an integer as the note has it.

mod read;
mod shorthand;
mod write;

pub use self::read::parse;
pub use self::write::write;
