//! File formats: SDT notes and their operands, decoded values, schemas, and trace files in perf.data format. Apart from reading and writing
//! files, nothing here makes system calls or needs privileges.
//!
//! How an argument is processed: a [`Note`] in an ELF file becomes a [`Site`] of a [`Probe`]. The [`Operand`]s of the site describe the
//! locations of its arguments. [`Definitions`] store them in the trace file. A decoder computes [`Value`]s from the operands and a sample.
//!
//! | what for | modules and items | feature |
//! |---|---|---|
//! | notes and operands | [`notes`], [`parse_operands`], [`Operand`], [`Arch`] | |
//! | trace files | [`trace`], [`perf`], [`Definitions`], [`raw`] | `zstd` for the C library |
//! | patterns and messages | [`Pattern`], [`escape`] | |
//! | expressions over arguments | `expr` | `expressions` |
//! | schema files and the built-in set | [`schema`] | `schemas` |
//! | which probes begin and end spans | [`spans`] | |

#![forbid(unsafe_code)]

/// Declares an enum, and `ALL` with its variants in their order.
#[macro_export]
macro_rules! listed {
    ($(#[$about:meta])* $visible:vis enum $name:ident { $($(#[$of_one:meta])* $one:ident,)* }) => {
        $(#[$about])*
        $visible enum $name {
            $($(#[$of_one])* $one,)*
        }

        impl $name {
            /// All of them, in their order.
            $visible const ALL: [Self; [$(Self::$one),*].len()] = [$(Self::$one),*];
        }
    };
}

mod arch;
mod btf;
mod build_id;
mod code_names;
pub mod control_group;
mod cpu_list;
mod debug_files;
mod definitions;
pub mod escape;
#[cfg(feature = "expressions")]
pub mod expr;
mod grammar;
#[cfg(feature = "expressions")]
mod lexer;
mod note;
mod number_bucket;
mod operand;
mod pattern;
pub mod perf;
mod probe;
pub mod raw;
pub mod scaled;
pub mod schema;
pub mod spans;
mod thread_context;
mod thread_waits;
mod time_parts;
pub mod trace;
mod value;

pub use arch::{Arch, Register, Uprobes};
pub use btf::{Btf, KernelFunction};
pub use build_id::{BuildId, BuildIdError, BuildIdPrefix};
pub use code_names::{
    CodeNames, FileCode, KnownSymbols, LinedFrame, LinedPlace, MadeCode, NamedPlace, StringInFile,
    TimedPlace,
};
pub use cpu_list::parse_cpu_list;
pub use debug_files::{
    debug_file_by_build_id, debug_files_by_link, split_debug_files, split_debug_package,
};
pub use definitions::{
    CapturePlan, CodePlace, Definitions, FileDefinition, FunctionPlace, ProbeDefinition,
    ShownArgument, SiteDefinition, SourceLine,
};
pub use grammar::{parse_operands, split_operands};
pub use note::{Note, NoteError, NoteLayout, notes};
pub use number_bucket::{NumberBucket, NumberEnds};
pub use operand::{
    Constant, Extend, IndexedAddress, JsonOperand, Location, Operand, OperandError,
    OperandErrorKind, Relocation,
};
pub use pattern::{Pattern, PatternError, split_patterns};
pub use probe::{Binary, Probe, Site};
pub use raw::{RawArgument, RawField, RawLayout, RawLength, RawString, StringStatus};
pub use scaled::{clock_seconds, counted, plural_ending};
pub use thread_context::{ContextStatus, HexId, NoContext, ThreadContext};
pub use thread_waits::ThreadWaits;
pub use time_parts::{
    HitWaits, LeastParts, NoTimeParts, NoWaits, TimePart, TimePartSpec, TimeParts,
};
pub use value::{IntegerBits, Missing, StringAt, Value};
