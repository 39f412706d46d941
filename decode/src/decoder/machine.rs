//! What a decoder knows of the recording machine and of the samples.

use usdtrec_format::perf::Attr;
use usdtrec_format::{Arch, Register};

/// What all operations of a decoder share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) big_endian: bool,
    /// Whether addresses have 32 bits whatever the sample's ABI is.
    pub(super) narrow: bool,
    /// Place of the stack pointer among the registers sampled.
    pub(super) stack_pointer: Option<usize>,
    pub(super) stack_pointer_name: &'static str,
    /// Registers sampled.
    pub(super) registers: usize,
    /// Bytes of stack asked for at each hit.
    pub(super) stack: u32,
    /// Bytes below the stack pointer that a leaf function may use without moving it.
    pub(super) red_zone: u64,
}

impl Machine {
    pub(super) fn new(arch: Option<Arch>, attr: &Attr) -> Self {
        let mask = attr.sample_regs_user;
        Self {
            big_endian: arch.is_some_and(Arch::is_big_endian),
            narrow: arch.is_some_and(|arch| arch.pointer_size() == 4),
            stack_pointer: arch.and_then(|arch| place(arch, arch.stack_pointer(), mask)),
            stack_pointer_name: arch.map_or("sp", |arch| arch.register_name(arch.stack_pointer())),
            registers: mask.count_ones() as usize,
            stack: attr.sample_stack_user,
            red_zone: arch.map_or(0, Arch::red_zone),
        }
    }
}

/// Place of a register among those that `mask` samples, which stand in ascending bit order; `None` if
/// perf cannot sample it or the mask leaves it out.
pub(super) fn place(arch: Arch, register: Register, mask: u64) -> Option<usize> {
    let bit = 1u64.checked_shl(u32::from(arch.perf_register(register)?))?;
    (mask & bit != 0).then(|| (mask & (bit - 1)).count_ones() as usize)
}
