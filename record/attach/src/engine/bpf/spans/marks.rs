//! Words of the arguments that begin and end of a span must have in common.
//!
//! A number is its word, sign-extended as its field says. A string is a hash of its length and its first bytes.

use usdtrec_format::RawString;
use usdtrec_kernel::bpf::insn::{Op, Reg, Width};

use super::super::program::builder::Program;
use super::super::slots;
use super::role::MarkField;

/// Bytes of a string that are compared, at most. Of longer ones the length is compared, too.
const COMPARED: usize = 256;
/// An odd number: multiplying by it loses nothing.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Program<'_> {
    /// Writes zeros to where the strings of marks are read: what follows a string is hashed, too.
    pub(super) fn clear_strings(&mut self, fields: &[MarkField]) {
        for field in fields {
            if let MarkField::String(string) = *field {
                self.clear_string(string);
            }
        }
    }

    /// Writes zeros to where a string is read, as far as it is compared.
    pub(in crate::engine::bpf) fn clear_string(&mut self, string: RawString) {
        // memset(string, 0, min(room.each, COMPARED) / 8 * 8);
        for at in self.string_words(string) {
            self.asm.store_value(Width::Double, Reg::R7, at, 0);
        }
    }

    /// Stores which arguments are known, and the word of each, in their slots. The record at `R7` is written, and `R8` has the bits of values
    /// that could not be read.
    pub(super) fn marks(&mut self, fields: &[MarkField], most: u32) {
        // memset(SPAN_MARKS, 0, 8 * (most + 1));
        for slot in 0..=most {
            let at = slots::SPAN_MARKS + 8 * slot as i16;
            self.asm.store_value(Width::Double, Reg::R10, at, 0);
        }
        for (number, field) in (0..).zip(fields) {
            let unknown = self.asm.label();
            match *field {
                MarkField::Number {
                    field,
                    bytes,
                    signed,
                } => {
                    // if (unread >> bit & 1) goto unknown; r1 = signed ? (sN)raw->field : (uN)raw->field;
                    if let Some(bit) = field.fault {
                        self.if_unreadable(bit, unknown);
                    }
                    self.get(Width::from_bytes(field.size), Reg::R1, field.offset);
                    if bytes < 8 {
                        self.asm.extend(Reg::R1, 64 - 8 * i32::from(bytes), signed);
                    }
                }
                MarkField::String(string) => {
                    // r1 = (s16)string->status; if ((s64)r1 < 0) goto unknown;
                    self.string_length(string, unknown);
                    // for each word of the string: r1 = (r1 ^ word) * FACTOR;
                    self.asm.set(Reg::R3, FACTOR.cast_signed());
                    for at in self.string_words(string) {
                        let asm = &mut self.asm;
                        asm.load(Width::Double, Reg::R2, Reg::R7, at);
                        asm.op(Op::Xor, Reg::R1, Reg::R2);
                        asm.op(Op::Multiply, Reg::R1, Reg::R3);
                    }
                }
                MarkField::Unknown => {
                    self.asm.place(unknown);
                    continue;
                }
            }
            let asm = &mut self.asm;
            // SPAN_MARKS[number + 1] = r1;
            asm.store(
                Width::Double,
                Reg::R10,
                slots::SPAN_MARKS + 8 * (number + 1),
                Reg::R1,
            );
            // SPAN_MARKS[0] |= 1 << number;
            asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_MARKS);
            asm.op_value(Op::Or, Reg::R1, 1 << number);
            asm.store(Width::Double, Reg::R10, slots::SPAN_MARKS, Reg::R1);
            asm.place(unknown);
        }
    }

    /// Offsets in the record of the words of a string that are compared.
    fn string_words(&self, string: RawString) -> impl Iterator<Item = i16> + use<> {
        let start = i32::from(self.target.offset) + self.room_at(self.index(string));
        let bytes = self.room.each.min(COMPARED) / 8 * 8;
        (0..bytes)
            .step_by(8)
            .map(move |at| start as i16 + at as i16)
    }
}
