//! The process, the thread and the user of a hit.
//!
//! Where the kernel lets programs load them from the task by its type, they do: the two calls that give the ids and the user take
//! three times as long. Only the current task changes its credentials, so they stay while its program runs.
//!
//! The user is loaded in a function, which the verifier checks once: for a load through the address of the credentials it searches the types
//! of the whole kernel by name (`btf_find_by_name_kind`), each time that it comes there.

use usdtrec_kernel::bpf::insn::{Helper, Op, Reg, Width};

use super::builder::Program;
use super::sample_record::{PROCESS, THREAD, USER};

impl Program<'_> {
    /// Writes the process, the thread, and the user plus 1.
    pub(super) fn ids(&mut self) {
        let asm = &mut self.asm;
        match self.common.id_members {
            Some(members) => {
                asm.call(Helper::CurrentTaskBtf);
                asm.load(Width::Word, Reg::R1, Reg::R0, members.process);
                asm.store(Width::Word, Reg::R7, PROCESS as i16, Reg::R1);
                asm.load(Width::Word, Reg::R1, Reg::R0, members.thread);
                asm.store(Width::Word, Reg::R7, THREAD as i16, Reg::R1);
                let user = *self.user_function.get_or_insert_with(|| asm.label());
                asm.call_function(user);
            }
            None => {
                asm.thread_and_process();
                asm.store(Width::Word, Reg::R7, THREAD as i16, Reg::R0);
                asm.op_value(Op::ShiftRight, Reg::R0, 32);
                asm.store(Width::Word, Reg::R7, PROCESS as i16, Reg::R0);
                asm.call(Helper::UidGid);
            }
        }
        asm.op_value(Op::Add, Reg::R0, 1);
        asm.store(Width::Word, Reg::R7, USER as i16, Reg::R0);
    }

    /// Writes the function that gives the user, if it is called.
    pub(super) fn write_user_function(&mut self) {
        if let (Some(function), Some(members)) = (self.user_function, self.common.id_members) {
            members.user_function(&mut self.asm, function);
        }
    }
}
