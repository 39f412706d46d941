//! What the programs keep of a thread, and how an element is found by the thread's id.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | how long it was runnable, ns |
//! | 8 | 8 | how long it was in I/O wait, ns |
//! | 16 | 8 | how long it was blocked otherwise, ns |
//! | 24 | 8 | when it left its CPU, ns; 0 while it is on one, and before it leaves one for the first time |
//! | 32 | 8 | what it is from then until it is woken: the offset of one of the sums |
//! | 40 | 8 | when it was woken since it was on a CPU for the last time, ns; 0 if it was not |
//! | 48 | 8 | its id, and in the upper half, its process's, as its hits have them; 0 before they are known |
//!
//! The first three are what a hit records ([`ThreadWaits`]). Only programs that run for the thread, or for the switch to it or from it, change an element, but
//! for the time of the waking.

use usdtrec_format::ThreadWaits;
use usdtrec_kernel::bpf::insn::{Assembler, Helper, If, Label, Map, Op, Reg, Width};

use crate::engine::bpf::slots::WORD;

/// Number of words of an element.
pub(super) const ELEMENT_WORDS: usize = 7;

/// Offsets of the sums.
pub(super) mod sum {
    pub(in super::super) const RUNNABLE: i16 = 0;
    pub(in super::super) const IOWAIT: i16 = 8;
    pub(in super::super) const BLOCKED: i16 = 16;
    /// Indexes of those in which a thread is that sleeps: blocked, and then runnable.
    pub(in super::super) const IN_SLEEP: [usize; 2] = [0, 2];
}

/// Offset of the time at which it left its CPU.
pub(super) const LEFT: i16 = 24;
/// Offset of what it is from then on.
pub(super) const STATE: i16 = 32;
/// Offset of the time at which it was woken.
pub(super) const WOKEN: i16 = 40;
/// Offset of its ids.
pub(super) const IDS: i16 = 48;

/// Number of counts of the gate, of 4 bytes each.
const GATE_COUNTS: u32 = 16_384;
/// Offset of the zeros that new elements are copied from.
const ZEROS: u32 = 4 * GATE_COUNTS;
/// Size of the gate with them, bytes.
pub(super) const GATE_BYTES: u32 = ZEROS + 8 * ELEMENT_WORDS as u32;

/// Stack slot of the thread's id.
pub(super) const KEY: i16 = -4;
/// Stack slot of the address of a new element.
const NEW: i16 = WORD;

/// `R0` = the element of the current thread, which is added if there is none; jumps to `none` if it is one of the process `recorder`, or there is no
/// room. `R1` to `R5` are lost.
pub(in crate::engine::bpf) fn sums_of_current(
    asm: &mut Assembler,
    recorder: Option<u32>,
    none: Label,
) {
    let found = asm.label();
    // Programs at switches see the ids of the first pid namespace.
    // KEY = bpf_get_current_pid_tgid(); r0 = bpf_map_lookup_elem(&WaitSums, &KEY); if (r0) goto found;
    asm.call(Helper::PidTgid);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
    asm.call_map(Helper::MapLookup, Map::WaitSums, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    if let Some(recorder) = recorder {
        // if (bpf_get_current_pid_tgid() >> 32 == recorder) goto none;
        asm.thread_and_process();
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.jump_if(If::Equal, Reg::R0, recorder.cast_signed(), none);
    }
    // if (bpf_map_update_elem(&WaitSums, &KEY, &WaitGate[ZEROS], BPF_ANY)) goto none;
    asm.set_map_value(Reg::R3, Map::WaitGate, ZEROS);
    asm.set(Reg::R4, 0);
    asm.call_map(Helper::MapUpdate, Map::WaitSums, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, none);
    // add_to_gate(1); r0 = bpf_map_lookup_elem(&WaitSums, &KEY); if (!r0) goto none;
    add_to_gate(asm, 1);
    asm.call_map(Helper::MapLookup, Map::WaitSums, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, none);
    // NEW = r0; r1 = bpf_get_current_pid_tgid(); r0 = NEW; r0->IDS = r1;
    asm.store(Width::Double, Reg::R10, NEW, Reg::R0);
    asm.thread_and_process();
    asm.copy(Reg::R1, Reg::R0);
    asm.load(Width::Double, Reg::R0, Reg::R10, NEW);
    asm.store(Width::Double, Reg::R0, IDS, Reg::R1);
    asm.place(found);
    // It is on a CPU, so that it was not seen to come there.
    // if (sums->LEFT) { sums->LEFT = 0; sums->WOKEN = 0; miss(sums); }
    let has_arrived = asm.label();
    asm.load(Width::Double, Reg::R1, Reg::R0, LEFT);
    asm.jump_if(If::Equal, Reg::R1, 0, has_arrived);
    asm.store_value(Width::Double, Reg::R0, LEFT, 0);
    asm.store_value(Width::Double, Reg::R0, WOKEN, 0);
    miss(asm, Reg::R0);
    asm.place(has_arrived);
}

/// Counts a wait that is not in the sums of `element`. `R4` and `R5` are lost.
pub(super) fn miss(asm: &mut Assembler, element: Reg) {
    let counted = asm.label();
    // sums->IOWAIT += MISSED; if (!(sums->IOWAIT >> 56)) sums->RUNNABLE += MISSED;
    asm.set(Reg::R5, ThreadWaits::MISSED.cast_signed());
    asm.load(Width::Double, Reg::R4, element, sum::IOWAIT);
    asm.op(Op::Add, Reg::R4, Reg::R5);
    asm.store(Width::Double, element, sum::IOWAIT, Reg::R4);
    asm.jump_if_reg(If::AtLeast, Reg::R4, Reg::R5, counted);
    asm.load(Width::Double, Reg::R4, element, sum::RUNNABLE);
    asm.op(Op::Add, Reg::R4, Reg::R5);
    asm.store(Width::Double, element, sum::RUNNABLE, Reg::R4);
    asm.place(counted);
}

/// Removes the element of the thread in [`KEY`], if it has one. `R0` to `R5` are lost.
pub(super) fn forget(asm: &mut Assembler) {
    let none = asm.label();
    // if (!WaitGate[KEY & (GATE_COUNTS - 1)]) goto none;
    find_count(asm);
    asm.load(Width::Word, Reg::R1, Reg::R1, 0);
    asm.jump_if(If::Equal, Reg::R1, 0, none);
    // if (!bpf_map_delete_elem(&WaitSums, &KEY)) add_to_gate(-1);
    asm.call_map(Helper::MapDelete, Map::WaitSums, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, none);
    add_to_gate(asm, -1);
    asm.place(none);
}

/// `R1` = the address of the count of the thread in [`KEY`] in the gate. `R3` is lost.
pub(super) fn find_count(asm: &mut Assembler) {
    // r1 = &WaitGate[KEY & (GATE_COUNTS - 1)];
    asm.load(Width::Word, Reg::R3, Reg::R10, KEY);
    asm.op_value(Op::And, Reg::R3, GATE_COUNTS.cast_signed() - 1);
    asm.op_value(Op::ShiftLeft, Reg::R3, 2);
    asm.set_map_value(Reg::R1, Map::WaitGate, 0);
    asm.op(Op::Add, Reg::R1, Reg::R3);
}

/// Adds to that count. `R1` to `R3` are lost.
fn add_to_gate(asm: &mut Assembler, number: i64) {
    // __sync_fetch_and_add(&WaitGate[KEY & (GATE_COUNTS - 1)], number);
    find_count(asm);
    asm.set(Reg::R2, number);
    asm.atomic_add_word(Reg::R1, 0, Reg::R2);
}

const _: () = assert!(ThreadWaits::BYTES.cast_signed() == LEFT);
