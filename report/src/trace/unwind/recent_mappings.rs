//! Mappings of addresses that were looked up before: stacks have the same return addresses again and again.

use foldhash::HashMap;

use crate::trace::process::{Mapping, Mappings};

/// Addresses that are kept; then all are looked up anew.
const MOST: usize = 1 << 14;

/// Mappings of addresses that were looked up before.
#[derive(Debug, Default)]
pub(super) struct RecentMappings {
    /// By process and address.
    known: HashMap<(i32, u64), KnownMapping>,
}

/// What a process has at an address.
#[derive(Clone, Copy, Debug)]
struct KnownMapping {
    /// A time at which it was looked up, ns.
    from: u64,
    /// When the mappings of the process change after it, ns.
    until: u64,
    mapping: Option<Mapping>,
}

impl RecentMappings {
    /// What a process has mapped at an address at a time.
    pub(super) fn find(
        &mut self,
        mappings: &Mappings,
        pid: i32,
        address: u64,
        time: u64,
    ) -> Option<Mapping> {
        let known = self.known.get(&(pid, address));
        if let Some(known) = known.filter(|known| (known.from..known.until).contains(&time)) {
            return known.mapping;
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let found = KnownMapping {
            from: time,
            until: mappings.mappings_until(pid, time),
            mapping: mappings.mapping(pid, address, time),
        };
        self.known.insert((pid, address), found);
        found.mapping
    }
}
