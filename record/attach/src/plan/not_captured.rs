//! Why an argument's value is not read at a hit.

use thiserror::Error;
use usdtrec_format::OperandError;

/// Why an argument's value is not read at a hit. The trace stores the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotCaptured {
    /// The operand cannot be parsed.
    #[error("{text}: {error}")]
    Unparsed {
        /// The operand's text.
        text: String,
        /// Why it cannot be parsed.
        error: OperandError,
    },
    /// No program has code for this kind of operand.
    #[error("unsupported kind of operand")]
    Operand,
    /// Numbers have 1, 2, 4, 8 or more bytes.
    #[error("value of {0} bytes")]
    Size(u8),
    /// Floating-point numbers have 4 or 8 bytes.
    #[error("{0}-byte float")]
    FloatSize(u8),
    /// A floating-point number does not fit into the named part of a register, both in bytes.
    #[error("{size}-byte float in {width} bytes of a register")]
    FloatInRegister { size: u8, width: u8 },
    /// A constant that is a floating-point number, in an expression.
    #[error("constant float")]
    ConstantFloat,
    /// The kernel does not give this register at a hit.
    #[error("{0} not captured")]
    Register(&'static str),
    /// An index register that is narrower than an address.
    #[error("widened index register not captured")]
    WidenedIndex,
    /// A symbol with a base and an index, whose address is not known when linked.
    #[error("{0} with two registers not captured")]
    TwoRegisters(String),
    /// Memory in a segment that is not that of the thread, or whose base is not available.
    #[error("memory in segment {0} not captured")]
    Segment(&'static str),
    /// Thread-local memory of which no register has the base.
    #[error("thread-local memory without its base")]
    NoThreadBase,
    /// A thread-local symbol by a relocation that does not count from the thread's base.
    #[error("thread-local {symbol}@{relocation} not captured")]
    ThreadRelocation {
        /// The symbol's name.
        symbol: String,
        /// The relocation, without `@`.
        relocation: String,
    },
    /// Where a library's thread-local storage is differs between processes.
    #[error("offset of {0} in thread-local storage unknown for a library")]
    ThreadOffset(String),
    /// The dynamic linker may choose another file's symbol.
    #[error("address of {0} not captured")]
    BoundSymbol(String),
    /// The file has no such symbol.
    #[error("the file has no symbol {0}")]
    NoSymbol(String),
    /// The file has several symbols of one name.
    #[error("the file has several symbols {0}")]
    SeveralSymbols(String),
    /// An expression of the argument list uses an operand that is not captured.
    #[error("the operand that it uses is not captured")]
    UsedOperand,
    /// The argument list leaves it out.
    #[error("not in the argument list")]
    LeftOut,
    /// An expression of the argument list uses an argument that the site does not have.
    #[error("the site has fewer arguments")]
    NoArgument,
}
