//! Addresses of strings that a sample does not have: nobody could read them at the hit, or nothing tried to. Constants of notes may be such addresses:
//! of literals of a program that is linked to a fixed address.

use usdtrec_format::{Arch, Constant, Location, Operand, Value};

/// A constant that may be the address of a string.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantAddress {
    /// Index of the argument.
    pub(super) slot: usize,
    address: u64,
    /// What says that it is the address of a string; `None` if it is not.
    pub(super) string: Option<StringEvidence>,
}

impl ConstantAddress {
    /// That of an operand with this value; `None` if it is no address.
    pub(super) fn from_operand(
        slot: usize,
        operand: &Operand,
        arch: Arch,
        value: &Value,
    ) -> Option<Self> {
        let (Location::Constant(Constant::Integer(_)), Value::Unsigned(address)) =
            (&operand.location, value)
        else {
            return None;
        };
        let is_address = operand.size == Some(arch.pointer_size())
            && operand.signed == Some(false)
            && !operand.float;
        (is_address && *address >= MIN_ADDRESS).then_some(Self {
            slot,
            address: *address,
            string: Some(StringEvidence::Size),
        })
    }

    /// The string at its address, which no sample has.
    pub(super) fn unread_string(&self) -> Option<UnreadString> {
        Some(UnreadString {
            argument: self.slot,
            address: self.address,
            evidence: self.string?,
            limit: LIMIT,
        })
    }

    /// Replaces the string of another sample by the constant.
    pub(super) fn reset(&self, values: &mut [Value]) {
        if let Some(value) = values.get_mut(self.slot)
            && matches!(value, Value::String(_))
        {
            *value = Value::Unsigned(self.address);
        }
    }
}

/// What says that an argument is the address of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringEvidence {
    /// Its type.
    Declared,
    /// Other hits of the site, or a filter: the bytes must look like a string, which may be short.
    OtherHits,
    /// Nothing but the size of an address: the bytes must look like a string.
    Size,
}

impl StringEvidence {
    /// The same after other hits, or a filter, have said whether the argument is a string.
    pub(super) const fn learned(self, is_string: bool) -> Self {
        match (self, is_string) {
            (Self::Declared, _) => self,
            (_, true) => Self::OtherHits,
            (_, false) => Self::Size,
        }
    }
}

/// An argument whose string a sample does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadString {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// The address.
    pub address: u64,
    /// Why a string may be there.
    pub evidence: StringEvidence,
    /// Maximum length of the string, bytes.
    pub limit: u16,
}

/// Maximum length of a string where the recording has no limit, bytes: perf events record no strings.
pub(super) const LIMIT: u16 = 255;
/// Least address of a string: nothing is mapped below (`vm.mmap_min_addr`).
pub(super) const MIN_ADDRESS: u64 = 1 << 16;
