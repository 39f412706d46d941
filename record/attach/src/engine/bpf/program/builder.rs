//! A program that is being generated: the reservation and the end of its record. Its registers are those of the
//! [contract](super::super::contract).

use usdtrec_kernel::bpf::insn::{Assembler, Helper, If, Label, Map, Op, Reg, Width};

use super::super::aggregate::stack_layout::StackLayout;
use super::super::contract::Cookie;
use super::super::contract::FrameFunction;
use super::super::contract::Target;
use super::super::contract::instruction_pointer;
use super::super::contract::{END_SIZE, RAW, Room};
use super::super::control;
use super::super::slots::{COOKIE, CPU, NOW, RING, STACK_END, STACK_SIZE};
use super::spec::{Common, Spec};

/// Where a program goes instead of writing a record.
#[derive(Clone, Copy)]
pub(in crate::engine::bpf) struct Exits {
    /// Its end.
    pub out: Label,
    /// Where a hit is counted for which there is no room.
    pub dropped: Label,
}

/// A program that is being generated.
pub(in crate::engine::bpf) struct Program<'a> {
    pub asm: Assembler,
    /// What the variant that is generated next captures.
    pub spec: &'a Spec<'a>,
    pub common: &'a Common,
    /// Of each read so far for which memory is faulted in, where that is done.
    pub absent: Vec<Label>,
    /// The function that brings memory in.
    pub bring_in: Label,
    /// Whether that function is called.
    pub(super) brings_in: bool,
    /// Number of such reads so far, since the first value.
    pub reads: u8,
    /// Room for the strings of the record that is reserved next.
    pub room: Room,
    /// Sizes of the end of the record among which is chosen, bytes; empty if the callers are not recorded.
    pub ends: Vec<usize>,
    /// Where to go if a string needs more; `None` if that is all that there is.
    pub longer: Option<Label>,
    /// Where values are written.
    pub target: Target,
    /// Whether the code that is generated next writes values, which start again after a read that failed, or belongs to the filter.
    pub writes_values: bool,
    /// Whether the record is in the map of open spans, and not reserved in the ring.
    pub in_span: bool,
    /// Whether the cookie is in its slot.
    pub(super) keeps_cookie: bool,
    /// The functions that follow frame pointers and are called.
    pub(super) frame_functions: Vec<FrameFunction>,
    /// The function that finds numbers of stacks, if it is called.
    pub stack_number: Option<(StackLayout, Label)>,
    /// The function that gives the user, if it is called.
    pub(super) user_function: Option<Label>,
}

impl Program<'_> {
    /// Finds the ring of the CPU, for all reservations of the hit: a thread does not migrate inside a program.
    pub(in crate::engine::bpf) fn find_ring(&mut self, dropped: Label) {
        let asm = &mut self.asm;
        // CPU = bpf_get_smp_processor_id();
        asm.call(Helper::CpuId);
        asm.store(Width::Word, Reg::R10, CPU, Reg::R0);
        // RING = bpf_map_lookup_elem(&Rings, &CPU); if (!RING) goto dropped;
        asm.call_map(Helper::MapLookup, Map::Rings, CPU);
        asm.jump_if(If::Equal, Reg::R0, 0, dropped);
        asm.store(Width::Double, Reg::R10, RING, Reg::R0);
    }

    /// Reserves a record in the ring of the CPU: `R7`.
    pub(super) fn reserve(&mut self, dropped: Label) {
        // record = bpf_ringbuf_reserve(RING, size, 0); if (!record) goto dropped;
        self.asm.load(Width::Double, Reg::R1, Reg::R10, RING);
        self.reserve_size();
        let asm = &mut self.asm;
        asm.jump_if(If::Equal, Reg::R0, 0, dropped);
        asm.copy(Reg::R7, Reg::R0);
    }

    /// Reserves in the ring `R1` a record with the size of stack that is in its slot: `R0`.
    ///
    /// Kernels before 6.1 take two reservations for the same if they come from one instruction and only their sizes differ. So each size
    /// has an instruction of its own. The slot of the end's size is stored from a register, whose value the verifier then knows.
    fn reserve_size(&mut self) {
        if self.ends.is_empty() {
            return self.reserve_with(0);
        }
        let done = self.asm.label();
        // switch (STACK_SIZE) { case 0: STACK_END = ends[0]; r0 = bpf_ringbuf_reserve(r1, room.record + STACK_END, 0);
        // break; case 1: the same with ends[1]; break; default: the same with the last one; }
        if self.ends.len() > 1 {
            self.asm.load(Width::Double, Reg::R4, Reg::R10, STACK_SIZE);
        }
        for (index, end) in self.ends.clone().into_iter().enumerate() {
            let other = self.asm.label();
            let is_last = index + 1 == self.ends.len();
            if !is_last {
                self.asm.jump_if(If::NotEqual, Reg::R4, index as i32, other);
            }
            self.asm.set(Reg::R2, end as i64);
            self.asm.store(Width::Double, Reg::R10, STACK_END, Reg::R2);
            self.reserve_with(end);
            if !is_last {
                self.asm.jump(done);
            }
            self.asm.place(other);
        }
        self.asm.place(done);
    }

    /// Reserves in the ring `R1` a record with an end of this size.
    fn reserve_with(&mut self, end: usize) {
        // r0 = bpf_ringbuf_reserve(r1, room.record + end, 0);
        self.asm.set(Reg::R2, (self.room.record + end) as i64);
        self.asm.set(Reg::R3, 0);
        self.asm.call(Helper::RingReserve);
    }

    /// Writes everything before the fields. The time is read right after the reservation, so that the order by time is the order in the
    /// ring.
    pub(in crate::engine::bpf) fn head(&mut self) {
        const SAMPLE: u64 = 9;
        const USER_MODE: u64 = 2;
        let header = SAMPLE | USER_MODE << 32 | (self.room.record as u64) << 48;
        let pc = instruction_pointer(self.spec.arch);
        let asm = &mut self.asm;
        // record->time = NOW = bpf_ktime_get_ns();
        asm.call(Helper::KtimeNs);
        asm.store(Width::Double, Reg::R7, 32, Reg::R0);
        asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
        // record->header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = room.record };
        asm.set(Reg::R1, header.cast_signed());
        asm.store(Width::Double, Reg::R7, 0, Reg::R1);
        // record->ip = PT_REGS_IP(ctx); record->cpu = CPU;
        asm.load(Width::Double, Reg::R1, Reg::R6, pc);
        asm.store(Width::Double, Reg::R7, 16, Reg::R1);
        asm.load(Width::Word, Reg::R0, Reg::R10, CPU);
        asm.store(Width::Word, Reg::R7, 40, Reg::R0);
        self.ids();
        let asm = &mut self.asm;
        // record->end_size = ends.is_empty() ? 0 : STACK_END;
        if self.ends.is_empty() {
            asm.store_value(Width::Word, Reg::R7, END_SIZE as i16, 0);
        } else {
            asm.load(Width::Double, Reg::R0, Reg::R10, STACK_END);
            asm.store(Width::Word, Reg::R7, END_SIZE as i16, Reg::R0);
        }
        // *(u32 *)record->raw = cookie >> EVENT_AT;
        self.cookie();
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R0);
        asm.op_value(Op::ShiftRight, Reg::R1, Cookie::EVENT_AT as i32);
        asm.store(Width::Word, Reg::R7, RAW as i16, Reg::R1);
        // record->identifier = first_id + (cookie & ((1 << INDEX_BITS) - 1)); record->raw_size = layout.size;
        self.index_of_cookie();
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R0);
        asm.add(Reg::R1, self.common.first_id.cast_signed(), Reg::R2);
        asm.store(Width::Double, Reg::R7, 8, Reg::R1);
        asm.store_value(Width::Word, Reg::R7, 48, self.spec.layout.size.into());
        if self.spec.layout.strings().any(|string| !string.known) {
            self.habits();
        }
    }

    /// Submits the record. The kernel wakes the reader if it has read all earlier records.
    pub(super) fn submit(&mut self) {
        let asm = &mut self.asm;
        // bpf_ringbuf_submit(record, 0);
        asm.copy(Reg::R1, Reg::R7);
        asm.set(Reg::R2, 0);
        asm.call(Helper::RingSubmit);
    }

    /// Loads the cookie of the site: `R0`.
    pub(in crate::engine::bpf) fn cookie(&mut self) {
        if let Some(cookie) = self.spec.cookie {
            return self.asm.set(Reg::R0, cookie.cast_signed());
        }
        if self.keeps_cookie {
            return self.asm.load(Width::Double, Reg::R0, Reg::R10, COOKIE);
        }
        // r0 = bpf_get_attach_cookie(ctx);
        self.asm.copy(Reg::R1, Reg::R6);
        self.asm.call(Helper::AttachCookie);
    }

    /// `R0` = the index of the sample id.
    pub(in crate::engine::bpf) fn load_index(&mut self) {
        self.cookie();
        self.index_of_cookie();
    }

    /// `R0` = the index of the sample id, which was the cookie.
    fn index_of_cookie(&mut self) {
        let others = 64 - Cookie::INDEX_BITS as i32;
        // r0 = cookie & ((1 << INDEX_BITS) - 1);
        self.asm.extend(Reg::R0, others, false);
    }

    /// Goes to the code of the variant that the cookie names.
    pub(super) fn choose_variant(&mut self, variants: &[Label]) {
        self.keep_cookie();
        let asm = &mut self.asm;
        // switch (COOKIE >> VARIANT_AT & 0xffff) { case n: goto variants[n]; }
        asm.load(Width::Double, Reg::R1, Reg::R10, COOKIE);
        asm.op_value(Op::ShiftRight, Reg::R1, Cookie::VARIANT_AT as i32);
        asm.op_value(Op::And, Reg::R1, u16::MAX.into());
        choose(asm, 0, variants);
    }

    /// Keeps the cookie in its slot.
    pub(super) fn keep_cookie(&mut self) {
        if self.spec.cookie.is_none() && !self.keeps_cookie {
            // COOKIE = bpf_get_attach_cookie(ctx);
            self.cookie();
            self.asm.store(Width::Double, Reg::R10, COOKIE, Reg::R0);
            self.keeps_cookie = true;
        }
    }

    /// `R1` = the place of the site's word in the list of 64-bit words, one for each sample id, that begins at offset `first` of the
    /// control map; jumps to `out` if the site has none.
    pub(super) fn word_of_id(&mut self, first: u32, out: Label) {
        // index = cookie & ((1 << INDEX_BITS) - 1); if (index >= ids) goto out; r1 = &Control[first + 8 * index];
        self.load_index();
        let asm = &mut self.asm;
        asm.jump_if(If::AtLeast, Reg::R0, self.common.ids.cast_signed(), out);
        asm.op_value(Op::ShiftLeft, Reg::R0, 3);
        asm.set_map_value(Reg::R1, Map::Control, first);
        asm.op(Op::Add, Reg::R1, Reg::R0);
    }

    /// Jumps to `whole` if most strings of the site were long.
    pub(super) fn skip_short(&mut self, whole: Label) {
        let short = self.asm.label();
        let first = control::long_strings_at(self.common.ids, self.common.strings);
        // if (index < ids && Control[long_strings_at + 8 * index] != 0) goto whole;
        self.word_of_id(first, short);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::NotEqual, Reg::R1, 0, whole);
        asm.place(short);
    }

    /// Discards the record.
    pub(super) fn discard(&mut self) {
        let asm = &mut self.asm;
        // bpf_ringbuf_discard(record, 0);
        asm.copy(Reg::R1, Reg::R7);
        // Wakes a reader that waits for this record: the kernel would not wake it for a later one.
        asm.set(Reg::R2, 0);
        asm.call(Helper::RingDiscard);
    }

    /// Counts a hit for which the ring had no room.
    pub(super) fn count_loss(&mut self, out: Label) {
        // Control[LOSSES + 8 * index]++; goto out;
        self.count_at_site(out);
        self.asm.jump(out);
    }

    /// Counts a lost hit at its site.
    pub(in crate::engine::bpf) fn count_at_site(&mut self, out: Label) {
        // if (index >= ids) goto out; __sync_fetch_and_add(&Control[LOSSES + 8 * index], 1);
        self.word_of_id(control::LOSSES, out);
        let asm = &mut self.asm;
        asm.increment(Reg::R1);
    }
}

/// Goes to one of `labels` by the number in `R1`: `first` is that of the first of them.
fn choose(asm: &mut Assembler, first: usize, labels: &[Label]) {
    match *labels {
        [] => {}
        [only] => asm.jump(only),
        _ => {
            let (lower, higher) = labels.split_at(labels.len() / 2);
            let middle = first + lower.len();
            let above = asm.label();
            // if (r1 >= middle) goto above; goto one of lower; above: goto one of higher;
            asm.jump_if(If::AtLeast, Reg::R1, middle as i32, above);
            choose(asm, first, lower);
            asm.place(above);
            choose(asm, middle, higher);
        }
    }
}
