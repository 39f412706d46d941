//! The map of the different stacks of hits: programs that add to it, and the recorder, which reads it.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use usdtrec_format::perf::put_callchain;
use usdtrec_kernel::bpf::insn::{
    Assembler, FunctionKind, Helper, IS_NEW, If, Label, Map, Op, Reg, Width,
};
use usdtrec_kernel::bpf::sys::{self, MapKind};

use super::super::contract::instruction_pointer;
use super::super::program::builder::Program;
use super::super::samples::with_stack::chain;
use super::super::slots;
use super::grouping::{Grouping, KEY};
use super::stack_layout::{CALLERS, END, FIXED_WORDS, ID, IP, PID, StackLayout, TIME};
use crate::aggregation::{AggregateKey, CountedStack};
use crate::engine::numbers::u64_at;

/// The map, and the stacks that were read of it.
#[derive(Debug)]
pub(super) struct StackMap {
    descriptor: OwnedFd,
    layout: StackLayout,
    known: Mutex<HashMap<u64, Arc<CountedStack>>>,
}

impl StackMap {
    /// An empty map.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(super) fn new(layout: StackLayout) -> io::Result<Self> {
        Ok(Self {
            descriptor: sys::create_map(MapKind::Hash, layout.shape())?,
            layout,
            known: Mutex::default(),
        })
    }

    /// The stack with this number; `None` if it cannot be read.
    pub(super) fn get(&self, number: u64) -> Option<Arc<CountedStack>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = known.get(&number) {
            return Some(Arc::clone(stack));
        }
        let mut element = vec![0; self.layout.bytes() as usize];
        sys::read_element(self.descriptor.as_fd(), number, &mut element).ok()?;
        let stack = Arc::new(decode(number, &element)?);
        known.insert(number, Arc::clone(&stack));
        Some(stack)
    }
}

impl AsFd for StackMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The stack of an element.
fn decode(number: u64, element: &[u8]) -> Option<CountedStack> {
    /// The number of words before the addresses.
    const COUNT: usize = 8;
    let word = |at: i16| u64_at(element, at.cast_unsigned().into());
    let (cut, callers) = chain(element.get(END.cast_unsigned().into()..)?)?;
    let (callers, _) = callers.as_chunks::<8>();
    let ip = word(IP)?;
    let callers = callers.iter().map(|word| u64::from_ne_bytes(*word));
    let addresses: Vec<u64> = std::iter::once(ip).chain(callers).collect();
    let mut callchain = Vec::new();
    put_callchain(&addresses, cut, &mut callchain);
    Some(CountedStack {
        number,
        id: word(ID)?,
        pid: word(PID)? as i32,
        time: word(TIME)?,
        ip,
        callchain: callchain.split_off(COUNT),
    })
}

/// What hashes begin with, and what they are multiplied by: fractional digits of pi, and of the golden ratio, odd.
const SEED: i64 = 0x243f_6a88_85a3_08d3;
const FACTOR: i64 = 0x9e37_79b9_7f4a_7c15_u64.cast_signed();
/// Stack slot of the function: the hash.
const HASH: i16 = -8;

impl Program<'_> {
    /// Writes the number of the hit's stack to the key in the slot; jumps to `none` if the map has no room for the stack, or its hash is that of another
    /// one.
    pub(super) fn put_stack(&mut self, grouping: &Grouping, none: Label) {
        let place = grouping.key.at(&AggregateKey::Stack);
        let (Some(stacks), Some(key)) = (grouping.stacks, place) else {
            return;
        };
        let at = grouping.stack_at();
        self.ends = vec![stacks.end_bytes()];
        self.load_index();
        let first_id = self.common.first_id.cast_signed();
        let pc = instruction_pointer(self.spec.arch);
        let asm = &mut self.asm;
        // stack->ID = first_id + index; stack->PID = bpf_get_current_pid_tgid() >> 32;
        asm.add(Reg::R0, first_id, Reg::R2);
        asm.store(Width::Double, Reg::R7, at + ID, Reg::R0);
        asm.thread_and_process();
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.store(Width::Double, Reg::R7, at + PID, Reg::R0);
        // stack->IP = PT_REGS_IP(ctx); stack->TIME = bpf_ktime_get_ns();
        asm.load(Width::Double, Reg::R1, Reg::R6, pc);
        asm.store(Width::Double, Reg::R7, at + IP, Reg::R1);
        asm.call(Helper::KtimeNs);
        asm.store(Width::Double, Reg::R7, at + TIME, Reg::R0);
        // Following frame pointers takes these registers.
        // CONTEXT = ctx; UNREAD = unread; STACK_END = stacks.end_bytes(); r8 = stack + END;
        asm.store(Width::Double, Reg::R10, slots::CONTEXT, Reg::R6);
        let has_unread = self.spec.layout.missing.is_some();
        if has_unread {
            asm.store(Width::Double, Reg::R10, slots::UNREAD, Reg::R8);
        }
        asm.set(Reg::R1, stacks.end_bytes() as i64);
        asm.store(Width::Double, Reg::R10, slots::STACK_END, Reg::R1);
        asm.address(Reg::R8, Reg::R7, (at + END).into());
        self.follow_frame_pointers();
        let number = self.stack_number(stacks);
        let asm = &mut self.asm;
        // ctx = CONTEXT; unread = UNREAD;
        asm.load(Width::Double, Reg::R6, Reg::R10, slots::CONTEXT);
        if has_unread {
            asm.load(Width::Double, Reg::R8, Reg::R10, slots::UNREAD);
        }
        // r0 = number(stack, 0, 0); if (!r0) goto none; key->stack = r0;
        asm.address(Reg::R1, Reg::R7, at.into());
        asm.set(Reg::R2, 0);
        asm.set(Reg::R3, 0);
        asm.call_function(number);
        asm.jump_if(If::Equal, Reg::R0, 0, none);
        asm.store(Width::Double, Reg::R7, KEY + key as i16, Reg::R0);
    }

    /// The function that finds numbers of stacks, which is written later.
    fn stack_number(&mut self, stacks: StackLayout) -> Label {
        let asm = &mut self.asm;
        let (_, label) = *self
            .stack_number
            .get_or_insert_with(|| (stacks, asm.label()));
        label
    }

    /// Writes the function that finds numbers of stacks.
    pub(in crate::engine::bpf) fn write_stack_number(&mut self) {
        if let Some((stacks, label)) = self.stack_number.take() {
            let kind = FunctionKind::WithMemory {
                bytes: stacks.bytes(),
            };
            self.asm.function(label, kind);
            StackNumber {
                asm: &mut self.asm,
                stacks,
            }
            .write();
        }
    }
}

/// A function that finds the number of a stack, whose address is `R1` at first: `R0` = the number; 0 if there is none.
///
/// The verifier checks it once, and not for each hit and each state of the rest of the program.
struct StackNumber<'a> {
    asm: &'a mut Assembler,
    stacks: StackLayout,
}

impl StackNumber<'_> {
    /// `R6` is the address of the stack, `R7` the number of its words, `R8` the hash, `R9` the number of words before the one at hand.
    fn write(mut self) {
        let asm = &mut *self.asm;
        let (none, found) = (asm.label(), asm.label());
        // stack = r1; if (!stack) goto none;
        asm.copy(Reg::R6, Reg::R1);
        // The verifier only knows that it may be 0.
        asm.jump_if(If::Equal, Reg::R6, 0, none);
        self.hash(none);
        let asm = &mut *self.asm;
        // HASH = hash(stack); element = bpf_map_lookup_elem(&Stacks, &HASH); if (element) goto found;
        asm.store(Width::Double, Reg::R10, HASH, Reg::R8);
        asm.call_map(Helper::MapLookup, Map::Stacks, HASH);
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
        // bpf_map_update_elem(&Stacks, &HASH, stack, BPF_NOEXIST);
        asm.copy(Reg::R3, Reg::R6);
        asm.set(Reg::R4, IS_NEW);
        asm.call_map(Helper::MapUpdate, Map::Stacks, HASH);
        // Another CPU may have added it, or another stack with this hash.
        // element = bpf_map_lookup_elem(&Stacks, &HASH); if (!element) goto none;
        asm.call_map(Helper::MapLookup, Map::Stacks, HASH);
        asm.jump_if(If::Equal, Reg::R0, 0, none);
        // found: if (memcmp(&element->ID, &stack->ID, 8 * words)) goto none; return hash; none: return 0;
        asm.place(found);
        self.compare(none);
        let asm = &mut *self.asm;
        asm.copy(Reg::R0, Reg::R8);
        asm.exit();
        asm.place(none);
        asm.exit_with(0);
    }

    /// `R8` = the hash of the stack, not 0.
    fn hash(&mut self, none: Label) {
        let (next, hashed, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        // hash = SEED; for (n = 0; n < words; n++) { hash = (hash ^ (&stack->ID)[n]) * FACTOR; hash ^= hash >> 32; }
        self.asm.set(Reg::R8, SEED);
        self.asm.set(Reg::R3, FACTOR);
        self.begin_words(none);
        self.asm.place(next);
        self.end_words(hashed);
        let asm = &mut *self.asm;
        asm.op(Op::Add, Reg::R1, Reg::R6);
        asm.load(Width::Double, Reg::R2, Reg::R1, ID);
        asm.op(Op::Xor, Reg::R8, Reg::R2);
        asm.op(Op::Multiply, Reg::R8, Reg::R3);
        asm.copy(Reg::R1, Reg::R8);
        asm.op_value(Op::ShiftRight, Reg::R1, 32);
        asm.op(Op::Xor, Reg::R8, Reg::R1);
        asm.op_value(Op::Add, Reg::R9, 1);
        asm.jump(next);
        // hashed: if (!hash) hash = 1;
        asm.place(hashed);
        asm.jump_if(If::NotEqual, Reg::R8, 0, done);
        asm.set(Reg::R8, 1);
        asm.place(done);
    }

    /// Jumps to `other` unless the stack is that of the element at `R0`.
    fn compare(&mut self, other: Label) {
        let (next, same) = (self.asm.label(), self.asm.label());
        // for (n = 0; n < words; n++) if ((&stack->ID)[n] != (&element->ID)[n]) goto other;
        self.begin_words(other);
        self.asm.place(next);
        self.end_words(same);
        let asm = &mut *self.asm;
        asm.copy(Reg::R2, Reg::R1);
        asm.op(Op::Add, Reg::R1, Reg::R6);
        asm.load(Width::Double, Reg::R1, Reg::R1, ID);
        asm.op(Op::Add, Reg::R2, Reg::R0);
        asm.load(Width::Double, Reg::R2, Reg::R2, ID);
        asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, other);
        asm.op_value(Op::Add, Reg::R9, 1);
        asm.jump(next);
        asm.place(same);
    }

    /// Before the first word. The number of words is loaded anew, so that the verifier knows nothing of it that a loop before has shown.
    fn begin_words(&mut self, none: Label) {
        let asm = &mut *self.asm;
        // words = stack->CALLERS; if (words > stacks.callers()) goto none; words += FIXED_WORDS; n = 0;
        asm.load(Width::Double, Reg::R7, Reg::R6, CALLERS);
        asm.jump_if(If::Above, Reg::R7, self.stacks.callers(), none);
        asm.op_value(Op::Add, Reg::R7, FIXED_WORDS);
        asm.set(Reg::R9, 0);
    }

    /// `R1` = offset of the next word after that of the first; jumps to `end` if there is none.
    fn end_words(&mut self, end: Label) {
        let asm = &mut *self.asm;
        // if (n >= stacks.callers() + FIXED_WORDS || n >= words) goto end; r1 = 8 * n;
        // The verifier knows the number of the word in each round, so that it knows that there is an end.
        asm.jump_if(
            If::AtLeast,
            Reg::R9,
            self.stacks.callers() + FIXED_WORDS,
            end,
        );
        asm.jump_if_reg(If::AtLeast, Reg::R9, Reg::R7, end);
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::ShiftLeft, Reg::R1, 3);
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{ChainCut, Sample};

    use super::super::stack_layout::MAX_BYTES;
    use super::*;
    use crate::plan::call_graph::CallGraph;

    #[test]
    fn elements_are_stacks() {
        let layout = StackLayout::with(3);
        let cut = ChainCut::NoFrame;
        let words = [
            77,
            9,
            1234,
            0x1000,
            cut.marks() as u64,
            2,
            0x2000,
            0x3000,
            5,
        ];
        let element: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(element.len(), layout.bytes() as usize);
        let stack = decode(42, &element).expect("a stack");
        assert_eq!((stack.number, stack.id, stack.pid), (42, 9, 1234));
        assert_eq!((stack.time, stack.ip), (77, 0x1000));
        let sample = Sample {
            callchain: &stack.callchain,
            ..Sample::default()
        };
        let addresses: Vec<u64> = sample.callers().collect();
        assert_eq!(addresses, [0x1000, 0x2000, 0x3000]);
        assert_eq!(sample.chain_cut(), Some(cut));
        let bad: Vec<u8> = [1, 2, 3, 4, 0, 4, 0, 0, 0_u64]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(decode(1, &bad), None, "more callers than there is room for");
        assert_eq!(decode(1, &element[..40]), None);
    }

    #[test]
    fn the_map_is_bounded() {
        for frames in [1, 127, CallGraph::MAX_FRAMES] {
            let layout = StackLayout { frames };
            assert!(layout.map_bytes() <= MAX_BYTES as usize, "{frames}");
            assert!(layout.shape().entries > 1000, "{frames}");
        }
    }
}
