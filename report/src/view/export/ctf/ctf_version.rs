//! Versions of the format.

/// A version: they differ in the metadata alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CtfVersion {
    /// 1.8, whose metadata is TSDL, a language of its own.
    One,
    /// 2 (CTF2-SPEC-2.0), whose metadata is JSON.
    Two,
}
