//! What a decoder knows of the recording machine and of the samples.

use usdtrec_format::perf::Attr;
use usdtrec_format::{Arch, Register};

/// Parameters of all operations of a decoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) big_endian: bool,
    /// Whether addresses have 32 bits, independent of the sample's ABI.
    pub(super) narrow: bool,
    /// Index of the stack pointer among the sampled registers.
    pub(super) stack_pointer: Option<usize>,
    pub(super) stack_pointer_name: &'static str,
    /// Number of sampled registers.
    pub(super) registers: usize,
    /// Requested size of the stack copy, bytes.
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
            stack_pointer: arch.and_then(|arch| sampled_index(arch, arch.stack_pointer(), mask)),
            stack_pointer_name: arch.map_or("sp", |arch| arch.register_name(arch.stack_pointer())),
            registers: mask.count_ones() as usize,
            stack: attr.sample_stack_user,
            red_zone: arch.map_or(0, Arch::red_zone),
        }
    }
}

/// Index of a register among those sampled by `mask`, which are in ascending bit order; `None` if
/// perf cannot sample it or it is not in the mask.
pub(super) fn sampled_index(arch: Arch, register: Register, mask: u64) -> Option<usize> {
    let bit = 1u64.checked_shl(u32::from(arch.perf_register(register)?))?;
    (mask & bit != 0).then(|| (mask & (bit - 1)).count_ones() as usize)
}
