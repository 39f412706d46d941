//! Where a program writes the values of a hit.
//!
//! What is loaded ([`values`](super::values), [`text`](super::text)) does not depend on it. It is the raw part of a record today; the unit
//! tests write the key of a map on the stack. Each target is laid out as a [`RawLayout`](usdtrec_format::RawLayout), with the room for the
//! strings after it.

use super::super::insn::{Reg, Width};
use super::builder::Program;
use super::sample_record::RAW;

/// Memory that values are written to: at an offset from the address in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Target {
    /// The register, which calls preserve.
    pub(in crate::engine::bpf) base: Reg,
    /// Offset of the layout.
    pub(in crate::engine::bpf) offset: i16,
}

impl Target {
    /// The raw part of the record that is reserved.
    pub(in crate::engine::bpf) const RECORD: Self = Self {
        base: Reg::R7,
        offset: RAW as i16,
    };

    /// Offset from the register of an offset in the layout.
    const fn at(self, offset: u16) -> i16 {
        self.offset + offset.cast_signed()
    }
}

impl Program<'_> {
    /// `to` = the word at an offset of the layout, zero-extended.
    pub(in crate::engine::bpf) fn get(&mut self, width: Width, to: Reg, offset: u16) {
        let Target { base, .. } = self.target;
        self.asm.load(width, to, base, self.target.at(offset));
    }

    /// Writes a register at an offset of the layout.
    pub(in crate::engine::bpf) fn put(&mut self, width: Width, offset: u16, from: Reg) {
        let Target { base, .. } = self.target;
        self.asm.store(width, base, self.target.at(offset), from);
    }

    /// Writes a number at an offset of the layout.
    pub(in crate::engine::bpf) fn put_value(&mut self, width: Width, offset: u16, value: i32) {
        let Target { base, .. } = self.target;
        self.asm
            .store_value(width, base, self.target.at(offset), value);
    }

    /// `to` = the address of an offset of the layout, or of the strings after it.
    pub(in crate::engine::bpf) fn address_in_target(&mut self, to: Reg, offset: i32) {
        let Target {
            base,
            offset: start,
        } = self.target;
        self.asm.address(to, base, i32::from(start) + offset);
    }

    /// Offset of the room for a string, by the string's index.
    pub(in crate::engine::bpf) fn room_at(&self, index: usize) -> i32 {
        (usize::from(self.spec.layout.size) + index * self.room.each) as i32
    }
}
