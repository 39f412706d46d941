//! Events with argument lists.

use std::fmt;

use super::parse::Parser;
use super::{Expr, ExprError};
use crate::pattern::{Pattern, PatternError};

/// An event with an optional argument list: `[sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH]`.
#[derive(Clone, Debug)]
pub struct EventSpec {
    /// The probes.
    pub pattern: Pattern,
    /// The argument list; `None` to capture the probe's own arguments.
    pub captures: Option<Vec<Capture>>,
}

/// An argument of an argument list.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Name, if one is given.
    pub name: Option<String>,
    /// Expression to capture.
    pub value: Expr,
}

/// Error of parsing an event with its argument list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventSpecError {
    /// The pattern of the probes is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The argument list is not closed.
    #[error("{text:?}: the list of arguments that begins at byte {} has no )", .at + 1)]
    Unclosed {
        /// The event.
        text: String,
        /// Offset of the opening bracket, bytes.
        at: usize,
    },
    /// Something other than a path follows the argument list.
    #[error("{text:?}: expected @PATH or the end after ), found {found:?}")]
    AfterList {
        /// The event.
        text: String,
        /// The rest after the closing bracket.
        found: String,
    },
    /// An argument is invalid.
    #[error("{text:?}: {error}")]
    Argument {
        /// The event.
        text: String,
        /// What is wrong, with the offset in the event.
        error: ExprError,
    },
}

impl EventSpec {
    /// Parses an event. The list begins at the first
    /// round bracket before `@`; brackets of globs (`[a-z]`) and in a path are ignored.
    ///
    /// # Errors
    /// [`EventSpecError`].
    pub fn parse(text: &str) -> Result<Self, EventSpecError> {
        let plain = |text: &str| {
            Ok(Self {
                pattern: Pattern::parse(text)?,
                captures: None,
            })
        };
        let Some(open) = text.find(['(', '@']) else {
            return plain(text);
        };
        let (event, rest) = text.split_at(open);
        let Some(inner) = rest.strip_prefix('(') else {
            return plain(text);
        };
        let Some(close) = closing(inner) else {
            return Err(EventSpecError::Unclosed {
                text: text.to_owned(),
                at: open,
            });
        };
        let (list, rest) = inner.split_at(close);
        let rest = rest.get(1..).unwrap_or("");
        if !rest.is_empty() && !rest.starts_with('@') {
            return Err(EventSpecError::AfterList {
                text: text.to_owned(),
                found: rest.to_owned(),
            });
        }
        let mut request = plain(&format!("{event}{rest}"))?;
        let captures = Capture::parse_list(list);
        request.captures = Some(captures.map_err(|error| EventSpecError::Argument {
            text: text.to_owned(),
            error: ExprError::new(error.at + open + 1, error.message),
        })?);
        Ok(request)
    }
}

/// Offset of the bracket that closes a list, outside of quotes and inner brackets.
fn closing(list: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut bytes = list.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return Some(at),
            },
            _ => {}
        }
    }
    None
}

/// `NAME=EXPRESSION`, or the name of an argument.
impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}={}", self.value),
            None => write!(f, "{}", self.value),
        }
    }
}

impl Capture {
    /// Parses a list: `[NAME=]EXPRESSION, …`.
    ///
    /// # Errors
    /// [`ExprError`] with the position in the text.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ExprError> {
        let mut parser = Parser::new(text)?;
        let mut captures = Vec::<Self>::new();
        if parser.end().is_ok() {
            return Ok(captures);
        }
        loop {
            let at = parser.position();
            let name = parser.label().map(str::to_owned);
            let value = parser.expression(0)?;
            if name.is_none() && !matches!(value, Expr::Name(_)) {
                let message = format!("a name for it is missing: NAME={value}");
                return Err(ExprError::new(at, message));
            }
            let capture = Self { name, value };
            if captures.iter().any(|known| known.name() == capture.name()) {
                let message = format!("two arguments are named {}", capture.name());
                return Err(ExprError::new(at, message));
            }
            captures.push(capture);
            if !parser.takes(",") {
                parser.end()?;
                return Ok(captures);
            }
        }
    }

    /// The name in the trace. For `arg1` without a name, the schema's name is used instead.
    #[must_use]
    pub fn name(&self) -> &str {
        match (&self.name, &self.value) {
            (Some(name), _) => name,
            (None, Expr::Name(name)) => &name.text,
            (None, _) => "",
        }
    }
}
