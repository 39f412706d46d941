//! The verdict on 5-byte nops.

/// Whether 5-byte nops are safe on this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The kernel does not replace them by calls.
    NoCalls,
    /// A trial found a trap without side effects.
    Sound,
    /// What the trial found, in words.
    Unsound(String),
}
