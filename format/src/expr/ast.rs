//! The syntax tree of expressions, and errors with positions in their text.

use std::fmt;

/// An expression. Names are of type `N`: [`Name`] as written, or a type of the caller after [`bind`](Expr::bind).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expr<N = Name> {
    /// An integer.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A string.
    String(Vec<u8>),
    /// An argument, or another name.
    Name(N),
    /// A unary operator.
    Unary(Unary, Box<Self>),
    /// A binary operator.
    Binary(BinaryOperator, Box<Self>, Box<Self>),
    /// A cast.
    Cast(ScalarType, Box<Self>),
    /// The value at an address.
    Load(ScalarType, Box<Self>),
    /// The string at an address, with an optional maximum length in bytes.
    Str(Box<Self>, Option<Box<Self>>),
    /// Bytes at an address, with their number.
    Bytes(Box<Self>, Box<Self>),
}

/// A name as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Offset in the expression's text, bytes.
    pub at: usize,
}

/// Types of values in memory and of casts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarType {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Size, bytes.
        bytes: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// A float of 4 bytes.
    Float32,
    /// A float of 8 bytes.
    Float64,
    /// An address, with the pointer size of the traced program.
    Pointer,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `!`: 1 for 0 and the empty string, else 0.
    Not,
    /// `~`: bitwise complement, `-e - 1`.
    Complement,
    /// `-`
    Negate,
    /// `&`: the address of an argument in memory. Only while recording.
    Address,
}

/// Binary operators, in the order of precedence, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BinaryOperator {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Glob,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOperator {
    /// Whether it compares numbers.
    pub(super) const fn compares(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }

    /// All operators, with symbol and precedence.
    pub(super) const ALL: [(&str, u8, Self); 19] = [
        ("||", 1, Self::Or),
        ("&&", 2, Self::And),
        ("|", 3, Self::BitOr),
        ("^", 4, Self::BitXor),
        ("&", 5, Self::BitAnd),
        ("==", 6, Self::Equal),
        ("!=", 6, Self::NotEqual),
        ("~", 6, Self::Glob),
        ("<", 7, Self::Less),
        ("<=", 7, Self::LessOrEqual),
        (">", 7, Self::Greater),
        (">=", 7, Self::GreaterOrEqual),
        ("<<", 8, Self::ShiftLeft),
        (">>", 8, Self::ShiftRight),
        ("+", 9, Self::Add),
        ("-", 9, Self::Subtract),
        ("*", 10, Self::Multiply),
        ("/", 10, Self::Divide),
        ("%", 10, Self::Remainder),
    ];

    /// The symbol.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, _, operator)| *operator == self);
        known.map_or("", |(symbol, ..)| symbol)
    }
}

impl ScalarType {
    const ALL: [(&str, Self); 11] = [
        ("s8", Self::integer(1, true)),
        ("s16", Self::integer(2, true)),
        ("s32", Self::integer(4, true)),
        ("s64", Self::integer(8, true)),
        ("u8", Self::integer(1, false)),
        ("u16", Self::integer(2, false)),
        ("u32", Self::integer(4, false)),
        ("u64", Self::integer(8, false)),
        ("f32", Self::Float32),
        ("f64", Self::Float64),
        ("ptr", Self::Pointer),
    ];

    const fn integer(bytes: u8, signed: bool) -> Self {
        Self::Integer { bytes, signed }
    }

    /// The type of this name.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, word)| *word)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, word)| *word == self);
        known.map_or("", |(name, _)| name)
    }

    /// Size in memory, bytes; `pointer` for an address.
    #[must_use]
    pub const fn bytes(self, pointer: u8) -> u8 {
        match self {
            Self::Integer { bytes, .. } => bytes,
            Self::Float32 => 4,
            Self::Float64 => 8,
            Self::Pointer => pointer,
        }
    }
}

impl<N> Expr<N> {
    /// Replaces each name by the result of `find`.
    ///
    /// # Errors
    /// The first error of `find`.
    pub fn bind<M>(
        self,
        find: &mut dyn FnMut(N) -> Result<M, ExprError>,
    ) -> Result<Expr<M>, ExprError> {
        let mut boxed = |inner: Box<Self>| inner.bind(find).map(Box::new);
        Ok(match self {
            Self::Integer(number) => Expr::Integer(number),
            Self::Float(number) => Expr::Float(number),
            Self::String(string) => Expr::String(string),
            Self::Name(name) => Expr::Name(find(name)?),
            Self::Unary(operator, inner) => Expr::Unary(operator, boxed(inner)?),
            Self::Binary(operator, left, right) => {
                let left = boxed(left)?;
                Expr::Binary(operator, left, boxed(right)?)
            }
            Self::Cast(word, inner) => Expr::Cast(word, boxed(inner)?),
            Self::Load(word, address) => Expr::Load(word, boxed(address)?),
            Self::Str(address, length) => {
                let address = boxed(address)?;
                Expr::Str(address, length.map(boxed).transpose()?)
            }
            Self::Bytes(address, length) => {
                let address = boxed(address)?;
                Expr::Bytes(address, boxed(length)?)
            }
        })
    }

    /// `hi(NAME)`: the second 8 bytes of an argument in memory.
    pub(super) fn upper_word(name: Self) -> Self {
        let address = Self::Unary(Unary::Address, Box::new(name));
        let upper = Self::Binary(
            BinaryOperator::Add,
            Box::new(address),
            Box::new(Self::Integer(8)),
        );
        Self::Load(ScalarType::integer(8, false), Box::new(upper))
    }

    /// Whether the value is a number for any probe.
    pub(super) fn is_number(&self) -> bool {
        match self {
            Self::Integer(_) | Self::Float(_) => true,
            Self::Unary(_, inner) | Self::Cast(_, inner) => inner.is_number(),
            Self::Binary(_, left, right) => left.is_number() && right.is_number(),
            Self::String(_) | Self::Name(_) | Self::Load(..) | Self::Str(..) | Self::Bytes(..) => {
                false
            }
        }
    }

    /// Whether it needs the running program: the address of an argument, or memory other than a string.
    #[must_use]
    pub fn needs_process(&self) -> bool {
        match self {
            Self::Integer(_) | Self::Float(_) | Self::String(_) | Self::Name(_) => false,
            Self::Unary(Unary::Address, _) | Self::Load(..) | Self::Bytes(..) => true,
            Self::Unary(_, inner) | Self::Cast(_, inner) => inner.needs_process(),
            Self::Binary(_, left, right) => left.needs_process() || right.needs_process(),
            Self::Str(address, length) => {
                let length = length.as_ref();
                address.needs_process() || length.is_some_and(|length| length.needs_process())
            }
        }
    }

    /// Calls `each` with the names that are compared with a string, or whose strings are: that says that they are strings, if nothing else says what
    /// they are.
    pub fn each_string<'e>(&'e self, each: &mut impl FnMut(&'e N)) {
        let (operator, left, right) = match self {
            Self::Unary(Unary::Not, inner) => return inner.each_string(each),
            Self::Binary(operator, left, right) => (*operator, left, right),
            _ => return,
        };
        if operator != BinaryOperator::Glob && !operator.compares() {
            left.each_string(each);
            return right.each_string(each);
        }
        let ((Self::String(_), side) | (side, Self::String(_))) = (&**left, &**right) else {
            return;
        };
        match side {
            Self::Name(name) => each(name),
            Self::Str(address, _) => {
                if let Self::Name(name) = &**address {
                    each(name);
                }
            }
            _ => {}
        }
    }

    /// Whether it reads memory of the traced program.
    #[must_use]
    pub fn reads_memory(&self) -> bool {
        match self {
            Self::Integer(_) | Self::Float(_) | Self::String(_) | Self::Name(_) => false,
            Self::Unary(_, inner) | Self::Cast(_, inner) => inner.reads_memory(),
            Self::Binary(_, left, right) => left.reads_memory() || right.reads_memory(),
            Self::Load(..) | Self::Str(..) | Self::Bytes(..) => true,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The expression with all brackets, which parses to the same expression.
impl<N: fmt::Display> fmt::Display for Expr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::String(bytes) => {
                f.write_str("\"")?;
                for &byte in bytes {
                    match byte {
                        b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                        b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                        other => write!(f, "\\x{other:02x}")?,
                    }
                }
                f.write_str("\"")
            }
            Self::Name(name) => name.fmt(f),
            Self::Unary(operator, inner) => {
                let symbol = match operator {
                    Unary::Not => '!',
                    Unary::Complement => '~',
                    Unary::Negate => '-',
                    Unary::Address => '&',
                };
                write!(f, "{symbol}({inner})")
            }
            Self::Binary(operator, left, right) => {
                write!(f, "({left} {} {right})", operator.symbol())
            }
            Self::Cast(word, inner) => write!(f, "({})({inner})", word.name()),
            Self::Load(ScalarType::Pointer, address) => write!(f, "*({address})"),
            Self::Load(word, address) => write!(f, "*({}*)({address})", word.name()),
            Self::Str(address, None) => write!(f, "str({address})"),
            Self::Str(address, Some(length)) => write!(f, "str({address}, {length})"),
            Self::Bytes(address, length) => write!(f, "bytes({address}, {length})"),
        }
    }
}

/// Error of parsing or binding an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Offset in the text, bytes.
    pub at: usize,
    /// Message.
    pub message: String,
}

impl ExprError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for ExprError {}
