//! What a recorder asks of the kernel: `bpf(2)` and an assembler for its programs ([`bpf`]), `/proc`, CPUs, limits and privileges ([`host`]),
//! signals ([`signals`]), clocks ([`clocks`]), and processes that make calls that a kill must not interrupt ([`separate_process`]).
//!
//! It knows neither probes nor traces. Its interface is that of `usdtrec-record`'s parts, and follows them.

pub mod bpf;
pub mod clocks;
mod error;
pub mod host;
pub mod nop5;
pub mod separate_process;
pub mod signals;
pub mod trace_clock;

pub use crate::error::{BpfRefusal, ErrorMeaning, KernelOperation, in_brackets};
pub use error::{CpuListError, KernelError};
