//! Programs that count the hits of sites.

use usdtrec_kernel::bpf::insn::{Helper, If, Map, Op, Reg};

use super::super::program::{Exits, Program};
use super::hit_counts::{HitCounts, HitWord};

impl Program<'_> {
    /// Counts the hit, and ends the program.
    pub(in crate::engine::bpf) fn aggregate(&mut self, counts: HitCounts, exits: Exits) {
        match &self.common.grouping {
            Some(grouping) => self.group_hit(grouping, counts, exits),
            None => self.count_hit(counts, exits),
        }
    }

    /// Counts the hit at its site, and ends the program.
    pub(super) fn count_hit(&mut self, counts: HitCounts, exits: Exits) {
        self.hit_word(counts, HitWord::Ungrouped, exits);
        let asm = &mut self.asm;
        asm.increment(Reg::R1);
        asm.jump(exits.out);
    }

    /// `R1` = the address of a word of the site. `R7` is lost, as what calls lose.
    pub(in crate::engine::bpf) fn hit_word(
        &mut self,
        counts: HitCounts,
        word: HitWord,
        exits: Exits,
    ) {
        let HitCounts {
            first, row, rows, ..
        } = counts;
        self.load_index();
        let ids = self.common.ids.cast_signed();
        let asm = &mut self.asm;
        asm.jump_if(If::AtLeast, Reg::R0, ids, exits.dropped);
        asm.copy(Reg::R7, Reg::R0);
        asm.op_value(Op::Multiply, Reg::R7, counts.id_bytes().cast_signed());
        asm.call(Helper::CpuId);
        asm.op_value(Op::And, Reg::R0, rows.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R0, row.cast_signed());
        asm.set_map_value(Reg::R1, Map::Control, first + 8 * word as u32);
        asm.op(Op::Add, Reg::R1, Reg::R7);
        asm.op(Op::Add, Reg::R1, Reg::R0);
    }
}
