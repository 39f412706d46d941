//! An expression over the arguments of a probe, worked out for a sample.

use usdtrec_format::Value;
use usdtrec_format::expr::{Binary, Datum, Expr, ExprError, Name, Unary};
use usdtrec_format::perf::Sample;
use usdtrec_format::schema::{Argument, Labels, Unit};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    /// An argument, by its place, and the words for its numbers.
    Argument(usize, Option<Labels>),
    /// The readable form of an argument, which is a mangled name; what has none is as it is.
    Readable(usize),
    Comm,
    Pid,
    Tid,
    Cpu,
}

/// The readable form of a mangled name; `None` for other texts.
pub type Readable = fn(&[u8]) -> Option<String>;

/// An expression whose names were found among the arguments of a probe.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: Expr<Meaning>,
    readable: Option<Readable>,
}

/// Why an expression cannot be asked of a probe.
#[derive(Clone, Debug)]
pub enum FilterError {
    /// It has no argument of a name.
    Name(ExprError),
    /// A text is none of the words for an argument's numbers.
    Word(ExprError),
}

impl Filter {
    /// Finds the names among the arguments of an event.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn bind(
        expression: Expr,
        event: &str,
        arguments: &[Argument],
    ) -> Result<Self, FilterError> {
        let bound = expression.bind(&mut |name| meaning(&name, event, arguments));
        let bound = bound.map_err(FilterError::Name)?;
        let expression = words(bound).map_err(FilterError::Word)?;
        Ok(Self {
            expression,
            readable: None,
        })
    }

    /// The same; where an argument that is a mangled name (`mangled` in its schema) is compared with a text, that may be the mangled name or
    /// the readable one.
    #[must_use]
    pub fn with_readable(self, arguments: &[Argument], readable: Readable) -> Self {
        let is_mangled = |place: usize| {
            let argument = arguments.get(place);
            argument.is_some_and(|argument| argument.unit == Some(Unit::Mangled))
        };
        Self {
            expression: either_name(self.expression, &is_mangled),
            readable: Some(readable),
        }
    }

    /// Whether it is true of a sample with these arguments. `comm` is the thread's name, [`Datum::Missing`] if not known.
    #[must_use]
    pub fn is_true(&self, sample: &Sample<'_>, values: &[Value], comm: &Datum<'_>) -> bool {
        let value = |meaning: &Meaning| match meaning {
            Meaning::Argument(place, _) => values.get(*place).map_or(Datum::Missing, Datum::of),
            Meaning::Readable(place) => values
                .get(*place)
                .map_or(Datum::Missing, |value| self.readable(value)),
            Meaning::Comm => comm.clone(),
            Meaning::Pid => Datum::Integer(sample.pid.into()),
            Meaning::Tid => Datum::Integer(sample.tid.into()),
            Meaning::Cpu => Datum::Integer(sample.cpu.into()),
        };
        self.expression.evaluate(&value).truth() == Some(true)
    }

    /// Whether texts are compared (names of threads, or what arguments point to), or other memory is read.
    #[must_use]
    pub fn asks_for_memory(&self) -> bool {
        reads_memory(&self.expression)
    }

    /// The readable form of a value; a text that is cut is not the whole name.
    fn readable<'v>(&self, value: &'v Value) -> Datum<'v> {
        let name = match (self.readable, value) {
            (Some(readable), Value::String(text)) if !text.cut => readable(&text.bytes),
            _ => None,
        };
        name.map_or_else(
            || Datum::of(value),
            |name| Datum::Text(name.into_bytes().into()),
        )
    }
}

/// Has each comparison of a mangled name with a text hold for the readable form, too.
fn either_name(expression: Expr<Meaning>, is_mangled: &impl Fn(usize) -> bool) -> Expr<Meaning> {
    let boxed = |inner: Box<Expr<Meaning>>| Box::new(either_name(*inner, is_mangled));
    let readable = |side: &Expr<Meaning>| match side {
        Expr::Name(Meaning::Argument(place, _)) if is_mangled(*place) => {
            Some(Expr::Name(Meaning::Readable(*place)))
        }
        _ => None,
    };
    match expression {
        Expr::Binary(operator @ (Binary::Equal | Binary::NotEqual | Binary::Glob), left, right) => {
            let other = match (&*left, &*right) {
                (name, Expr::Text(_)) => readable(name).map(|name| (Box::new(name), right.clone())),
                (Expr::Text(_), name) => readable(name).map(|name| (left.clone(), Box::new(name))),
                _ => None,
            };
            let plain = Expr::Binary(operator, left, right);
            let Some((left, right)) = other else {
                return plain;
            };
            // Different is what is neither.
            let both = if operator == Binary::NotEqual {
                Binary::And
            } else {
                Binary::Or
            };
            let other = Expr::Binary(operator, left, right);
            Expr::Binary(both, Box::new(plain), Box::new(other))
        }
        Expr::Binary(operator, left, right) => Expr::Binary(operator, boxed(left), boxed(right)),
        Expr::Unary(operator, inner) => Expr::Unary(operator, boxed(inner)),
        Expr::Cast(word, inner) => Expr::Cast(word, boxed(inner)),
        other => other,
    }
}

fn reads_memory(expression: &Expr<Meaning>) -> bool {
    match expression {
        Expr::Text(_)
        | Expr::Str(..)
        | Expr::Bytes(..)
        | Expr::Load(..)
        | Expr::Unary(Unary::Address, _)
        | Expr::Name(Meaning::Comm) => true,
        Expr::Unary(_, inner) | Expr::Cast(_, inner) => reads_memory(inner),
        Expr::Binary(_, left, right) => reads_memory(left) || reads_memory(right),
        _ => false,
    }
}

fn meaning(name: &Name, event: &str, arguments: &[Argument]) -> Result<Meaning, ExprError> {
    let named = arguments.iter().position(|known| known.name == name.text);
    let numbered = || {
        let number: usize = name.text.strip_prefix("arg")?.parse().ok()?;
        number
            .checked_sub(1)
            .filter(|place| *place < arguments.len())
    };
    let bare = name.text.strip_prefix("args.");
    let bare = || {
        arguments
            .iter()
            .position(|known| Some(&*known.name) == bare)
    };
    if let Some(place) = named.or_else(numbered).or_else(bare) {
        let labels = arguments.get(place).and_then(|known| known.labels.clone());
        return Ok(Meaning::Argument(place, labels));
    }
    match &*name.text {
        "comm" => Ok(Meaning::Comm),
        "pid" => Ok(Meaning::Pid),
        "tid" => Ok(Meaning::Tid),
        "cpu" => Ok(Meaning::Cpu),
        _ => {
            let known = arguments.iter().map(|known| known.name.as_str());
            let known: Vec<&str> = known.chain(["comm", "pid", "tid", "cpu"]).collect();
            Err(ExprError {
                at: name.at,
                message: format!(
                    "{event} has no argument {name}; it has {}",
                    known.join(", ")
                ),
            })
        }
    }
}

/// Makes texts that stand beside an argument with words the numbers of these words.
fn words(expression: Expr<Meaning>) -> Result<Expr<Meaning>, ExprError> {
    let boxed = |inner: Box<Expr<Meaning>>| words(*inner).map(Box::new);
    Ok(match expression {
        Expr::Binary(Binary::Glob, left, right) => Expr::Binary(Binary::Glob, left, right),
        Expr::Binary(operator, left, right) => {
            let (left, right) = (boxed(left)?, boxed(right)?);
            let (left, right) = match (labels(&left), labels(&right)) {
                (Some(labels), None) => {
                    let right = number(labels, *right)?;
                    (left, Box::new(right))
                }
                (None, Some(labels)) => {
                    let left = number(labels, *left)?;
                    (Box::new(left), right)
                }
                _ => (left, right),
            };
            Expr::Binary(operator, left, right)
        }
        Expr::Unary(operator, inner) => Expr::Unary(operator, boxed(inner)?),
        Expr::Cast(word, inner) => Expr::Cast(word, boxed(inner)?),
        other => other,
    })
}

const fn labels(expression: &Expr<Meaning>) -> Option<&Labels> {
    match expression {
        Expr::Name(Meaning::Argument(_, Some(labels))) => Some(labels),
        _ => None,
    }
}

fn number(labels: &Labels, expression: Expr<Meaning>) -> Result<Expr<Meaning>, ExprError> {
    let Expr::Text(word) = &expression else {
        return Ok(expression);
    };
    let word = String::from_utf8_lossy(word);
    match labels.number(&word) {
        Some(number) => Ok(Expr::Integer(number.into())),
        None => {
            let known: Vec<&str> = labels.words().values().map(String::as_str).collect();
            Err(ExprError {
                at: 0,
                message: format!("{word:?} is none of its words: {}", known.join(", ")),
            })
        }
    }
}
