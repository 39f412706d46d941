//! Why an operand cannot be parsed.

use thiserror::Error;

/// Why an operand cannot be parsed, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct OperandError {
    /// Where it stops to be understood: bytes from the start of the operand's text, at most its length.
    pub position: usize,
    /// What is wrong there.
    pub kind: OperandErrorKind,
}

/// What is wrong with an operand.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperandErrorKind {
    /// The registers and the syntax of this machine are not known.
    #[error("operands of this machine are not known")]
    Machine,
    /// The text before `@` is not a size.
    #[error("{0:?} is not a size")]
    Size(String),
    /// No value has this size, bytes.
    #[error("a value of {0} bytes is not known")]
    ValueSize(u8),
    /// There is nothing after the `@` of the size.
    #[error("nothing after the size")]
    NoLocation,
    /// There is nothing after the segment register.
    #[error("nothing after the segment")]
    NoAddress,
    /// Something else stands where the grammar wants one of a few things.
    #[error("expected {expected}, found {found:?}")]
    Expected {
        /// What could stand here.
        expected: &'static str,
        /// The rest of the text.
        found: String,
    },
    /// A number needs more than 64 bits.
    #[error("{0} does not fit into 64 bits")]
    NumberRange(String),
    /// The sum of the numbers of a displacement needs more than 64 bits.
    #[error("the displacement does not fit into 64 bits")]
    DisplacementRange,
    /// The machine has no register of this name.
    #[error("{machine} has no register {name:?}")]
    NoRegister {
        /// Name of the architecture.
        machine: &'static str,
        /// The text in place of a register.
        name: String,
    },
    /// A register's name without the prefix that registers of this machine have.
    #[error("{0} is a register's name without its prefix")]
    RegisterWithoutPrefix(String),
    /// A number that is neither a constant nor has a base register.
    #[error("a number without a base or a constant's prefix")]
    NumberAlone,
    /// A word that is not a register, and could only be a symbol if there was a size.
    #[error("neither a register nor a constant, and {0} has no size")]
    SymbolWithoutSize(String),
    /// A symbol that could be an address or the memory at it.
    #[error("{symbol} alone may be an address or the memory there; {machine} does not say which")]
    SymbolAlone {
        /// The symbol's name.
        symbol: String,
        /// Name of the architecture.
        machine: &'static str,
    },
    /// A value that is wider than the address of a symbol.
    #[error("the address of {symbol} has {pointer} bytes")]
    WideAddress {
        /// Symbol.
        symbol: String,
        /// Bytes of an address.
        pointer: u8,
    },
    /// More than one symbol, or a symbol that is subtracted.
    #[error("a difference or a sum of symbols ({0})")]
    SeveralSymbols(String),
    /// A relocation without a symbol, or a second one on it.
    #[error("{0} must stand on one symbol")]
    RelocationPlace(String),
    /// There is no relocation after a symbol's `@`.
    #[error("nothing after the @ of {0}")]
    NoRelocation(String),
    /// A relocation on a symbol whose address is the value.
    #[error("the address of {symbol} has a relocation ({relocation})")]
    RelocatedAddress {
        /// The symbol's name.
        symbol: String,
        /// The relocation, without `@`.
        relocation: String,
    },
    /// A bracket without the one that closes it.
    #[error("a {opening} without its {closing}{}", if *.opening == '[' { " at the end" } else { "" })]
    Unclosed {
        /// The bracket that is there.
        opening: char,
        /// The bracket that is missing.
        closing: char,
    },
    /// The parenthesis of a relocation (`%lo(`) is not closed.
    #[error("no ) after %{0}(")]
    UnclosedRelocation(String),
    /// Parentheses without a register.
    #[error("no register in the parentheses")]
    NoBase,
    /// Parentheses or brackets with more parts than an address has.
    #[error("more than base, index and {last} in {text}")]
    TooManyParts {
        /// What the third part would be.
        last: &'static str,
        /// The parts with their parentheses or brackets.
        text: String,
    },
    /// A part follows what is not an index register.
    #[error("{found:?} is no index register, but {following:?} follows")]
    NoIndex {
        /// The text in place of an index register.
        found: String,
        /// What follows it.
        following: String,
    },
    /// A word after an index register that does not say how it is extended or shifted.
    #[error("{0:?} neither extends nor shifts an index")]
    Extend(String),
    /// An index register is not shifted by this.
    #[error("an index is not shifted by {0:?}")]
    Shift(String),
    /// An index register is not multiplied by this.
    #[error("the scale is 1, 2, 4 or 8, not {0:?}")]
    Scale(String),
    /// More parentheses and signs within each other than this.
    #[error("nested more than {0} deep")]
    Depth(u8),
    /// Arithmetic without a result: a division by 0, a shift by more than 63.
    #[error("{left} {operator} {right} has no value")]
    NoResult {
        /// Operand on the left.
        left: i64,
        /// The operator.
        operator: &'static str,
        /// Operand on the right.
        right: i64,
    },
}
