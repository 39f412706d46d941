//! Stopping the process of a hit.

use usdtrec_kernel::bpf::insn::{Helper, If, Map, Reg, Width};
use usdtrec_kernel::bpf::preemption;

use super::super::control;
use super::builder::Program;
use super::slots::{KEY, WORD};

impl Program<'_> {
    /// Stops the process, unless stopping is disabled or the process is exempt.
    pub(super) fn stop_process(&mut self) {
        let asm = &mut self.asm;
        let ours = asm.label();
        asm.set_map_value(Reg::R1, Map::FirstControl, control::STOPPING);
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::Equal, Reg::R1, 0, ours);
        asm.store_process(KEY);
        asm.call_map(Helper::MapLookup, Map::Exempt, KEY);
        asm.jump_if(If::NotEqual, Reg::R0, 0, ours);
        // The signal is sent to this thread, which then stops its process: another thread may be waiting for a CPU. It is sent
        // before the map is updated, because a process in the map can be continued at any time. While preemption is disabled the kernel would
        // send it later (Linux 6.15).
        preemption::enable(asm, self.common.preemption);
        asm.set(Reg::R1, libc::SIGSTOP.into());
        asm.call(Helper::SendSignalThread);
        preemption::disable(asm, self.common.preemption);
        asm.store_process(KEY);
        // The time distinguishes the process from a later one with the same id.
        asm.call(Helper::BootNs);
        asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
        asm.update_map(Map::Stopped, KEY, WORD);
        asm.place(ours);
    }
}
