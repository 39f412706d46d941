//! What the callers of a hit are found from, at the end of a record. Nothing of it faults: a stack page that is not resident ends the copy.
//!
//! By frame pointers ([`CallGraphMethod::FramePointers`]): a word with the reason of a cut ([`ChainCut::marks`](usdtrec_format::perf::ChainCut::marks), 0 for none), the number of
//! callers, and room for the return addresses. From a copy: perf's `REGS_USER`, the number of bytes that were copied, and room for them.
//!
//! The room has one of several sizes. A word of the site says which one, which while the ring is crowded, and from which fill level on it is ([`control`]).

use std::num::NonZeroU32;

use usdtrec_format::Arch;
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::contract::CHAIN;
use super::super::control;
use super::super::slots::{RATE, RATE_KEY, RING, STACK_END, STACK_SIZE, WORD};
use super::builder::Program;
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};

/// Bytes after which memory may be of another page, on all machines: a page, or a part of one.
pub(super) const PAGE: i32 = 4096;
/// ns.
const SECOND: i32 = 1_000_000_000;
/// `PERF_SAMPLE_REGS_ABI_32`, `PERF_SAMPLE_REGS_ABI_64`.
const ABI: [i32; 2] = [1, 2];

/// Sizes that the end of a record can have, bytes: ascending, and at last 0 if there may be no stack. There is at least one.
pub(in crate::engine::bpf) fn stack_ends(graph: CallGraph, arch: Arch) -> Vec<usize> {
    let end = |size: u32| end_of(graph, arch, size as usize);
    let mut ends: Vec<usize> = match EndKind::for_graph(graph, arch) {
        EndKind::Nothing => vec![16],
        _ => graph.sizes().all.into_iter().map(end).collect(),
    };
    ends.extend(graph.rate.map(|_| 0));
    ends
}

/// Size of the end of a record with so many frames, or so many bytes of stack.
fn end_of(graph: CallGraph, arch: Arch, size: usize) -> usize {
    match graph.method {
        CallGraphMethod::FramePointers => CHAIN + 8 * size,
        _ => copy_at(arch) + size,
    }
}

/// Offset of the copy in the end of a record.
fn copy_at(arch: Arch) -> usize {
    8 + 8 * registers(arch).len() + 8
}

/// What the end of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum EndKind {
    /// Return addresses.
    Chain,
    /// Registers and a copy.
    Copy {
        /// Offset of the copy.
        at: usize,
    },
    /// Nothing: stacks of the architecture are not unwound.
    Nothing,
}

impl EndKind {
    /// The end of the records of programs of an architecture.
    pub(in crate::engine::bpf) fn for_graph(graph: CallGraph, arch: Arch) -> Self {
        match graph.method {
            CallGraphMethod::FramePointers => Self::Chain,
            _ if registers(arch).is_empty() => Self::Nothing,
            _ => Self::Copy { at: copy_at(arch) },
        }
    }
}

impl Program<'_> {
    /// Stores the size of stack that the site's word says in its slot; jumps to `out` if the site has none. If the memory ends before a
    /// copy of this size, it is a smaller size.
    pub(super) fn choose_stack_size(&mut self, out: Label) {
        let Some(graph) = self.spec.graph.filter(|_| self.ends.len() > 1) else {
            return;
        };
        let done = self.asm.label();
        if let Some(rate) = graph.rate {
            self.limit_rate(rate, done);
        }
        if self.ends.iter().filter(|end| **end > 0).count() == 1 {
            // STACK_SIZE = 0;
            self.asm.set(Reg::R1, 0);
            self.asm.store(Width::Double, Reg::R10, STACK_SIZE, Reg::R1);
            return self.asm.place(done);
        }
        let first = control::stack_sizes_at(self.common.ids, self.common.strings);
        // if (index >= ids) goto out; r1 = &Control[stack_sizes_at + 8 * index];
        self.word_of_id(first, out);
        self.size_of_word();
        if graph.method != CallGraphMethod::FramePointers {
            self.shorten(&graph.sizes().all);
        }
        self.asm.place(done);
    }

    /// Stores the size that the word at `R1` says. The ring is asked how full it is only if that makes a difference.
    fn size_of_word(&mut self) {
        const AVAILABLE: i64 = 0;
        const INDEX: i32 = 0xff;
        // From bytes to 256ths of the ring, whose size is a power of two.
        let to_share = self.common.ring_bytes.max(256).ilog2() - 8;
        let asm = &mut self.asm;
        let chosen = asm.label();
        // word = *(u64 *)r1; STACK_SIZE = word & INDEX; if ((word >> 8 & INDEX) == STACK_SIZE) goto chosen;
        asm.load(Width::Double, Reg::R9, Reg::R1, 0);
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::And, Reg::R1, INDEX);
        asm.store(Width::Double, Reg::R10, STACK_SIZE, Reg::R1);
        asm.op_value(Op::ShiftRight, Reg::R9, 8);
        asm.copy(Reg::R2, Reg::R9);
        asm.op_value(Op::And, Reg::R2, INDEX);
        asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, chosen);
        // share = bpf_ringbuf_query(RING, BPF_RB_AVAIL_DATA) >> to_share; if (share < word >> 16) goto chosen;
        asm.load(Width::Double, Reg::R1, Reg::R10, RING);
        asm.set(Reg::R2, AVAILABLE);
        asm.call(Helper::RingQuery);
        asm.op_value(Op::ShiftRight, Reg::R0, to_share.cast_signed());
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::ShiftRight, Reg::R1, 8);
        asm.jump_if_reg(If::Below, Reg::R0, Reg::R1, chosen);
        // STACK_SIZE = word >> 8 & INDEX;
        asm.op_value(Op::And, Reg::R9, INDEX);
        asm.store(Width::Double, Reg::R10, STACK_SIZE, Reg::R9);
        asm.place(chosen);
    }

    /// Chooses to take no stack, and jumps to `done`, if the thread has taken so many at this site since its second began.
    fn limit_rate(&mut self, rate: NonZeroU32, done: Label) {
        // RATE_KEY = { cookie, (u32)bpf_get_current_pid_tgid() }; now = bpf_ktime_get_ns();
        self.cookie();
        let asm = &mut self.asm;
        let (begins, known, taken) = (asm.label(), asm.label(), asm.label());
        asm.store(Width::Double, Reg::R10, RATE_KEY, Reg::R0);
        asm.call(Helper::PidTgid);
        asm.cut_to_32(Reg::R0);
        asm.store(Width::Double, Reg::R10, RATE_KEY + 8, Reg::R0);
        asm.call(Helper::KtimeNs);
        asm.copy(Reg::R9, Reg::R0);
        // rate = bpf_map_lookup_elem(&StackRates, &RATE_KEY); if (rate) goto known;
        asm.call_map(Helper::MapLookup, Map::StackRates, RATE_KEY);
        asm.jump_if(If::NotEqual, Reg::R0, 0, known);
        // RATE = { now, 1 }; bpf_map_update_elem(&StackRates, &RATE_KEY, &RATE, BPF_ANY); goto taken;
        asm.store(Width::Double, Reg::R10, RATE, Reg::R9);
        asm.store_value(Width::Double, Reg::R10, RATE + 8, 1);
        asm.update_map(Map::StackRates, RATE_KEY, RATE);
        asm.jump(taken);
        // known: if (now - rate->began >= SECOND) goto begins; if (++rate->stacks <= most) goto taken;
        asm.place(known);
        asm.load(Width::Double, Reg::R1, Reg::R0, 0);
        asm.copy(Reg::R2, Reg::R9);
        asm.op(Op::Sub, Reg::R2, Reg::R1);
        asm.jump_if(If::AtLeast, Reg::R2, SECOND, begins);
        asm.load(Width::Double, Reg::R1, Reg::R0, 8);
        asm.op_value(Op::Add, Reg::R1, 1);
        asm.store(Width::Double, Reg::R0, 8, Reg::R1);
        let most = i32::try_from(rate.get()).unwrap_or(i32::MAX);
        asm.jump_if(If::AtMost, Reg::R1, most, taken);
        // STACK_SIZE = ends.len() - 1; /* its size is 0 */ goto done;
        asm.set(Reg::R1, self.ends.len() as i64 - 1);
        asm.store(Width::Double, Reg::R10, STACK_SIZE, Reg::R1);
        asm.jump(done);
        // begins: *rate = { now, 1 };
        asm.place(begins);
        asm.store(Width::Double, Reg::R0, 0, Reg::R9);
        asm.store_value(Width::Double, Reg::R0, 8, 1);
        asm.place(taken);
    }

    /// Chooses a smaller size of which the last byte cannot be read either. Copies of less than a page stay.
    fn shorten(&mut self, sizes: &[u32]) {
        let sp = self.register(self.spec.arch.stack_pointer());
        // r9 = PT_REGS_SP(ctx);
        self.asm.load(Width::Double, Reg::R9, Reg::R6, sp);
        self.remove_tag();
        let done = self.asm.label();
        let asm = &mut self.asm;
        let pairs = sizes.iter().zip(sizes.iter().skip(1)).enumerate();
        for (index, (smaller, size)) in pairs.rev() {
            if *size < PAGE.cast_unsigned() {
                continue;
            }
            let other = asm.label();
            // if (STACK_SIZE != index + 1) goto other; if (!bpf_probe_read_user(&WORD, 8, r9 + smaller - 8)) goto done;
            asm.load(Width::Double, Reg::R1, Reg::R10, STACK_SIZE);
            asm.jump_if(If::NotEqual, Reg::R1, index as i32 + 1, other);
            asm.address(Reg::R1, Reg::R10, WORD.into());
            asm.set(Reg::R2, 8);
            asm.address(Reg::R3, Reg::R9, smaller.cast_signed() - 8);
            asm.call(Helper::ReadUser);
            asm.jump_if(If::Equal, Reg::R0, 0, done);
            // STACK_SIZE = index;
            asm.set(Reg::R1, index as i64);
            asm.store(Width::Double, Reg::R10, STACK_SIZE, Reg::R1);
            asm.place(other);
        }
        asm.place(done);
    }

    /// Writes the end of the record. All of the rest is written; `R6`, `R8` and `R9` are not needed after it.
    pub(super) fn stack(&mut self) {
        let Some(graph) = self.spec.graph else {
            return;
        };
        let done = self.asm.label();
        if graph.rate.is_some() {
            // if (!STACK_END) goto done;
            self.asm.load(Width::Double, Reg::R1, Reg::R10, STACK_END);
            self.asm.jump_if(If::Equal, Reg::R1, 0, done);
        }
        // end = record + room.record;
        self.asm.address(Reg::R8, Reg::R7, self.room.record as i32);
        match graph.method {
            CallGraphMethod::FramePointers => self.follow_frame_pointers(),
            CallGraphMethod::Copy { .. } | CallGraphMethod::CopyNeeded => self.copy(),
        }
        self.asm.place(done);
    }

    /// Copies the registers, and bytes from the stack pointer upwards: as many as there is room for, or as are resident.
    fn copy(&mut self) {
        let arch = self.spec.arch;
        let registers = registers(arch);
        if registers.is_empty() {
            // end->abi = PERF_SAMPLE_REGS_ABI_32; end->copied = 0;
            self.asm.store_value(Width::Double, Reg::R8, 0, ABI[0]);
            self.asm.store_value(Width::Double, Reg::R8, 8, 0);
            return;
        }
        // end->abi = PERF_SAMPLE_REGS_ABI_64; for each register: end->registers[i] = ctx->register;
        self.asm.store_value(Width::Double, Reg::R8, 0, ABI[1]);
        let mut at = 8;
        for register in registers {
            let offset = self.register(register);
            self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
            self.asm.store(Width::Double, Reg::R8, at, Reg::R1);
            at += 8;
        }
        let sp = self.register(arch.stack_pointer());
        // r9 = PT_REGS_SP(ctx);
        self.asm.load(Width::Double, Reg::R9, Reg::R6, sp);
        self.remove_tag();
        let copied = self.asm.label();
        // WORD = STACK_END - copy_at; if (!bpf_probe_read_user(end->copy, WORD, r9)) goto copied;
        self.bytes_of_room(Reg::R2);
        self.asm.store(Width::Double, Reg::R10, WORD, Reg::R2);
        self.copy_stack(copied);
        // A page is missing: up to the end of a page, the last one first.
        let most = self.ends.iter().max().map_or(0, |end| end - copy_at(arch)) as i32;
        for pages in (0..=most / PAGE).rev() {
            let beyond = self.asm.label();
            // r2 = PAGE * (pages + 1) - (r9 & (PAGE - 1)); if (r2 >= STACK_END - copy_at) goto beyond;
            self.bytes_of_room(Reg::R3);
            let asm = &mut self.asm;
            asm.copy(Reg::R1, Reg::R9);
            asm.op_value(Op::And, Reg::R1, PAGE - 1);
            asm.set(Reg::R2, i64::from(PAGE * (pages + 1)));
            asm.op(Op::Sub, Reg::R2, Reg::R1);
            asm.jump_if_reg(If::AtLeast, Reg::R2, Reg::R3, beyond);
            // WORD = r2; if (!bpf_probe_read_user(end->copy, WORD, r9)) goto copied;
            asm.store(Width::Double, Reg::R10, WORD, Reg::R2);
            self.copy_stack(copied);
            self.asm.place(beyond);
        }
        // WORD = 0; copied: end->copied = WORD;
        self.asm.store_value(Width::Double, Reg::R10, WORD, 0);
        self.asm.place(copied);
        self.asm.load(Width::Double, Reg::R1, Reg::R10, WORD);
        self.asm.store(Width::Double, Reg::R8, at, Reg::R1);
    }

    /// `to` = bytes of stack that there is room for.
    fn bytes_of_room(&mut self, to: Reg) {
        // to = STACK_END - copy_at;
        self.asm.load(Width::Double, to, Reg::R10, STACK_END);
        let before = copy_at(self.spec.arch) as i32;
        self.asm.op_value(Op::Add, to, -before);
    }

    /// Reads `R2` bytes at `R9` into the copy; jumps to `copied` if all of them can be read.
    fn copy_stack(&mut self, copied: Label) {
        let to = copy_at(self.spec.arch) as i32;
        let asm = &mut self.asm;
        // if (!bpf_probe_read_user(end->copy, r2, r9)) goto copied;
        asm.address(Reg::R1, Reg::R8, to);
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::Equal, Reg::R0, 0, copied);
    }
}
