//! The beginning of a program: returns unless the hit is recorded.

use super::super::control;
use super::super::insn::{Helper, If, Label, Map, Op, Reg, Width};
use super::builder::Program;
use super::slots::KEY;
use super::spec::CpuRange;
use super::who::{LINKED, Who};

impl Program<'_> {
    /// Returns if recording has ended.
    pub(super) fn is_enabled(&mut self, out: Label) {
        let asm = &mut self.asm;
        asm.set_map_value(Reg::R1, Map::Control, control::ENABLED);
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::Equal, Reg::R1, 0, out);
    }

    /// Returns if recording has ended, or if the CPU, process or thread is not recorded.
    pub(super) fn gate(&mut self, out: Label) {
        self.is_enabled(out);
        let asm = &mut self.asm;
        if let Some(cpus) = &self.common.cpus {
            let counts = asm.label();
            asm.call(Helper::CpuId);
            for &CpuRange { first, last } in cpus {
                let beyond = asm.label();
                asm.jump_if(If::Below, Reg::R0, first.cast_signed(), beyond);
                asm.jump_if(
                    If::Below,
                    Reg::R0,
                    last.cast_signed().saturating_add(1),
                    counts,
                );
                asm.place(beyond);
            }
            asm.jump(out);
            asm.place(counts);
        }
        if self.common.who == Who::All {
            return;
        }
        asm.call(Helper::PidTgid);
        if self.common.who != Who::Threads {
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
        }
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
        let leaves = match self.common.who {
            Who::All | Who::Processes | Who::Threads => return,
            Who::Linked => If::NotEqual,
            Who::Unlinked => If::Equal,
        };
        asm.load(Width::Word, Reg::R1, Reg::R0, 0);
        asm.jump_if(leaves, Reg::R1, LINKED.cast_signed(), out);
    }
}
