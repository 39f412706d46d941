//! Filters: expressions over the arguments of a probe, evaluated for samples.

use usdtrec_format::Value;
use usdtrec_format::expr::{BinaryOperator, Datum, Expr, ExprError, Name, Unary};
use usdtrec_format::perf::Sample;
use usdtrec_format::schema::{Argument, Labels, Unit};

use crate::sample_field::{SampleField, SampleStrings};

/// The meaning of a name in an expression.
#[derive(Clone, Debug, PartialEq)]
enum BoundName {
    /// An argument, by index, and the words for its numbers.
    Argument(usize, Option<Labels>),
    /// The readable form of an argument, which is a mangled name; what has none is as it is.
    Readable(usize),
    Field(SampleField),
}

/// The readable form of a mangled name; `None` for other strings.
pub type Readable = fn(&[u8]) -> Option<String>;

/// An expression whose names are bound to the arguments of a probe.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: Expr<BoundName>,
    /// The fields that it has.
    fields: Vec<SampleField>,
    readable: Option<Readable>,
}

/// Error of binding an expression to a probe.
#[derive(Clone, Debug)]
pub enum FilterError {
    /// The probe has no argument of this name.
    Name(ExprError),
    /// A string is not one of the words of an enumeration.
    Word(ExprError),
}

impl Filter {
    /// Binds the names to the arguments of an event, and to `fields`. `event` is used in errors.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn bind(
        expression: Expr,
        event: &str,
        arguments: &[Argument],
        fields: &[SampleField],
    ) -> Result<Self, FilterError> {
        let mut found = Vec::new();
        let bound = expression.bind(&mut |name| {
            let bound = bound_name(&name, arguments, fields);
            if let Some(BoundName::Field(field)) = bound
                && !found.contains(&field)
            {
                found.push(field);
            }
            bound.ok_or_else(|| unknown(&name, event, arguments, fields))
        });
        let bound = bound.map_err(FilterError::Name)?;
        let expression = words(bound).map_err(FilterError::Word)?;
        Ok(Self {
            expression,
            fields: found,
            readable: None,
        })
    }

    /// The same; where an argument that is a mangled name (`mangled` in its schema) is compared with a string, that may be the mangled name or
    /// the readable one.
    #[must_use]
    pub fn with_readable(self, arguments: &[Argument], readable: Readable) -> Self {
        let is_mangled = |index: usize| {
            let argument = arguments.get(index);
            argument.is_some_and(|argument| argument.unit == Some(Unit::Mangled))
        };
        Self {
            expression: either_name(self.expression, &is_mangled),
            readable: Some(readable),
            ..self
        }
    }

    /// The fields that the expression has. [`is_true`](Self::is_true) needs no strings of others.
    #[must_use]
    pub fn fields(&self) -> &[SampleField] {
        &self.fields
    }

    /// Whether the expression is true for a sample with these arguments.
    #[must_use]
    pub fn is_true(
        &self,
        sample: &Sample<'_>,
        values: &[Value],
        strings: &SampleStrings<'_>,
    ) -> bool {
        let value = |bound_name: &BoundName| match bound_name {
            BoundName::Argument(index, _) => {
                values.get(*index).map_or(Datum::Missing, Datum::from_value)
            }
            BoundName::Readable(index) => values
                .get(*index)
                .map_or(Datum::Missing, |value| self.readable(value)),
            BoundName::Field(SampleField::Comm) => strings.comm.clone(),
            BoundName::Field(SampleField::ProcessString(name)) => {
                let mut known = strings.process.iter().filter(|(known, _)| known == name);
                known
                    .next()
                    .map_or(Datum::Missing, |(_, string)| string.clone())
            }
            BoundName::Field(SampleField::Pid) => Datum::Integer(sample.pid.into()),
            BoundName::Field(SampleField::Tid) => Datum::Integer(sample.tid.into()),
            BoundName::Field(SampleField::Cpu) => Datum::Integer(sample.cpu.into()),
            BoundName::Field(SampleField::Uid) => sample
                .uid()
                .map_or(Datum::Missing, |uid| Datum::Integer(uid.into())),
        };
        self.expression.evaluate(&value).truth() == Some(true)
    }

    /// Whether the expression compares strings (thread names, or memory at pointers) or reads other memory.
    #[must_use]
    pub fn reads_memory(&self) -> bool {
        reads_memory(&self.expression)
    }

    /// The readable form of a value; a string that is cut is not the whole name.
    fn readable<'v>(&self, value: &'v Value) -> Datum<'v> {
        let name = match (self.readable, value) {
            (Some(readable), Value::String(string)) if !string.cut => readable(&string.bytes),
            _ => None,
        };
        name.map_or_else(
            || Datum::from_value(value),
            |name| Datum::String(name.into_bytes().into()),
        )
    }
}

/// Has each comparison of a mangled name with a string hold for the readable form, too.
fn either_name(
    expression: Expr<BoundName>,
    is_mangled: &impl Fn(usize) -> bool,
) -> Expr<BoundName> {
    let boxed = |inner: Box<Expr<BoundName>>| Box::new(either_name(*inner, is_mangled));
    let readable = |side: &Expr<BoundName>| match side {
        Expr::Name(BoundName::Argument(index, _)) if is_mangled(*index) => {
            Some(Expr::Name(BoundName::Readable(*index)))
        }
        _ => None,
    };
    match expression {
        Expr::Binary(
            operator @ (BinaryOperator::Equal | BinaryOperator::NotEqual | BinaryOperator::Glob),
            left,
            right,
        ) => {
            let other = match (&*left, &*right) {
                (name, Expr::String(_)) => {
                    readable(name).map(|name| (Box::new(name), right.clone()))
                }
                (Expr::String(_), name) => {
                    readable(name).map(|name| (left.clone(), Box::new(name)))
                }
                _ => None,
            };
            let plain = Expr::Binary(operator, left, right);
            let Some((left, right)) = other else {
                return plain;
            };
            // Different is what is neither.
            let both = if operator == BinaryOperator::NotEqual {
                BinaryOperator::And
            } else {
                BinaryOperator::Or
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

fn reads_memory(expression: &Expr<BoundName>) -> bool {
    let is_about_process = |side: &Expr<BoundName>| {
        matches!(
            side,
            Expr::Name(BoundName::Field(SampleField::ProcessString(_)))
        )
    };
    match expression {
        Expr::Binary(_, left, right) if is_about_process(left) => {
            !matches!(**right, Expr::String(_)) && reads_memory(right)
        }
        Expr::Binary(_, left, right) if is_about_process(right) => {
            !matches!(**left, Expr::String(_)) && reads_memory(left)
        }
        Expr::String(_)
        | Expr::Str(..)
        | Expr::Bytes(..)
        | Expr::Load(..)
        | Expr::Unary(Unary::Address, _)
        | Expr::Name(BoundName::Field(SampleField::Comm)) => true,
        Expr::Unary(_, inner) | Expr::Cast(_, inner) => reads_memory(inner),
        Expr::Binary(_, left, right) => reads_memory(left) || reads_memory(right),
        _ => false,
    }
}

fn bound_name(name: &Name, arguments: &[Argument], fields: &[SampleField]) -> Option<BoundName> {
    if let Some(index) = Argument::place(arguments, &name.text) {
        let labels = arguments.get(index).and_then(|known| known.labels.clone());
        return Some(BoundName::Argument(index, labels));
    }
    let field = fields.iter().find(|field| field.name() == name.text);
    field.copied().map(BoundName::Field)
}

fn unknown(name: &Name, event: &str, arguments: &[Argument], fields: &[SampleField]) -> ExprError {
    let known = arguments.iter().map(|known| known.name.as_str());
    let known = known.chain(fields.iter().map(|field| field.name()));
    let known: Vec<&str> = known.collect();
    ExprError {
        at: name.at,
        message: format!(
            "{event} has no argument {name}; it has {}",
            known.join(", ")
        ),
    }
}

/// Replaces strings that are compared with an enumeration by the numbers of these words.
fn words(expression: Expr<BoundName>) -> Result<Expr<BoundName>, ExprError> {
    let boxed = |inner: Box<Expr<BoundName>>| words(*inner).map(Box::new);
    Ok(match expression {
        Expr::Binary(BinaryOperator::Glob, left, right) => {
            Expr::Binary(BinaryOperator::Glob, left, right)
        }
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

const fn labels(expression: &Expr<BoundName>) -> Option<&Labels> {
    match expression {
        Expr::Name(BoundName::Argument(_, Some(labels))) => Some(labels),
        _ => None,
    }
}

fn number(labels: &Labels, expression: Expr<BoundName>) -> Result<Expr<BoundName>, ExprError> {
    let Expr::String(word) = &expression else {
        return Ok(expression);
    };
    let word = String::from_utf8_lossy(word);
    match labels.number(&word) {
        Some(number) => Ok(Expr::Integer(number.into())),
        None => {
            let known: Vec<&str> = labels.words().values().map(String::as_str).collect();
            Err(ExprError {
                at: 0,
                message: format!("{word:?} is not one of its words: {}", known.join(", ")),
            })
        }
    }
}
