//! The beginning of a program: returns unless the hit is recorded.
//!
//! Where the kernel lets programs load the process, the thread and the user of a hit from the task by its type, they do: the two calls that give the ids and the user take
//! three times as long. Only the current task changes its credentials, so they stay while its program runs.
//!
//! The user is loaded in a function, which the verifier checks once: for a load through the address of the credentials it searches the types
//! of the whole kernel by name (`btf_find_by_name_kind`), each time that it comes there.

use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::contract::{Cookie, LINKED, RecordedProcesses};
use super::super::contract::{PROCESS, THREAD, USER};
use super::super::control;
use super::super::slots::{COOKIE, IDS, KEY, WORD};
use super::builder::Program;
use super::spec::CpuRange;
use crate::chosen::ControlGroup;

impl Program<'_> {
    /// Returns if recording has ended.
    pub(super) fn is_enabled(&mut self, out: Label) {
        let asm = &mut self.asm;
        // if (!Control[ENABLED]) goto out;
        asm.load_control(control::ENABLED);
        asm.jump_if(If::Equal, Reg::R1, 0, out);
    }

    /// Returns if recording has ended, or if the CPU, process or thread is not recorded.
    pub(super) fn entry_check(&mut self, out: Label) {
        self.is_enabled(out);
        let asm = &mut self.asm;
        if let Some(cpus) = &self.common.cpus {
            let counts = asm.label();
            // cpu = bpf_get_smp_processor_id(); if (none of cpus has first <= cpu && cpu <= last) goto out;
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
        // KEY = recorded == Threads ? (u32)bpf_get_current_pid_tgid() : bpf_get_current_pid_tgid() >> 32;
        asm.thread_and_process();
        if self.common.recorded != RecordedProcesses::Threads {
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
        }
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        // tracked = bpf_map_lookup_elem(&Tracked, &KEY); if (!tracked) goto out;
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
        // if ((*tracked == LINKED) == ((COOKIE & EVERYWHERE) != 0)) goto out;
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

impl Program<'_> {
    /// Writes the process, the thread, and the user plus 1.
    pub(super) fn ids(&mut self) {
        let asm = &mut self.asm;
        match self.common.id_members {
            Some(members) => {
                // task = bpf_get_current_task_btf(); record->pid = task->tgid; record->tid = task->pid;
                asm.call(Helper::CurrentTaskBtf);
                asm.load(Width::Word, Reg::R1, Reg::R0, members.process);
                asm.store(Width::Word, Reg::R7, PROCESS as i16, Reg::R1);
                asm.load(Width::Word, Reg::R1, Reg::R0, members.thread);
                asm.store(Width::Word, Reg::R7, THREAD as i16, Reg::R1);
                // uid = bpf_get_current_task_btf()->cred->uid;
                let user = *self.user_function.get_or_insert_with(|| asm.label());
                asm.call_function(user);
            }
            None => {
                // ids = bpf_get_current_pid_tgid(); record->tid = (u32)ids; record->pid = ids >> 32;
                asm.thread_and_process();
                asm.store(Width::Word, Reg::R7, THREAD as i16, Reg::R0);
                asm.op_value(Op::ShiftRight, Reg::R0, 32);
                asm.store(Width::Word, Reg::R7, PROCESS as i16, Reg::R0);
                // uid = bpf_get_current_uid_gid();
                asm.call(Helper::UidGid);
            }
        }
        // record->user = (u32)uid + 1;
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

impl Program<'_> {
    /// Returns if the process is not chosen.
    pub(super) fn is_chosen(&mut self, out: Label) {
        self.runs_executable(out);
        if self.common.in_groups {
            self.is_in_group(out);
        }
    }

    /// Returns if the process executes another program.
    fn runs_executable(&mut self, out: Label) {
        let Some(members) = self.common.executables else {
            return;
        };
        let asm = &mut self.asm;
        // inode = bpf_get_current_task_btf()->mm->exe_file->f_inode; /* a null pointer: goto out */
        asm.call(Helper::CurrentTaskBtf);
        for offset in [members.mm, members.exe_file, members.inode] {
            asm.follow(Reg::R0, offset, out);
        }
        // WORD = (u64)inode; if (!bpf_map_lookup_elem(&Executables, &WORD)) goto out;
        asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
        asm.call_map(Helper::MapLookup, Map::Executables, WORD);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
    }

    /// Returns if neither the control group of the process nor one above it is in the map.
    fn is_in_group(&mut self, out: Label) {
        let asm = &mut self.asm;
        let chosen = asm.label();
        for level in 1..=ControlGroup::MAX_DEPTH {
            // WORD = bpf_get_current_ancestor_cgroup_id(level); if (!WORD) goto out;
            asm.set(Reg::R1, level as i64);
            asm.call(Helper::AncestorCgroupId);
            // The group is of a level above.
            asm.jump_if(If::Equal, Reg::R0, 0, out);
            asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
            // if (bpf_map_lookup_elem(&Groups, &WORD)) goto chosen;
            asm.call_map(Helper::MapLookup, Map::Groups, WORD);
            asm.jump_if(If::NotEqual, Reg::R0, 0, chosen);
        }
        asm.jump(out);
        asm.place(chosen);
    }
}
