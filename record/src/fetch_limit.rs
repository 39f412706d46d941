//! What fetch arguments of tracefs events cannot express.

/// A part of an argument list that fetch arguments (Documentation/trace/uprobetracer.rst) cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchLimit {
    /// The process, the thread or the CPU in an expression.
    #[error("arithmetic with pid, tid or cpu")]
    Identity,
    /// Thread-local storage.
    #[error("memory of a thread's own storage")]
    ThreadStorage,
    /// Memory without a register.
    #[error("memory at a constant address")]
    ConstantAddress,
    /// `register + register * scale`.
    #[error("an address of two registers")]
    TwoRegisters,
    /// An address that is narrower than the kernel's `unsigned long`.
    #[error("an address of {bytes} bytes in memory, of which the kernel reads {word}")]
    NarrowAddress {
        /// Its size, bytes.
        bytes: u8,
        /// What the kernel reads, bytes.
        word: u8,
    },
    /// An address that is masked, or cut to fewer bytes.
    #[error("an address that is made otherwise than by adding constants")]
    ComputedAddress,
    /// A register that the kernel has no name for.
    #[error("register {0}")]
    Register(String),
    /// A text whose length is not given by its NUL.
    #[error("bytes(), or a text with its length in another argument")]
    TextLength,
    /// A fetch argument that is longer than the kernel takes.
    #[error("{argument}, which has more than {most} letters")]
    TooLong {
        /// The fetch argument.
        argument: String,
        /// The maximum, bytes.
        most: usize,
    },
}
