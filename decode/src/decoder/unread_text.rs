//! Addresses of texts that a sample does not have: nobody could read them at the hit, or nothing tried to.

/// What says that an argument is the address of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEvidence {
    /// Its type.
    Declared,
    /// Other hits of the site, or a filter: the bytes must look like a text, which may be short.
    OtherHits,
    /// Nothing but the size of an address: the bytes must look like a text.
    Size,
}

impl TextEvidence {
    /// The same after other hits, or a filter, have said whether the argument is a text.
    pub(super) const fn learned(self, is_text: bool) -> Self {
        match (self, is_text) {
            (Self::Declared, _) => self,
            (_, true) => Self::OtherHits,
            (_, false) => Self::Size,
        }
    }
}

/// An argument whose text a sample does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadText {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// The address.
    pub address: u64,
    /// Why a text may be there.
    pub evidence: TextEvidence,
    /// Maximum length of the text, bytes.
    pub limit: u16,
}

/// Maximum length of a text where the recording has no limit, bytes: perf events record no texts.
pub(super) const LIMIT: u16 = 255;
/// Least address of a text: nothing is mapped below (`vm.mmap_min_addr`).
pub(super) const MIN_ADDRESS: u64 = 1 << 16;
