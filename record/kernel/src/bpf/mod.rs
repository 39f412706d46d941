//! BPF programs: [`sys`] is `bpf(2)`, [`insn`] assembles programs, [`features`] finds what the running kernel has, [`rings`] reads what programs
//! write.

pub mod features;
pub mod insn;
pub mod preemption;
pub mod rings;
pub mod sys;
