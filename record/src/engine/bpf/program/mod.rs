//! The program of sites: bytecode, generated from the capture plans, that writes a whole `PERF_RECORD_SAMPLE` into the ring
//! ([`sample_record`]).
//!
//! Sites with different plans have a variant each: straight-line code, which the site's cookie chooses. So a file needs one program and one
//! link, however many probes it has.
//!
//! Programs are generated from the capture plan as bytecode; the only loop follows frame pointers. What brings memory in
//! is a global function, which the verifier checks once and not at each read: loading takes a tenth of the time.

mod absent;
mod address;
mod builder;
mod cookie;
mod frame_function;
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
use super::preemption;
pub(super) use absent::Bytes;
use builder::Exits;
pub(super) use builder::Program;
pub(super) use cookie::Cookie;
pub(in crate::engine::bpf) use sample_record::RAW;
pub(super) use sample_record::{END_SIZE, Rooms, at, rooms, string_at};
use slots::{NOT_MAPPED, READS};
pub(super) use spec::{Common, CpuRange, Spec, Stop, ThreadBase};
pub(super) use stack::{CHAIN, EndKind, stack_ends};
pub(super) use who::{FIRST_TOKEN, FOLLOWED, LINKED, Who};

/// Generates the program of sites: the variant of each site is one of `specs`. `None` if it is too long, or there is none.
pub(super) fn generate(specs: &[&Spec<'_>], common: &Common) -> Option<Code> {
    let first = specs.first()?;
    let mut asm = Assembler::default();
    let (out, dropped) = (asm.label(), asm.label());
    let exits = Exits { out, dropped };
    let bring_in = asm.label();
    let mut program = Program {
        asm,
        spec: first,
        common,
        absent: Vec::new(),
        bring_in,
        brings_in: false,
        reads: 0,
        room: rooms(first.layout).whole,
        ends: Vec::new(),
        longer: None,
        is_reserved: false,
        keeps_cookie: false,
        frame_functions: Vec::new(),
    };
    program.asm.copy(Reg::R6, Reg::R1);
    preemption::disable(&mut program.asm, common.preemption);
    program.gate(out);
    let variants: Vec<Label> = specs.iter().map(|_| program.asm.label()).collect();
    if variants.len() > 1 {
        program.choose_variant(&variants);
    }
    for (spec, variant) in specs.iter().zip(variants) {
        program.asm.place(variant);
        program.spec = spec;
        program.variant(exits);
    }
    program.asm.place(out);
    preemption::enable(&mut program.asm, common.preemption);
    program.asm.set(Reg::R0, 0);
    program.asm.exit();
    program.asm.place(dropped);
    program.count_loss(out);
    program.write_frame_functions();
    let (touch, brings_in) = (common.touch, program.brings_in);
    let mut asm = program.asm;
    if brings_in {
        let mut functions = Functions {
            asm: &mut asm,
            touch,
            preemption: common.preemption,
        };
        functions.write(bring_in);
    }
    asm.finish()
}

impl Program<'_> {
    /// Writes what the hit of a site is recorded with, and ends the program.
    fn variant(&mut self, exits: Exits) {
        let Exits { out, dropped } = exits;
        let rooms = rooms(self.spec.layout);
        self.is_reserved = false;
        let graph = self.spec.graph;
        self.ends = graph
            .map(|graph| stack_ends(graph, self.spec.arch))
            .unwrap_or_default();
        if let Some(condition) = self.spec.condition {
            self.filter(condition, out);
        }
        self.asm.store_value(Width::Double, Reg::R10, READS, 0);
        self.asm.store_value(Width::Double, Reg::R10, NOT_MAPPED, 0);
        self.find_ring(dropped);
        self.choose_stack_size(out);
        let whole = self.asm.label();
        if let Some(short) = rooms.short {
            self.keep_cookie();
            self.skip_short(whole);
            let longer = self.asm.label();
            self.room = short;
            self.longer = Some(longer);
            self.record(exits);
            self.asm.place(longer);
            self.discard();
        }
        self.room = rooms.whole;
        self.longer = None;
        self.asm.place(whole);
        self.record(exits);
        if !self.absent.is_empty() {
            self.bring_in_and_do_again(whole, exits);
        }
    }

    /// Writes a record with [`room`](Self::room) for each string, and ends the program.
    fn record(&mut self, exits: Exits) {
        self.reads = 0;
        self.is_reserved = false;
        self.reserve(exits.dropped);
        self.head();
        self.arguments();
        self.stack();
        self.submit();
        self.asm.jump(exits.out);
    }
}
