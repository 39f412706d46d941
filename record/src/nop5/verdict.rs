//! What is known about 5-byte nops.

/// What is known about 5-byte nops on this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The kernel has never made calls of them.
    NoCalls,
    /// A trial found a trap, and that it harms nobody.
    Sound,
    /// What the trial found, in words.
    Unsound(String),
}
