//! Why the frames of a stack end.
//!
//! The kernel saves on the stack of a signal's handler whether that is another one (`uc_stack`). So a cut there has a
//! reason of its own: the stack that was interrupted was not copied, and no larger copy would have it.

/// Why unwinding ended. All but [`Outermost`](Self::Outermost) cut the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// With the outermost frame: its table says that it has no caller, or its return address is 0.
    Outermost,
    /// There are more frames than requested.
    Limit,
    /// The next frame is above the end of the copy of the stack.
    CopyEnds,
    /// The memory at this address is needed, which is not in the copy of the stack.
    NotCopied(u64),
    /// The last frame is on the stack from which a signal's handler switched to another one, and only that one was copied.
    OtherStack,
    /// Nothing is known of the code at the last frame.
    NoCode,
    /// The last frame has no unwind tables, and its frame pointer leads to no frame above it, or to no code.
    NoFrame,
    /// The unwind tables of the last frame's file have no entry for its address.
    NoEntry,
    /// The entry for the last frame's address, or its common part, is longer than is evaluated.
    LongEntry,
    /// The entry for the last frame's address cannot be parsed.
    BadEntry,
    /// An expression in the entry for the last frame's address cannot be evaluated, or takes too many operations.
    BadExpression,
    /// The register of this column is needed, which is not known.
    UnknownRegister(u16),
    /// The entries and expressions of the stack's frames are more work than a stack may cause.
    TooMuchWork,
    /// The caller's frame would be below its callee's, or the same.
    NotAbove,
}
