//! Addresses of strings that a sample does not have: nobody could read them at the hit, or nothing tried to.

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
