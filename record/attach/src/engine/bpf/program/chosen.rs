//! Whether the process of a hit is one of those that are chosen by control group or program.

use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Reg, Width};

use super::builder::Program;
use super::slots::WORD;
use crate::chosen::ControlGroup;

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
        asm.call(Helper::CurrentTaskBtf);
        for offset in [members.mm, members.exe_file, members.inode] {
            asm.follow(Reg::R0, offset, out);
        }
        asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
        asm.call_map(Helper::MapLookup, Map::Executables, WORD);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
    }

    /// Returns if neither the control group of the process nor one above it is in the map.
    fn is_in_group(&mut self, out: Label) {
        let asm = &mut self.asm;
        let chosen = asm.label();
        for level in 1..=ControlGroup::MAX_DEPTH {
            asm.set(Reg::R1, level as i64);
            asm.call(Helper::AncestorCgroupId);
            // The group is of a level above.
            asm.jump_if(If::Equal, Reg::R0, 0, out);
            asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
            asm.call_map(Helper::MapLookup, Map::Groups, WORD);
            asm.jump_if(If::NotEqual, Reg::R0, 0, chosen);
        }
        asm.jump(out);
        asm.place(chosen);
    }
}
