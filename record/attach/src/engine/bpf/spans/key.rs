//! The key of a hit: what it shares with the other hits of its span.

use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::super::program::builder::Program;
use super::super::slots;
use super::entry::{BEYOND, DEPTH, OWNED, TASK, VALUE};
use super::role::{KeyValue, SpanRole, SpanTask};
use crate::plan::capture::Capture;

/// Offset of the level in a key.
pub(super) const LEVEL: i16 = slots::SPAN_KEY + 4;
/// Offset of the task.
const TASK_OF_KEY: i16 = slots::SPAN_KEY + 8;
/// Offset of the value.
const VALUE_OF_KEY: i16 = slots::SPAN_KEY + 16;

impl Program<'_> {
    /// Stores the key of the element of level 0; jumps to `unkeyed` if a value cannot be read.
    pub(super) fn span_key(&mut self, role: &SpanRole, unkeyed: Label) {
        let asm = &mut self.asm;
        // SPAN_KEY = { .number = role.number, .level = 0 };
        asm.store_value(
            Width::Word,
            Reg::R10,
            slots::SPAN_KEY,
            role.number.cast_signed(),
        );
        asm.store_value(Width::Word, Reg::R10, LEVEL, 0);
        // task = role.task == Thread ? (u32)bpf_get_current_pid_tgid() : bpf_get_current_pid_tgid() >> 32;
        asm.thread_and_process();
        match role.task {
            SpanTask::Thread => asm.cut_to_32(Reg::R0),
            SpanTask::Process | SpanTask::Any => asm.op_value(Op::ShiftRight, Reg::R0, 32),
        }
        // No task of user space has 0. The verifier refuses code that no jump reaches.
        asm.jump_if(If::Equal, Reg::R0, 0, unkeyed);
        // SPAN_KEY.task = role.task == Any ? 0 : task; SPAN_KEY.value = 0;
        match role.task {
            SpanTask::Any => asm.store_value(Width::Double, Reg::R10, TASK_OF_KEY, 0),
            _ => asm.store(Width::Double, Reg::R10, TASK_OF_KEY, Reg::R0),
        }
        asm.store_value(Width::Double, Reg::R10, VALUE_OF_KEY, 0);
        if let Some(KeyValue {
            place,
            bytes,
            signed,
        }) = role.value
            && let Some(Capture::Value(read)) = self.spec.captures.get(place)
        {
            if self.value_or_address(read, unkeyed) {
                // if (bpf_probe_read_user(&SPAN_KEY.value, read.size, r9)) goto unkeyed; r9 = SPAN_KEY.value;
                self.remove_tag();
                let asm = &mut self.asm;
                asm.address(Reg::R1, Reg::R10, VALUE_OF_KEY.into());
                asm.set(Reg::R2, read.size.into());
                asm.copy(Reg::R3, Reg::R9);
                asm.call(Helper::ReadUser);
                asm.jump_if(If::NotEqual, Reg::R0, 0, unkeyed);
                asm.load(Width::Double, Reg::R9, Reg::R10, VALUE_OF_KEY);
            }
            // Loads zero-extend.
            if read.signed {
                self.extend(read.size, true);
            }
            // SPAN_KEY.value = signed ? (sN)r9 : (uN)r9;
            if bytes < 8 {
                self.asm.extend(Reg::R9, 64 - 8 * i32::from(bytes), signed);
            }
            self.asm
                .store(Width::Double, Reg::R10, VALUE_OF_KEY, Reg::R9);
        }
    }

    /// Takes the element at `R0`, whose address is in its slot; jumps to `busy` if another program has it, or it is of another key by now. `R0` is its address
    /// again.
    pub(super) fn take_element(&mut self, role: &SpanRole, busy: Label) {
        if !role.is_shared() {
            return;
        }
        let asm = &mut self.asm;
        let (taken, is_used, other) = (asm.label(), asm.label(), asm.label());
        // r0 = cmpxchg(&element->OWNED, 0, 1); if (r0) goto busy;
        asm.copy(Reg::R2, Reg::R0);
        asm.set(Reg::R0, 0);
        asm.set(Reg::R1, 1);
        asm.compare_exchange(Reg::R2, OWNED, Reg::R1);
        asm.jump_if(If::NotEqual, Reg::R0, 0, busy);
        // element = SPAN_ELEMENT; if (element->DEPTH || element->BEYOND) goto is_used;
        asm.load(Width::Double, Reg::R0, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R3, Reg::R10, TASK_OF_KEY);
        asm.load(Width::Double, Reg::R4, Reg::R10, VALUE_OF_KEY);
        for word in [DEPTH, BEYOND] {
            asm.load(Width::Double, Reg::R1, Reg::R0, word);
            asm.jump_if(If::NotEqual, Reg::R1, 0, is_used);
        }
        // element->TASK = SPAN_KEY.task; element->VALUE = SPAN_KEY.value; goto taken;
        asm.store(Width::Double, Reg::R0, TASK, Reg::R3);
        asm.store(Width::Double, Reg::R0, VALUE, Reg::R4);
        asm.jump(taken);
        // is_used: if (element->TASK != SPAN_KEY.task || element->VALUE != SPAN_KEY.value) goto other; goto taken;
        asm.place(is_used);
        for (word, expected) in [(TASK, Reg::R3), (VALUE, Reg::R4)] {
            asm.load(Width::Double, Reg::R1, Reg::R0, word);
            asm.jump_if_reg(If::NotEqual, Reg::R1, expected, other);
        }
        asm.jump(taken);
        // other: element->OWNED = 0; goto busy;
        asm.place(other);
        asm.store_value(Width::Double, Reg::R0, OWNED, 0);
        asm.jump(busy);
        asm.place(taken);
    }

    /// Leaves the element whose address is in its slot. `R1` is lost.
    pub(in crate::engine::bpf) fn leave_element(&mut self) {
        if self.spec.role.is_some_and(SpanRole::is_shared) {
            let asm = &mut self.asm;
            // SPAN_ELEMENT->OWNED = 0;
            asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_ELEMENT);
            asm.store_value(Width::Double, Reg::R1, OWNED, 0);
        }
    }
}
