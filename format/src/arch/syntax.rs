//! How operands are written on an architecture: what one grammar needs to read all of them.

/// The ways in which operands differ between architectures.
pub(crate) struct Syntax {
    /// Prefix of a register's name.
    pub(crate) register_prefix: RegisterPrefix,
    /// Prefix of a constant (`$`, `#`, `i`).
    pub(crate) constant_prefix: Option<&'static str>,
    /// How memory is written.
    pub(crate) memory: MemoryForm,
    /// What a number alone is.
    pub(crate) bare_number: BareNumber,
    /// What a symbol alone is.
    pub(crate) bare_symbol: BareSymbol,
    /// Segment registers with a base of their own that may stand before memory (`%fs:`).
    pub(crate) segments: &'static [&'static str],
    /// Segment registers that may stand before memory and have no meaning there, because their base is 0 (`%ds:`).
    pub(crate) flat_segments: &'static [&'static str],
    /// Whether `base,index` without parentheses is memory (the PowerPC `Z` constraint).
    pub(crate) bare_pair: bool,
}

/// Prefix of a register's name.
pub(crate) enum RegisterPrefix {
    /// Nothing.
    None,
    /// Always `%`.
    Percent,
    /// `%` or nothing.
    OptionalPercent,
}

/// How memory is written.
pub(crate) enum MemoryForm {
    /// `displacement(base,index,scale)`.
    Parentheses,
    /// `[base, displacement]` and `[base, index, extend shift]`.
    Brackets,
}

/// What a number alone is.
pub(crate) enum BareNumber {
    /// A constant.
    Constant,
    /// A register's number.
    Register,
    /// An absolute address, which no known compiler writes.
    Address,
}

/// What a symbol alone is.
pub(crate) enum BareSymbol {
    /// Memory at the symbol.
    Memory,
    /// The symbol's address.
    Address,
    /// Not known: no compiler was seen to write one.
    Unknown,
}
