//! The filter in a program.
//!
//! A comparison with a value that cannot be read is false: `no`. If a filter rejects a hit after a read of memory that may be there, the hit
//! counts as lost: nobody knows whether the filter is true of it. `R9` has the value to compare.

use usdtrec_decode::SampleField;
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::control;
use super::nonresident::Touch;
use super::program::builder::Program;
use super::program::nonresident_memory::Bytes;
use crate::plan::capture::MIN_POINTER;
use crate::plan::condition::{ComparedString, Condition, MAX_COMM_BYTES, Relation};
use crate::plan::read::FloatType;
use crate::plan::read::{Chain, Read, Start, Step};

/// Stack slots: a word that was read, and a string.
const WORD: i16 = -40;
const STRING: i16 = -304;
/// Not 0 if memory that may be there could not be read.
const UNREAD: i16 = -312;

/// A read of the program's memory to the stack.
#[derive(Clone, Copy)]
struct Reading {
    helper: Helper,
    /// How `R0` compares to 0 if it is successful.
    success: If,
    bytes: i32,
    slot: i16,
}

impl Reading {
    fn word(bytes: u8) -> Self {
        Self {
            helper: Helper::ReadUser,
            success: If::Equal,
            bytes: bytes.into(),
            slot: WORD,
        }
    }

    const fn string(bytes: i32) -> Self {
        Self {
            helper: Helper::ReadUserStr,
            success: If::AtLeastSigned,
            bytes,
            slot: STRING,
        }
    }
}

impl Program<'_> {
    /// Leaves if the filter is not true of the hit.
    pub(super) fn filter(&mut self, condition: &Condition, out: Label) {
        let (passed, rejected) = (self.asm.label(), self.asm.label());
        // UNREAD = 0; if (condition) goto passed;
        self.asm.store_value(Width::Double, Reg::R10, UNREAD, 0);
        self.condition(condition, passed, rejected);
        // rejected: if (!UNREAD) goto out; Control[UNJUDGED]++; Control[LOSSES + 8 * index]++; goto out;
        self.asm.place(rejected);
        self.asm.load(Width::Double, Reg::R1, Reg::R10, UNREAD);
        self.asm.jump_if(If::Equal, Reg::R1, 0, out);
        self.asm.count(control::UNJUDGED);
        self.count_at_site(out);
        self.asm.jump(out);
        self.asm.place(passed);
    }

    /// Faults in the memory at `R9` and reads it again; goes to `no` if that fails.
    fn read_again(&mut self, read: Reading, no: Label) {
        let done = self.asm.label();
        if self.common.touch == Touch::Never {
            // Nothing is mapped at the address of a null pointer's members, and elsewhere nobody knows.
            self.asm.jump_if(If::Below, Reg::R9, MIN_POINTER as i32, no);
        } else {
            // r7 = UNREAD; r8 = bring_in(r9, bytes); UNREAD = r7;
            self.asm.load(Width::Double, Reg::R7, Reg::R10, UNREAD);
            self.bring_in(read.bytes);
            self.asm.store(Width::Double, Reg::R10, UNREAD, Reg::R7);
            // r0 = helper(&slot, bytes, r9); if (r0 is success) goto done; if (r8) goto no;
            self.read_stack(read);
            self.asm.jump_if(read.success, Reg::R0, 0, done);
            self.asm.jump_if(If::NotEqual, Reg::R8, 0, no);
        }
        // UNREAD = 1; goto no;
        self.asm.store_value(Width::Double, Reg::R10, UNREAD, 1);
        self.asm.jump(no);
        self.asm.place(done);
    }

    /// Jumps to `yes` if the condition is true, else to `no`.
    fn condition(&mut self, condition: &Condition, yes: Label, no: Label) {
        match condition {
            Condition::Always => self.asm.jump(yes),
            Condition::Never => self.asm.jump(no),
            Condition::All(conditions) => {
                // if (conditions[0] && conditions[1] && …) goto yes; goto no;
                for condition in conditions {
                    let next = self.asm.label();
                    self.condition(condition, next, no);
                    self.asm.place(next);
                }
                self.asm.jump(yes);
            }
            Condition::Any(conditions) => {
                // if (conditions[0] || conditions[1] || …) goto yes; goto no;
                for condition in conditions {
                    let next = self.asm.label();
                    self.condition(condition, yes, next);
                    self.asm.place(next);
                }
                self.asm.jump(no);
            }
            Condition::Number {
                value,
                relation,
                with,
            } => {
                // if (value relation with) goto yes; goto no;
                self.chain(value, no);
                self.asm.set(Reg::R1, with.cast_signed());
                let when = jump_of(*relation, value.signed);
                self.asm.jump_if_reg(when, Reg::R9, Reg::R1, yes);
                self.asm.jump(no);
            }
            Condition::String { at, string } => {
                self.chain(at, no);
                self.read_string(string, no);
                self.compare_string(string, yes, no);
            }
            Condition::Comm(string) => self.comm(string, yes, no),
        }
    }

    /// `R9` = a value of the hit.
    pub(super) fn chain(&mut self, chain: &Chain, no: Label) {
        match &chain.start {
            Start::Argument(read) => self.argument(read, no),
            Start::Field(field) => self.field(*field, no),
        }
        for step in &chain.steps {
            match *step {
                Step::Add(number) => self.asm.add(Reg::R9, number, Reg::R1),
                Step::And(mask) => {
                    // r9 &= mask;
                    self.asm.set(Reg::R1, mask.cast_signed());
                    self.asm.op(Op::And, Reg::R9, Reg::R1);
                }
                Step::Cut { bytes, signed } => self.extend(bytes, signed),
                Step::Load { bytes, signed } => {
                    self.load(bytes, no);
                    self.extend(bytes, signed);
                }
                Step::Rank(kind) => self.rank(kind, no),
            }
        }
    }

    /// `R9` = a number that is known of each hit.
    fn field(&mut self, field: SampleField, no: Label) {
        let asm = &mut self.asm;
        // r0 = bpf_get_current_pid_tgid(), bpf_get_smp_processor_id() or bpf_get_current_uid_gid();
        match field {
            SampleField::Pid | SampleField::Tid => asm.thread_and_process(),
            SampleField::Cpu => asm.call(Helper::CpuId),
            SampleField::Uid => asm.call(Helper::UidGid),
            SampleField::Comm | SampleField::ProcessString(_) => return asm.jump(no),
        }
        // r9 = field == Pid ? r0 >> 32 : (u32)r0;
        asm.copy(Reg::R9, Reg::R0);
        if field == SampleField::Pid {
            asm.op_value(Op::ShiftRight, Reg::R9, 32);
        } else {
            asm.cut_to_32(Reg::R9);
        }
    }

    /// `R9` = an argument.
    fn argument(&mut self, read: &Read, no: Label) {
        if self.value_or_address(read, no) {
            self.load(read.size, no);
        }
        // Loads zero-extend.
        if read.signed {
            self.extend(read.size, true);
        }
    }

    /// `R9` = the value of its lowest bytes, extended.
    pub(super) fn extend(&mut self, bytes: u8, signed: bool) {
        if bytes >= 8 {
            return;
        }
        // r9 = signed ? (sN)r9 : (uN)r9;
        self.asm.extend(Reg::R9, 64 - 8 * i32::from(bytes), signed);
    }

    /// `R9` = the rank of the floating-point number with the bits in `R9`.
    fn rank(&mut self, kind: FloatType, no: Label) {
        let done = self.asm.label();
        let unused = 64 - 8 * i32::from(kind.bytes());
        let asm = &mut self.asm;
        // r1 = r9 << unused; r9 = r1 << 1 >> (unused + 1); if (r9 > infinity) goto no;
        asm.op_value(Op::ShiftLeft, Reg::R9, unused);
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::ShiftLeft, Reg::R9, 1);
        asm.op_value(Op::ShiftRight, Reg::R9, unused + 1);
        asm.set(Reg::R2, kind.infinity().cast_signed());
        asm.jump_if_reg(If::Above, Reg::R9, Reg::R2, no);
        // if ((s64)r1 < 0) r9 = -r9;
        asm.jump_if(If::AtLeastSigned, Reg::R1, 0, done);
        asm.set(Reg::R2, 0);
        asm.op(Op::Sub, Reg::R2, Reg::R9);
        asm.copy(Reg::R9, Reg::R2);
        asm.place(done);
    }

    /// `R9` = the memory at the address in `R9`.
    fn load(&mut self, bytes: u8, no: Label) {
        let done = self.asm.label();
        if self.spec.arch.pointer_size() == 4 {
            self.asm.cut_to_32(Reg::R9);
        }
        self.remove_tag();
        // if (bpf_probe_read_user(&WORD, bytes, r9)) { bring_in_or_fail(bytes, no) or read_again(no); }
        let read = Reading::word(bytes);
        self.read_stack(read);
        self.asm.jump_if(read.success, Reg::R0, 0, done);
        if self.writes_values {
            self.bring_in_or_fail(Bytes::Number(bytes.into()), no);
        } else {
            self.read_again(read, no);
        }
        self.asm.place(done);
        // r9 = *(uN *)&WORD;
        self.asm
            .load(Width::from_bytes(bytes), Reg::R9, Reg::R10, WORD);
    }

    /// Reads as much of the string at `R9` as the comparison needs; `R0` = number of bytes read, including the NUL.
    fn read_string(&mut self, string: &ComparedString, no: Label) {
        let size = string.bytes.len() as i32 + if string.is_prefix { 1 } else { 2 };
        let (is_read, done) = (self.asm.label(), self.asm.label());
        if self.spec.arch.pointer_size() == 4 {
            self.asm.cut_to_32(Reg::R9);
        }
        self.remove_tag();
        // r0 = bpf_probe_read_user_str(&STRING, size, r9); if ((s64)r0 < 0) read_again(no);
        let read = Reading::string(size);
        self.read_stack(read);
        self.asm.jump_if(read.success, Reg::R0, 0, is_read);
        self.read_again(read, no);
        self.asm.place(is_read);
        // For an empty string, kernels before 6.16 do not count the NUL.
        // if (!r0) r0 = 1;
        self.asm.jump_if(If::NotEqual, Reg::R0, 0, done);
        self.asm.set(Reg::R0, 1);
        self.asm.place(done);
    }

    /// Compares the string on the stack, of which `R0` bytes were read, with the filter's.
    fn compare_string(&mut self, string: &ComparedString, yes: Label, no: Label) {
        let (same, other) = if string.negated { (no, yes) } else { (yes, no) };
        let len = string.bytes.len() as i32;
        let when = if string.is_prefix {
            If::Below
        } else {
            If::NotEqual
        };
        // if (is_prefix ? r0 < len + 1 : r0 != len + 1) goto other;
        self.asm.jump_if(when, Reg::R0, len + 1, other);
        // if (memcmp(&STRING, bytes, len)) goto other; goto same;
        self.compare_bytes(&string.bytes, other);
        self.asm.jump(same);
    }

    /// Jumps to `other` unless the string on the stack begins with these bytes.
    fn compare_bytes(&mut self, bytes: &[u8], other: Label) {
        for (at, part) in (STRING..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            // if (memcmp(&STRING[at], part, part.len())) goto other;
            self.asm.load(Width::Double, Reg::R1, Reg::R10, at);
            let beyond = 64 - 8 * part.len() as i32;
            if beyond > 0 {
                self.asm.extend(Reg::R1, beyond, false);
            }
            self.asm.set(Reg::R2, i64::from_le_bytes(word));
            self.asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, other);
        }
    }

    fn comm(&mut self, string: &ComparedString, yes: Label, no: Label) {
        let (same, other) = if string.negated { (no, yes) } else { (yes, no) };
        let mut bytes = string.bytes.clone();
        if !string.is_prefix {
            bytes.push(0);
        }
        // bpf_get_current_comm(&STRING, MAX_COMM_BYTES + 1); if (memcmp(&STRING, bytes, len)) goto other; goto same;
        self.asm.address(Reg::R1, Reg::R10, STRING.into());
        self.asm.set(Reg::R2, MAX_COMM_BYTES as i64 + 1);
        self.asm.call(Helper::Comm);
        self.compare_bytes(&bytes, other);
        self.asm.jump(same);
    }

    /// Reads memory at `R9` to the stack. If fewer than 8 bytes are read, the rest of the word is 0.
    fn read_stack(&mut self, read: Reading) {
        if read.slot == STRING {
            // memset(&STRING, 0, (bytes / 8 + 1) * 8);
            for at in (STRING..).step_by(8).take(read.bytes as usize / 8 + 1) {
                self.asm.store_value(Width::Double, Reg::R10, at, 0);
            }
        }
        let asm = &mut self.asm;
        // r0 = helper(&slot, bytes, r9);
        asm.address(Reg::R1, Reg::R10, read.slot.into());
        asm.set(Reg::R2, read.bytes.into());
        asm.copy(Reg::R3, Reg::R9);
        asm.call(read.helper);
    }
}

const fn jump_of(relation: Relation, signed: bool) -> If {
    match (relation, signed) {
        (Relation::Equal, _) => If::Equal,
        (Relation::NotEqual, _) => If::NotEqual,
        (Relation::Less, false) => If::Below,
        (Relation::LessOrEqual, false) => If::AtMost,
        (Relation::Greater, false) => If::Above,
        (Relation::GreaterOrEqual, false) => If::AtLeast,
        (Relation::Less, true) => If::BelowSigned,
        (Relation::LessOrEqual, true) => If::AtMostSigned,
        (Relation::Greater, true) => If::AboveSigned,
        (Relation::GreaterOrEqual, true) => If::AtLeastSigned,
    }
}
