//! The program of a site: straight-line bytecode, generated from the capture plan, that writes a whole `PERF_RECORD_SAMPLE` into
//! the ring ([`sample_record`]).

mod absent;
mod address;
mod builder;
mod frame_pointers;
mod gate;
mod sample_record;
mod slots;
mod spec;
mod stack;
mod stop;
mod text;
mod values;
mod who;

use super::insn::{Assembler, Code, Label, Reg, Width};
use super::nonresident::Functions;
pub(super) use absent::Bytes;
pub(super) use builder::Program;
pub(in crate::engine) use sample_record::RAW;
pub(super) use sample_record::{END_SIZE, ID_BITS, Rooms, at, rooms, string_at};
use slots::{NOT_MAPPED, READS};
pub(super) use spec::{Common, CpuRange, Spec, Stop, ThreadBase};
pub(super) use stack::{CHAIN, EndKind, stack_ends};
pub(super) use who::{FIRST_TOKEN, FOLLOWED, LINKED, Who};

/// Generates the program of a site. `None` if it is too long.
pub(super) fn generate(spec: &Spec<'_>, common: &Common) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, dropped) = (asm.label(), asm.label());
    let bring_in = asm.label();
    let rooms = rooms(spec.layout);
    let whole = asm.label();
    let mut program = Program {
        asm,
        spec,
        common,
        absent: whole,
        bring_in,
        brings_in: false,
        reads: 0,
        room: rooms.whole,
        ends: spec
            .graph
            .map(|graph| stack_ends(graph, spec.arch))
            .unwrap_or_default(),
        longer: None,
        is_reserved: false,
        keeps_cookie: false,
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
    program.choose_stack_size(out);
    if let Some(short) = rooms.short {
        program.keep_cookie();
        program.skip_short(whole);
        let longer = program.asm.label();
        program.room = short;
        program.longer = Some(longer);
        let again = program.asm.label();
        program.record(again, Exits { out, dropped });
        program.asm.place(longer);
        program.discard();
        program.room = rooms.whole;
        program.longer = None;
    }
    program.record(whole, Exits { out, dropped });
    program.asm.place(out);
    program.asm.set(Reg::R0, 0);
    program.asm.exit();
    program.asm.place(dropped);
    program.count_loss(out);
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

/// Where a program goes instead of writing a record.
#[derive(Clone, Copy)]
struct Exits {
    /// Its end.
    out: Label,
    /// Where a hit is counted for which the ring has no room.
    dropped: Label,
}

impl Program<'_> {
    /// Writes a record with [`room`](Self::room) for each string, from `again` on, and ends the program.
    fn record(&mut self, again: Label, exits: Exits) {
        self.absent = self.asm.label();
        self.reads = 0;
        self.is_reserved = false;
        self.asm.place(again);
        self.reserve(exits.dropped);
        self.head();
        self.arguments();
        self.stack();
        self.submit();
        self.asm.jump(exits.out);
        if self.reads > 0 {
            self.bring_in_and_do_again(again, exits.out);
        }
    }
}
