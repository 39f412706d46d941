//! How a value of a template is laid out: `[<>^][0][WIDTH][.PRECISION][?|x]`.

use crate::script::template::error::TemplateErrorKind;

/// Most columns and digits.
const MAX_WIDTH: usize = 1000;

/// How a value is aligned in its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Middle,
    Right,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Conversion {
    #[default]
    Plain,
    /// Strings in quotes (`?`).
    Quoted,
    /// Numbers in hexadecimal (`x`).
    Hex,
}

/// What follows the colon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) align: Option<Align>,
    /// Whether numbers are filled up with zeros.
    pub(crate) zeros: bool,
    /// Least columns.
    pub(crate) width: usize,
    /// Digits of a fraction; most characters of a string.
    pub(crate) precision: Option<usize>,
    pub(crate) kind: Conversion,
}

impl Spec {
    /// Reads what follows the colon.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateErrorKind> {
        let mut rest = text;
        let mut take = |prefix: char| {
            let after = rest.strip_prefix(prefix);
            rest = after.unwrap_or(rest);
            after.is_some()
        };
        let align = if take('<') {
            Some(Align::Left)
        } else if take('^') {
            Some(Align::Middle)
        } else if take('>') {
            Some(Align::Right)
        } else {
            None
        };
        let zeros = take('0');
        let (width, rest) = number(rest)?;
        let (precision, rest) = match rest.strip_prefix('.') {
            None => (None, rest),
            Some(digits) => match number(digits)? {
                (None, _) => return Err(TemplateErrorKind::NoPrecision),
                found => found,
            },
        };
        let kind = match rest {
            "" => Conversion::Plain,
            "?" => Conversion::Quoted,
            "x" => Conversion::Hex,
            _ => return Err(TemplateErrorKind::Spec(rest.to_owned())),
        };
        Ok(Self {
            align,
            zeros,
            width: width.unwrap_or(0),
            precision,
            kind,
        })
    }
}

/// The number that a text starts with, and the rest.
fn number(text: &str) -> Result<(Option<usize>, &str), TemplateErrorKind> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() {
        return Ok((None, rest));
    }
    match digits.parse() {
        Ok(number) if number <= MAX_WIDTH => Ok((Some(number), rest)),
        _ => Err(TemplateErrorKind::TooLarge {
            number: digits.to_owned(),
            most: MAX_WIDTH,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_in_their_order() {
        let spec = Spec::parse("^012.3?").unwrap();
        let expected = Spec {
            align: Some(Align::Middle),
            zeros: true,
            width: 12,
            precision: Some(3),
            kind: Conversion::Quoted,
        };
        assert_eq!(spec, expected);
        assert_eq!(Spec::parse("").unwrap(), Spec::default());
        assert_eq!(Spec::parse(".0").unwrap().precision, Some(0));
        assert_eq!(Spec::parse("x").unwrap().kind, Conversion::Hex);
        assert_eq!(Spec::parse(">6").unwrap().width, 6);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let rest = |text: &str| TemplateErrorKind::Spec(text.to_owned());
        let large = |digits: &str| TemplateErrorKind::TooLarge {
            number: digits.to_owned(),
            most: MAX_WIDTH,
        };
        for (text, expected) in [
            ("6>", rest(">")),
            (".", TemplateErrorKind::NoPrecision),
            (".x", TemplateErrorKind::NoPrecision),
            ("s", rest("s")),
            ("?x", rest("?x")),
            ("-5", rest("-5")),
            ("1001", large("1001")),
            (".99999999999999999999", large("99999999999999999999")),
            ("*<5", rest("*<5")),
        ] {
            assert_eq!(Spec::parse(text), Err(expected), "{text}");
        }
    }
}
