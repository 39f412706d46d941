//! How the callers of a hit are recorded.

use std::num::NonZeroU32;

use usdtrec_format::perf::{Attr, SampleType};
use usdtrec_format::{Arch, CapturePlan, Register};
use usdtrec_unwind::column;

/// How the callers of a hit are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallGraph {
    /// How they are found.
    pub method: CallGraphMethod,
    /// Maximum number of frames of a hit, its own one included, 1 to [`MAX_FRAMES`](Self::MAX_FRAMES).
    pub frames: u16,
    /// Maximum number of stacks that a thread takes in a second at a site; `None` for all. Hits beyond it are recorded without a stack, and
    /// say so.
    pub rate: Option<NonZeroU32>,
}

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraphMethod {
    /// By frame pointers, at the hit.
    FramePointers,
    /// From a copy of the registers and of the stack, by unwind tables.
    Copy {
        /// Bytes of stack from the stack pointer upwards: a multiple of 8, at most [`CallGraph::MAX_BYTES`].
        bytes: u32,
    },
    /// The same, with as many bytes as the stacks of the site need: 512 to 16384, and 16384 at first. Perf events have 2048 always.
    CopyNeeded,
}

impl CallGraphMethod {
    /// Bytes of stack that are copied if it is not measured how many are needed; `None` without copies.
    pub const fn copied(self) -> Option<u32> {
        match self {
            Self::FramePointers => None,
            Self::Copy { bytes } => Some(bytes),
            Self::CopyNeeded => Some(USUAL_COPY),
        }
    }
}

/// Bytes of stack that are copied if it is not measured how many are needed, and at first while a ring is crowded.
const USUAL_COPY: u32 = 2 << 10;
/// Bytes of the copies among which is chosen: each is twice the one before.
const COPIES: [u32; 6] = [512, 1024, USUAL_COPY, 4096, 8192, 16384];
/// Frames for which there is room, among which is chosen, below the maximum. The stack is read to this room in pieces, so a smaller one would
/// need more reads.
const CHAINS: [u16; 2] = [64, 128];

/// Sizes of stacks among which the programs of a site choose, ascending, and at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSizes {
    /// Bytes of a copy, or frames of a chain.
    pub all: Vec<u32>,
    /// Index of the size to begin with, while a ring is crowded: it is the last one else.
    pub usual: usize,
}

impl CallGraph {
    /// Maximum number of frames if no other is requested: perf's `PERF_MAX_STACK_DEPTH`.
    pub const USUAL_FRAMES: u16 = 127;
    /// Maximum number of frames.
    pub const MAX_FRAMES: u16 = 1024;
    /// Maximum number of bytes of stack that are copied.
    pub const MAX_BYTES: u32 = 32 << 10;

    /// Changes the attr of an event of programs for `arch` to that of samples with what the callers are found from.
    pub fn sample(self, arch: Arch, attr: &mut Attr) {
        attr.sample_type = attr.sample_type | SampleType::CALLCHAIN;
        if let Some(bytes) = self.method.copied() {
            attr.sample_type = attr.sample_type | SampleType::REGS_USER | SampleType::STACK_USER;
            attr.sample_regs_user |= mask(arch);
            attr.sample_stack_user = attr.sample_stack_user.max(bytes);
            attr.flags |= Attr::EXCLUDE_CALLCHAIN_USER;
        } else {
            // So readers know that a chain which nothing cut ended where a frame pointer was 0.
            attr.sample_max_stack = self.frames;
        }
    }

    /// Whether the copies of stacks are written for sites with this plan, instead of the callers: perf events copied arguments, too.
    pub const fn keeps_copy(self, plan: &CapturePlan) -> bool {
        self.unwinds() && plan.raw.is_none() && plan.stack != 0
    }

    /// Whether the recorder unwinds copies of stacks, and writes the callers.
    pub const fn unwinds(self) -> bool {
        self.method.copied().is_some()
    }

    /// The sizes among which programs choose.
    pub fn sizes(self) -> StackSizes {
        match self.method {
            CallGraphMethod::CopyNeeded => StackSizes {
                all: COPIES.to_vec(),
                usual: COPIES.iter().filter(|bytes| **bytes < USUAL_COPY).count(),
            },
            CallGraphMethod::FramePointers => {
                let shorter = CHAINS.iter().filter(|frames| **frames < self.frames);
                let all: Vec<u32> = shorter
                    .chain([&self.frames])
                    .copied()
                    .map(u32::from)
                    .collect();
                let usual = all.len() - 1;
                StackSizes { all, usual }
            }
            CallGraphMethod::Copy { bytes } => StackSizes {
                all: vec![bytes],
                usual: 0,
            },
        }
    }
}

/// The registers that stacks are unwound with, in the order of perf's numbers; empty if stacks of the architecture are not unwound.
pub fn registers(arch: Arch) -> Vec<Register> {
    let all = (0..=u8::MAX).map(Register);
    let mut known: Vec<(u8, Register)> = all
        .filter(|register| column(arch, *register).is_some())
        .filter_map(|register| Some((arch.perf_register(register)?, register)))
        .filter(|(bit, register)| *bit < 64 && arch.pt_regs_offset(*register).is_some())
        .collect();
    known.sort_unstable_by_key(|(bit, _)| *bit);
    known.into_iter().map(|(_, register)| register).collect()
}

/// These registers as the bits of perf's numbers.
pub fn mask(arch: Arch) -> u64 {
    let bits = registers(arch)
        .into_iter()
        .filter_map(|register| arch.perf_register(register));
    bits.fold(0, |mask, bit| mask | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_general_registers_are_copied() {
        // ax to ip, and r8 to r15; x0 to x30, the stack pointer, the program counter.
        assert_eq!(mask(Arch::X86_64), 0xff_01ff);
        assert_eq!(mask(Arch::Aarch64), 0x1_ffff_ffff);
        assert_eq!(mask(Arch::I386), 0);
        for arch in [Arch::X86_64, Arch::Aarch64] {
            assert_eq!(registers(arch).len(), mask(arch).count_ones() as usize);
        }
    }
}
