//! Constants of notes that may be addresses of strings: literals of a program that is linked to a fixed address.

use usdtrec_format::{Arch, Constant, Location, Operand, Value};

use super::unread_string::{self, StringEvidence, UnreadString};

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
        (is_address && *address >= unread_string::MIN_ADDRESS).then_some(Self {
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
            limit: unread_string::LIMIT,
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
