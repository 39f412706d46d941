//! Why an operand cannot be parsed.

use thiserror::Error;

/// Why an operand cannot be parsed, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct OperandError {
    /// Where parsing failed: bytes from the start of the operand's text, at most its length.
    pub position: usize,
    /// What is wrong there.
    pub kind: OperandErrorKind,
}

/// What is wrong with an operand.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperandErrorKind {
    /// The registers and the syntax of this machine are not known.
    #[error("operands of this machine are not supported")]
    Machine,
    /// The text before `@` is not a size.
    #[error("expected a size in bytes, found {0:?}")]
    Size(String),
    /// No value has this size, bytes.
    #[error("values of {0} bytes are not supported")]
    ValueSize(u8),
    /// There is nothing after the `@` of the size.
    #[error("expected an operand after the size, found nothing")]
    NoLocation,
    /// There is nothing after the segment register.
    #[error("expected an address after the segment, found nothing")]
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
    #[error("expected the prefix of a register before {0}")]
    RegisterWithoutPrefix(String),
    /// A number that is neither a constant nor has a base register.
    #[error("expected a base register or the prefix of a constant, found a number")]
    NumberAlone,
    /// A word that is not a register, and could only be a symbol if there was a size.
    #[error("expected a register, a constant or a size, found the symbol {0}")]
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
    #[error("expected one symbol, found a sum or difference of symbols: {0}")]
    SeveralSymbols(String),
    /// A relocation without a symbol, or a second one on it.
    #[error("expected one symbol for the relocation {0}")]
    RelocationPlace(String),
    /// There is no relocation after a symbol's `@`.
    #[error("expected a relocation after the @ of {0}, found nothing")]
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
    #[error("expected a word that extends or shifts the index, found {0:?}")]
    Extend(String),
    /// An index register is not shifted by this.
    #[error("an index is not shifted by {0:?}")]
    Shift(String),
    /// An index register is not multiplied by this.
    #[error("expected a scale of 1, 2, 4 or 8, found {0:?}")]
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
