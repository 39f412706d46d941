//! What a target says that it passed (testdata/targets/shapes.h).

/// One `fire` line.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    /// The probe's name.
    pub(crate) name: String,
    /// What the target expects of each argument.
    pub(crate) arguments: Vec<Expected>,
}

/// What is expected of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expected {
    /// To be judged by its operand.
    Value(Number),
    /// The value must be there.
    Must(Number),
    /// The value may be missing.
    May(Number),
    /// The value must be missing, with a reason that contains this; but where memory is read, it must be the one given.
    Missing(String, Option<Number>),
}

/// A number, as printed by a target or decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Hit {
    /// The hits in a target's output, in its order.
    pub(crate) fn parse_lines(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    /// One line, if it is a `fire` line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("fire ")?.split_whitespace();
        let name = words.next()?.to_owned();
        let arguments = words.map(Expected::parse).collect();
        Some(Self { name, arguments })
    }
}

impl Expected {
    fn parse(word: &str) -> Self {
        if let Some(text) = word.strip_prefix('!') {
            let (reason, value) = match text.split_once('|') {
                Some((reason, value)) => (reason, Some(Number::parse(value))),
                None => (text, None),
            };
            return Self::Missing(reason.replace('_', " "), value);
        }
        if let Some(number) = word.strip_prefix('=') {
            return Self::Must(Number::parse(number));
        }
        match word.strip_prefix('?') {
            Some(number) => Self::May(Number::parse(number)),
            None => Self::Value(Number::parse(word)),
        }
    }
}

impl Number {
    fn parse(word: &str) -> Self {
        let parsed = match word.strip_prefix('f') {
            Some(float) => float.parse().ok().map(Self::Float),
            None => word.parse().ok().map(Self::Integer),
        };
        parsed.unwrap_or_else(|| panic!("a target printed {word:?} for a number"))
    }

    /// A number of JSON, which is exact for every integer of 64 bits.
    pub(crate) fn from_json(number: &serde_json::Number) -> Self {
        let integer = number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from));
        match integer {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// Whether a decoded number is this one. A float of 4 bytes is printed in full by the target and in its
    /// shortest form by us, so `single` compares as such. A float is never taken for an integer.
    pub(crate) fn is(self, decoded: Self, single: bool) -> bool {
        match (self, decoded) {
            (Self::Integer(printed), Self::Integer(decoded)) => printed == decoded,
            (Self::Float(printed), Self::Float(decoded)) if single => {
                printed as f32 == decoded as f32
            }
            (Self::Float(printed), Self::Float(decoded)) => printed == decoded,
            _ => false,
        }
    }
}
