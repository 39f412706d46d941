//! What a program gets with a hit: the cookie of the site (`bpf_get_attach_cookie`).
//!
//! | bits | |
//! |---|---|
//! | 0 to 29 | index of the sample id |
//! | 30 | whether the link is one for all processes, though recorded processes have links of their own |
//! | 32 to 47 | which of the program's variants is for the site |
//! | 48 to 63 | `common_type` of its raw part |

/// What a program gets with a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Cookie {
    /// `common_type` of the raw part.
    pub(in crate::engine::bpf) event: u16,
    /// Which of the program's variants is for the site.
    pub(in crate::engine::bpf) variant: u16,
    /// Whether the link is one for all processes, though recorded processes have links of their own.
    pub(in crate::engine::bpf) is_everywhere: bool,
    /// Index of the sample id.
    pub(in crate::engine::bpf) index: u32,
}

impl Cookie {
    /// Bits of the index.
    pub(super) const INDEX_BITS: u32 = 30;
    /// The bit of links for all processes.
    pub(super) const EVERYWHERE: i32 = 1 << Self::INDEX_BITS;
    /// Where the variant begins.
    pub(super) const VARIANT_AT: u32 = 32;
    /// Where the event begins.
    pub(in crate::engine::bpf) const EVENT_AT: u32 = 48;

    /// As a number.
    pub(in crate::engine::bpf) const fn word(self) -> u64 {
        (self.event as u64) << Self::EVENT_AT
            | (self.variant as u64) << Self::VARIANT_AT
            | (self.is_everywhere as u64) << Self::INDEX_BITS
            | self.index as u64 & ((1 << Self::INDEX_BITS) - 1)
    }
}
