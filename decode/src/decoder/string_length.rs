//! Where a string ends whose length something else says.

use usdtrec_format::Value;
use usdtrec_format::schema::{Argument, ArgumentType, Length};

use super::raw::RawOperation;

/// A string with a length that is another argument or fixed; bytes captured after its end do not
/// belong to it.
#[derive(Clone, Debug)]
pub(super) struct StringLength {
    /// Index of the argument.
    pub(super) string: usize,
    pub(super) length: Bytes,
}

#[derive(Clone, Debug)]
pub(super) enum Bytes {
    OfArgument(usize),
    /// Of an argument that is not shown.
    OfHidden(Box<RawOperation>),
    /// An array of this many bytes.
    Fixed(usize),
    /// The requested number of bytes: the string may be longer.
    AtMost(usize),
}

impl StringLength {
    /// Truncates the string to its length. `raw` is the raw part of the sample.
    pub(super) fn apply(&self, raw: &[u8], values: &mut [Value]) {
        let length = match &self.length {
            Bytes::Fixed(length) | Bytes::AtMost(length) => Some(*length),
            Bytes::OfArgument(at) => values.get(*at).and_then(Bytes::number),
            Bytes::OfHidden(operation) => {
                let mut value = Value::Unsigned(0);
                operation.decode(raw, &mut value);
                Bytes::number(&value)
            }
        };
        if let (Some(Value::String(string)), Some(length)) = (values.get_mut(self.string), length)
            && length <= string.bytes.len()
        {
            let is_longer = string.cut || length < string.bytes.len();
            string.bytes.truncate(length);
            string.cut = is_longer && matches!(self.length, Bytes::AtMost(_));
        }
    }
}

impl Bytes {
    /// The number that an argument says; `None` if its value is none.
    pub(super) fn number(value: &Value) -> Option<usize> {
        match value {
            Value::Unsigned(number) => usize::try_from(*number).ok(),
            Value::Signed(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// Those of a list of arguments; `listed`: of one that was asked for, in which a fixed length is an upper bound.
pub(super) fn lengths(arguments: &[Argument], listed: bool) -> Vec<StringLength> {
    let strings = arguments.iter().enumerate();
    let strings = strings.filter_map(|(string, argument)| {
        let Some(ArgumentType::String(Some(length))) = &argument.kind else {
            return None;
        };
        let length = match length {
            Length::Fixed(bytes) if listed => Bytes::AtMost(*bytes as usize),
            Length::Fixed(bytes) => Bytes::Fixed(*bytes as usize),
            Length::Argument(name) => {
                let named = |known: &Argument| known.name == *name;
                Bytes::OfArgument(arguments.iter().position(named)?)
            }
        };
        Some(StringLength { string, length })
    });
    strings.collect()
}
