//! Where a program writes the values of a hit.
//!
//! What is loaded ([`values`](super::values), [`string`](super::string)) does not depend on it. It is the raw part of a record, or of the key of
//! a group ([`aggregate`](super::super::aggregate)). Each target is laid out as a [`RawLayout`](usdtrec_format::RawLayout), with the room for the
//! strings after it.

use usdtrec_kernel::bpf::insn::Reg;

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
    pub(super) const fn at(self, offset: u16) -> i16 {
        self.offset + offset.cast_signed()
    }
}
