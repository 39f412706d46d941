//! The program of a site: straight-line bytecode, generated from the capture plan, that writes a whole `PERF_RECORD_SAMPLE` into
//! the ring ([`sample_record`]).

mod absent;
mod address;
mod builder;
mod gate;
mod sample_record;
mod slots;
mod spec;
mod stop;
mod text;
mod values;
mod who;

use super::insn::{Assembler, Code, Reg, Width};
use super::nonresident::Functions;
pub(super) use absent::Bytes;
pub(super) use builder::Program;
pub(in crate::engine) use sample_record::RAW;
#[cfg(test)]
pub(super) use sample_record::record_size;
pub(super) use sample_record::{ID_BITS, at, string_at, string_room};
use slots::{NOT_MAPPED, READS};
pub(super) use spec::{Common, Spec, Stop, ThreadBase};
pub(super) use who::{FIRST_TOKEN, FOLLOWED, LINKED, Who};

/// Generates the program of a site. `None` if it is too long.
pub(super) fn generate(spec: &Spec<'_>, common: &Common) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, dropped) = (asm.label(), asm.label());
    let (again, absent, bring_in) = (asm.label(), asm.label(), asm.label());
    let mut program = Program {
        asm,
        spec,
        common,
        absent,
        bring_in,
        brings_in: false,
        reads: 0,
        is_reserved: false,
    };
    program.asm.copy(Reg::R6, Reg::R1);
    program.gate(out);
    if let Some(condition) = spec.condition {
        program.filter(condition, out);
    }
    program.asm.store_value(Width::Double, Reg::R10, READS, 0);
    program
        .asm
        .store_value(Width::Double, Reg::R10, NOT_MAPPED, 0);
    program.asm.place(again);
    program.reserve(dropped);
    program.head();
    program.arguments();
    program.submit();
    program.asm.place(out);
    program.asm.set(Reg::R0, 0);
    program.asm.exit();
    program.asm.place(dropped);
    program.count_loss(out);
    if program.reads > 0 {
        program.bring_in_and_do_again(again, out);
    }
    let (touch, brings_in) = (common.touch, program.brings_in);
    let mut asm = program.asm;
    if brings_in {
        let mut functions = Functions {
            asm: &mut asm,
            touch,
        };
        functions.write(bring_in);
    }
    asm.finish()
}
