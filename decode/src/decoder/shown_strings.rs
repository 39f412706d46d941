//! Where other hits of a site say that an argument is the address of a string.

use usdtrec_format::trace::StringArgument;

/// Maximum number of single addresses.
const MAX_ADDRESSES: usize = 1024;

/// What the hits of a site have shown of an argument.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownStrings {
    /// Everywhere.
    all: bool,
    /// At single addresses.
    addresses: Vec<u64>,
}

impl ShownStrings {
    pub(super) fn learn(&mut self, learned: &StringArgument) {
        match learned.address {
            None => self.all = learned.is_string,
            Some(address) if !learned.is_string => self.addresses.retain(|known| *known != address),
            Some(address)
                if self.addresses.len() < MAX_ADDRESSES && !self.addresses.contains(&address) =>
            {
                self.addresses.push(address);
            }
            Some(_) => {}
        }
    }

    /// Whether there is a string at an address.
    pub(super) fn has(&self, address: u64) -> bool {
        self.all || self.addresses.contains(&address)
    }
}
