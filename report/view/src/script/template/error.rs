//! Errors of templates.

/// A template cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{mark} at character {position}: {kind}")]
pub struct TemplateError {
    /// The brace or backslash at which the wrong part begins.
    pub mark: char,
    /// Its position in the template, in characters, from 1.
    pub position: usize,
    /// The fault.
    pub kind: TemplateErrorKind,
}

/// A fault of a part of a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// An opening brace without a closing one.
    #[error("there is no }} after it; for a brace itself, write {{{{")]
    NotClosed,
    /// A closing brace without an opening one.
    #[error("there is no {{ before it; for a brace itself, write }}}}")]
    NotOpened,
    /// A backslash with another letter than `n`, `t` or a backslash after it.
    #[error("there are \\n, \\t and \\\\")]
    Escape,
    /// Nothing is between the braces, or before the colon.
    #[error("a name is missing")]
    NoName,
    /// A point without a number after it.
    #[error("expected digits after the point")]
    NoPrecision,
    /// A width or precision is too large.
    #[error("{number} is more than {most}")]
    TooLarge {
        /// The digits.
        number: String,
        /// The maximum.
        most: usize,
    },
    /// The rest of what follows the colon is unknown, or not in its order.
    #[error(
        "{0:?} is not understood; after the colon there can be <, ^ or >, 0, a width, \
         a point with digits, and ? or x, in this order"
    )]
    Spec(String),
    /// The field is not of the kind that a part of the specification is for.
    #[error("{field}: {part}")]
    NotOfField {
        /// The field.
        field: String,
        /// The part of the specification.
        part: SpecPart,
    },
}

/// A part of what follows the colon, which is not for all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecPart {
    /// `?`.
    #[error("? is for strings")]
    Quoted,
    /// `x`.
    #[error("x is for numbers")]
    Hex,
    /// `0`.
    #[error("zeros are for numbers")]
    Zeros,
    /// A point with more than nine digits of a time.
    #[error("times have up to nine digits")]
    DigitsOfTime,
    /// A point with digits.
    #[error("a point with digits is for times, floats and strings")]
    Precision,
}
