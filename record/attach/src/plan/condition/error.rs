//! Why an expression cannot be evaluated at a site.

use usdtrec_format::expr::ExprError;

/// Why an expression cannot be evaluated at a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// The expression is wrong for the probe; with the offset in it.
    #[error(transparent)]
    Expression(#[from] ExprError),
    /// A program in the kernel cannot evaluate it.
    #[error("{0} cannot be evaluated while recording")]
    Unsupported(String),
    /// A program in the kernel cannot evaluate it at this site, where an argument is a floating-point number.
    #[error("arithmetic with a float cannot be evaluated while recording")]
    FloatArithmetic,
}

impl ConditionError {
    /// The message without an offset.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Expression(error) => error.message.clone(),
            Self::Unsupported(_) | Self::FloatArithmetic => self.to_string(),
        }
    }
}
