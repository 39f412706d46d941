//! The program of sites: bytecode, generated from the capture plans, that writes a whole `PERF_RECORD_SAMPLE` into the ring
//! ([`contract`](super::contract)).
//!
//! Where the values of a hit are written is a parameter ([`Target`](super::contract::Target)).
//!
//! Sites with different plans have a variant each: straight-line code, which the site's cookie chooses. So a file needs one program and one
//! link, however many probes it has.
//!
//! Programs are generated from the capture plan as bytecode; the only loop follows frame pointers. What brings memory in
//! is a global function, which the verifier checks once and not at each read: loading takes a tenth of the time.

pub(super) mod builder;
mod entry_check;
pub(super) mod frame_pointers;
pub(super) mod nonresident_memory;
pub(super) mod spec;
pub(super) mod stack;
mod string;
mod thread_context;
mod thread_waits;
pub(super) mod values;

use usdtrec_kernel::bpf::insn::{Assembler, Code, Label, Reg};
use usdtrec_kernel::bpf::preemption;

use self::builder::{Exits, Program};
use self::spec::{Common, Spec};
use self::stack::stack_ends;
use super::contract::Target;
use super::contract::rooms;
use super::nonresident::Functions;

/// Generates the program of sites: the variant of each site is one of `specs`. `None` if it is too long, or there is none.
pub(super) fn generate(specs: &[&Spec<'_>], common: &Common) -> Option<Code> {
    let mut program = Program::new(specs.first()?, common);
    let exits = program.begin();
    let variants: Vec<Label> = specs.iter().map(|_| program.asm.label()).collect();
    if variants.len() > 1 {
        program.choose_variant(&variants);
    }
    for (spec, variant) in specs.iter().zip(variants) {
        program.asm.place(variant);
        program.spec = spec;
        program.variant(exits);
    }
    program.finish(exits)
}

impl<'a> Program<'a> {
    /// A program that writes values to records.
    pub(super) fn new(spec: &'a Spec<'a>, common: &'a Common) -> Self {
        let mut asm = Assembler::default();
        Self {
            bring_in: asm.label(),
            asm,
            spec,
            common,
            absent: Vec::new(),
            brings_in: false,
            reads: 0,
            room: rooms(spec.layout).whole,
            ends: Vec::new(),
            longer: None,
            target: Target::RECORD,
            writes_values: false,
            keeps_cookie: false,
            in_span: false,
            frame_functions: Vec::new(),
            stack_number: None,
            user_function: None,
        }
    }

    /// Writes what comes before all variants.
    pub(super) fn begin(&mut self) -> Exits {
        let asm = &mut self.asm;
        let (out, dropped) = (asm.label(), asm.label());
        // ctx = r1; bpf_preempt_disable();
        asm.copy(Reg::R6, Reg::R1);
        preemption::disable(asm, self.common.preemption);
        self.entry_check(out);
        Exits { out, dropped }
    }

    /// Writes the end of the program, and its functions.
    pub(super) fn finish(mut self, Exits { out, dropped }: Exits) -> Option<Code> {
        // out: bpf_preempt_enable(); return 0;
        self.asm.place(out);
        preemption::enable(&mut self.asm, self.common.preemption);
        self.asm.exit_with(0);
        // dropped: Control[LOSSES + 8 * index]++; goto out;
        self.asm.place(dropped);
        self.count_loss(out);
        self.write_frame_functions();
        self.write_stack_number();
        self.write_user_function();
        if self.brings_in {
            let mut functions = Functions {
                asm: &mut self.asm,
                touch: self.common.touch,
                preemption: self.common.preemption,
            };
            functions.write(self.bring_in);
        }
        self.asm.finish()
    }

    /// Writes what the hit of a site is recorded with, and ends the program.
    fn variant(&mut self, exits: Exits) {
        let Exits { out, dropped } = exits;
        let rooms = rooms(self.spec.layout);
        self.writes_values = false;
        let graph = self.spec.graph;
        self.ends = graph
            .map(|graph| stack_ends(graph, self.spec.arch))
            .unwrap_or_default();
        if let (Some(memory), Some(role)) = (self.common.spans, self.spec.role) {
            return self.span(memory, role, exits);
        }
        if let Some(condition) = self.spec.condition {
            self.filter(condition, out);
        }
        if let Some(counts) = self.common.hit_counts {
            return self.aggregate(counts, exits);
        }
        self.begin_reads();
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
            // longer: bpf_ringbuf_discard(record, 0);
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
        // reserve(&record); head(record); arguments(record); stack(record); bpf_ringbuf_submit(record, 0); goto out;
        self.reserve(exits.dropped);
        self.head();
        self.arguments();
        self.stack();
        self.submit();
        self.asm.jump(exits.out);
    }
}
