//! The beginning of a program: returns unless the hit is recorded.

use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::control;
use super::builder::Program;
use super::cookie::Cookie;
use super::recorded_processes::{LINKED, RecordedProcesses};
use super::slots::{COOKIE, IDS, KEY};
use super::spec::CpuRange;

impl Program<'_> {
    /// Returns if recording has ended.
    pub(super) fn is_enabled(&mut self, out: Label) {
        let asm = &mut self.asm;
        asm.load_control(control::ENABLED);
        asm.jump_if(If::Equal, Reg::R1, 0, out);
    }

    /// Returns if recording has ended, or if the CPU, process or thread is not recorded.
    pub(super) fn entry_check(&mut self, out: Label) {
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
        if let Some(namespace) = self.common.namespace {
            namespace.use_ids(&mut self.asm, IDS, out);
        }
        self.is_chosen(out);
        if self.common.recorded == RecordedProcesses::All {
            return;
        }
        if self.common.recorded == RecordedProcesses::Apart {
            self.keep_cookie();
        }
        let asm = &mut self.asm;
        asm.thread_and_process();
        if self.common.recorded != RecordedProcesses::Threads {
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
        }
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
        if self.common.recorded == RecordedProcesses::Apart {
            self.is_own_link(out);
        }
    }

    /// Returns if the process, whose value in the map is at `R0`, has links of its own and this is one for all processes, or the reverse.
    fn is_own_link(&mut self, out: Label) {
        let asm = &mut self.asm;
        let (unlinked, recorded) = (asm.label(), asm.label());
        asm.load(Width::Double, Reg::R2, Reg::R10, COOKIE);
        asm.op_value(Op::And, Reg::R2, Cookie::EVERYWHERE);
        asm.load(Width::Word, Reg::R1, Reg::R0, 0);
        asm.jump_if(If::NotEqual, Reg::R1, LINKED.cast_signed(), unlinked);
        asm.jump_if(If::NotEqual, Reg::R2, 0, out);
        asm.jump(recorded);
        asm.place(unlinked);
        asm.jump_if(If::Equal, Reg::R2, 0, out);
        asm.place(recorded);
    }
}
