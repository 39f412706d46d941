//! What is captured at a site: by programs values (`capture`, `layout`), by perf events user registers and a part of the stack.
//!
//! Operands in registers need those registers. Operands in memory need their address registers, the stack pointer, and the bytes of the
//! stack up to the operand. Memory outside the stack cannot be captured this way; the decoder reports it as missing.

pub mod call_graph;
pub(super) mod capture;
pub(super) mod condition;
pub(super) mod frame;
pub(super) mod held_addresses;
pub(super) mod layout;
pub(super) mod read;
pub(super) mod symbols;

use usdtrec_format::{Arch, CapturePlan, IndexedAddress, Location, Operand, Register};

use crate::select::probe::PlannedSite;

pub use self::condition::ConditionError;
pub use self::frame::{Frame, Frames, RegisterOffset, ReturnAddress};
pub use self::layout::Strings;

/// Maximum number of stack bytes that are copied for an operand at a pointer that may point to the stack.
const POINTER_STACK: u32 = 1024;

/// Largest `sample_stack_user` that fits a record (a u16 size, in words, with room for everything else).
const MAX_STACK: u32 = 65_536 - 1024;

/// The plan of one site.
///
/// `needed` says of each operand whether it is captured; `None` for all. `frames` has the depth of the stack at the site; `unknown_depth` is
/// the number of bytes to copy for operands whose depth is unknown.
#[must_use]
pub fn plan(
    site: &PlannedSite,
    arch: Option<Arch>,
    needed: Option<&[bool]>,
    frames: &Frames,
    unknown_depth: u32,
) -> CapturePlan {
    let Some(arch) = arch else {
        return CapturePlan::default();
    };
    let mut needs = Needs {
        arch,
        pc: site.site.pc,
        frames,
        frame: None,
        unknown_depth: unknown_depth.min(MAX_STACK),
        registers: 0,
        stack: 0,
    };
    let is_needed = |place: usize| needed.is_none_or(|needed| needed.get(place) == Some(&true));
    for (place, operand) in site.operands.iter().enumerate() {
        if is_needed(place) {
            needs.add(operand);
        }
    }
    CapturePlan {
        registers: needs.registers,
        stack: needs.stack.next_multiple_of(8),
        raw: None,
        user: false,
    }
}

/// The plan of the operands so far.
struct Needs<'a> {
    arch: Arch,
    pc: u64,
    frames: &'a Frames,
    /// The frame at the site, computed on first use.
    frame: Option<Frame>,
    unknown_depth: u32,
    registers: u64,
    stack: u32,
}

impl Needs<'_> {
    fn add(&mut self, operand: &Operand) {
        match &operand.location {
            Location::Register { register, .. } => {
                self.register(*register);
            }
            Location::RegisterDeref { register, offset } => {
                self.memory(*register, *offset, operand.bytes(self.arch), false);
            }
            Location::Indexed(IndexedAddress {
                register,
                index,
                offset,
                ..
            }) => {
                self.register(*index);
                if let Some(register) = register {
                    self.memory(*register, *offset, operand.bytes(self.arch), true);
                }
            }
            // Constants need no capture; symbols, segments and operands that were not parsed cannot be captured.
            _ => {}
        }
    }

    /// Asks for a register; `false` if perf cannot sample it.
    fn register(&mut self, register: Register) -> bool {
        let bit = self.arch.perf_register(register);
        self.registers |= bit.map_or(0, |bit| 1 << bit);
        bit.is_some()
    }

    /// Adds `size` bytes of memory at `register + offset`, or anywhere from there on if `indexed`.
    fn memory(&mut self, register: Register, offset: i64, size: u8, indexed: bool) {
        if !self.register(register) || !self.register(self.arch.stack_pointer()) {
            return;
        }
        let end = offset.saturating_add(size.into());
        let bytes = if register == self.arch.stack_pointer() {
            if indexed {
                Some(i64::from(self.whole_frame()))
            } else {
                Some(end)
            }
        } else if Some(register) == self.arch.frame_pointer() && self.frame().may_be_frame_pointer {
            let depth = self.frame().depth;
            let above = if indexed { end.max(0) } else { end };
            depth.map(|depth| i64::from(depth).saturating_add(above))
        } else {
            Some(self.whole_frame().min(POINTER_STACK).into())
        };
        let bytes = bytes.unwrap_or(self.unknown_depth.into());
        // Memory that does not fit into a sample does not enlarge it.
        if let Ok(bytes) = u32::try_from(bytes)
            && bytes <= MAX_STACK
        {
            self.stack = self.stack.max(bytes);
        }
    }

    /// Number of bytes from the stack pointer to the end of the function's frame, if known.
    fn whole_frame(&mut self) -> u32 {
        self.frame()
            .depth
            .unwrap_or(self.unknown_depth)
            .min(MAX_STACK)
    }

    fn frame(&mut self) -> Frame {
        let (frames, pc) = (self.frames, self.pc);
        *self.frame.get_or_insert_with(|| frames.at(pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(args: &str, arch: Arch) -> CapturePlan {
        let site = usdtrec_format::Site {
            pc: 0,
            base: 0,
            semaphore: 0,
            offset: Some(0),
            semaphore_offset: None,
            args: args.to_owned(),
        };
        let site = PlannedSite::new(site, Some(arch));
        plan(&site, Some(arch), None, &Frames::unknown(), 8192)
    }

    #[test]
    fn constants_need_nothing() {
        assert_eq!(plan_of("-4@$5 8@$0", Arch::X86_64), CapturePlan::default());
    }

    #[test]
    fn registers_need_their_bits_only() {
        // x86: bits AX BX CX DX SI DI BP SP = 0..7 (arch/x86/include/uapi/asm/perf_regs.h).
        assert_eq!(
            plan_of("4@%esi 1@%ah", Arch::X86_64),
            CapturePlan {
                registers: 1 << 4 | 1,
                stack: 0,
                raw: None,
                user: false,
            }
        );
    }

    #[test]
    fn stack_words_need_the_stack_up_to_their_end() {
        assert_eq!(
            plan_of("8@160(%rsp) -4@12(%rsp)", Arch::X86_64),
            CapturePlan {
                registers: 1 << 7,
                stack: 168,
                raw: None,
                user: false,
            }
        );
        assert_eq!(
            plan_of("4@9(%esp)", Arch::I386),
            CapturePlan {
                registers: 1 << 7,
                stack: 16,
                raw: None,
                user: false,
            }
        );
    }

    #[test]
    fn what_no_sample_can_hold_costs_nothing() {
        assert_eq!(plan_of("8@70000(%rsp) 8@16(%rsp)", Arch::X86_64).stack, 24);
    }

    #[test]
    fn what_perf_cannot_sample_costs_nothing() {
        assert_eq!(
            plan_of("8f@%xmm0 4@sym(%rip) -4@-12(%rsp)", Arch::X86_64),
            CapturePlan {
                registers: 1 << 7,
                stack: 0,
                raw: None,
                user: false,
            }
        );
    }

    #[test]
    fn pointers_copy_some_stack_in_case() {
        assert_eq!(plan_of("8@8(%rax)", Arch::X86_64).stack, POINTER_STACK);
    }
}
