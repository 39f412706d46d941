//! Arguments of an argument list, such as `p:n(url=str(*arg1), port=arg4)`.
//!
//! Comparisons with floating-point numbers, as comparisons of integers.
//!
//! The rank of a floating-point number is its magnitude's bits as an integer, with its sign: numbers are ordered as their ranks are
//! (IEEE 754, section 3.4), consecutive numbers have consecutive ranks, and both zeros have rank 0. NaN has none.

use usdtrec_format::expr::{self, Datum, Expr, Name, ScalarType, Unary};
use usdtrec_format::schema::{Argument, ArgumentType, Length};

use super::super::capture::Capture;
use super::super::read::{Read, Source};
use super::super::symbols::NotCaptured;
use super::side::{constant, error, number_of};
use super::site::Site;
use super::{Chain, ConditionError, Step};

/// Size and sign of a value, and its type, if known.
struct Shape {
    bytes: u8,
    signed: bool,
    kind: Option<ArgumentType>,
}

/// An argument of a list, compiled for a site.
#[derive(Debug)]
pub(crate) struct ListedArgument {
    /// How its value is captured.
    pub capture: Capture,
    /// Its name and type.
    pub argument: Argument,
}

impl Site<'_> {
    /// Compiles the arguments of a list for this site.
    ///
    /// # Errors
    /// As [`item`](Self::item).
    pub(crate) fn list(
        &self,
        list: &[expr::Capture],
    ) -> Result<Vec<ListedArgument>, ConditionError> {
        list.iter().map(|item| self.item(item, list)).collect()
    }

    /// The same for all arguments, if the schema has an expression for any of them. `None` also if the site does not have what the
    /// expressions need; then the arguments of the note are captured unchanged.
    pub(crate) fn list_of_schema(&self) -> Option<Vec<ListedArgument>> {
        let is_captured = |argument: &Argument| argument.capture.is_some();
        if !self.arguments.iter().any(is_captured) {
            return None;
        }
        let items = self.arguments.iter().enumerate().map(|(place, argument)| {
            let expression = argument.capture.clone();
            let expression = expression.unwrap_or_else(|| Argument::unnamed(place).name);
            Some(expr::Capture {
                name: Some(argument.name.clone()),
                value: Expr::parse(&expression).ok()?,
            })
        });
        let items: Vec<_> = items.collect::<Option<_>>()?;
        self.list(&items).ok()
    }

    /// Compiles an argument of a list for this site.
    ///
    /// # Errors
    /// [`ConditionError`], for an unknown name, or if a program cannot evaluate the expression.
    fn item(
        &self,
        item: &expr::Capture,
        list: &[expr::Capture],
    ) -> Result<ListedArgument, ConditionError> {
        let name = item.name().to_owned();
        if let Expr::Name(asked) = &item.value {
            let mut listed = self.as_it_is(asked)?;
            listed.argument.name = name;
            return Ok(listed);
        }
        let (chain, shape) = self.computed(&item.value, list)?;
        let capture = match chain {
            None => Capture::Nothing(NotCaptured::UsedOperand),
            Some(chain) => Capture::Value(Read {
                source: Source::Computed(Box::new(chain)),
                size: shape.bytes,
                signed: shape.signed,
                pointer: matches!(item.value, Expr::Load(ScalarType::Pointer, _)),
            }),
        };
        let argument = Argument {
            name,
            kind: shape.kind,
            ..self.known_capture(&item.value).unwrap_or_default()
        };
        Ok(ListedArgument { capture, argument })
    }

    /// The schema of the argument that this expression replaces.
    fn known_capture(&self, value: &Expr) -> Option<Argument> {
        // Names know their places in the text, so that two that are equal differ.
        let asked = value.to_string();
        let is_it = |capture: &str| Expr::parse(capture).is_ok_and(|it| it.to_string() == asked);
        let mut known = self.arguments.iter();
        let known = known.find(|argument| argument.capture.as_deref().is_some_and(is_it))?;
        Some(Argument {
            capture: None,
            ..known.clone()
        })
    }

    /// An argument of the note.
    fn as_it_is(&self, name: &Name) -> Result<ListedArgument, ConditionError> {
        let Some((place, known)) = self.argument(name)? else {
            let message = format!("{name} is in every event: remove it from the list");
            return Err(error(name.at, message));
        };
        let mut known = known.cloned().unwrap_or_default();
        let (Some(capture), Some(operand)) = (self.captures.get(place), self.operands.get(place))
        else {
            return Ok(ListedArgument {
                capture: Capture::Nothing(NotCaptured::NoArgument),
                argument: known,
            });
        };
        if operand.float && known.kind.is_none() {
            known.kind = match operand.bytes(self.arch) {
                4 => Some(ArgumentType::Float32),
                _ => Some(ArgumentType::Float64),
            };
        }
        let number = |number: u64, size, signed| {
            let source = Source::Number(number);
            let read = Read {
                source,
                size,
                signed,
                pointer: false,
            };
            // Nothing of the note is kept in a list's layout.
            Capture::Value(Read {
                source: Source::Computed(Box::new(Chain::from_read(read.clone()))),
                ..read
            })
        };
        let capture = match (capture, number_of(operand)) {
            (Capture::Constant, Some(Datum::Integer(value))) => number(value as u64, 8, value < 0),
            (Capture::Constant, Some(Datum::Float32(value))) => {
                known.kind = Some(ArgumentType::Float32);
                number(value.to_bits().into(), 4, false)
            }
            (Capture::Constant, Some(Datum::Float(value))) => {
                known.kind = Some(ArgumentType::Float64);
                number(value.to_bits(), 8, false)
            }
            (Capture::Constant, _) => Capture::Nothing(NotCaptured::ConstantFloat),
            (Capture::Value(_), _) if self.is_part(operand) => {
                Capture::Nothing(NotCaptured::Size(operand.bytes(self.arch)))
            }
            (capture, _) => capture.clone(),
        };
        Ok(ListedArgument {
            capture,
            argument: known,
        })
    }

    /// A number of a hit; `None` if it cannot be read at this site, or is computed with what is a floating-point number there.
    fn listed_value(&self, expression: &Expr) -> Result<Option<Chain>, ConditionError> {
        match self.value(expression) {
            Err(ConditionError::FloatArithmetic) => Ok(None),
            value => value,
        }
    }

    /// Compiles an expression; `None` if the value is not available at this site.
    fn computed(
        &self,
        expression: &Expr,
        list: &[expr::Capture],
    ) -> Result<(Option<Chain>, Shape), ConditionError> {
        let pointer = self.arch.pointer_size();
        let address = |kind| Shape {
            bytes: pointer,
            signed: false,
            kind,
        };
        match expression {
            Expr::Str(string, length) => {
                let length = length.as_deref().map(|length| length_of(length, list));
                let kind = ArgumentType::String(length.transpose()?);
                Ok((self.listed_value(string)?, address(Some(kind))))
            }
            Expr::Bytes(bytes, length) => {
                let kind = ArgumentType::Bytes(length_of(length, list)?);
                Ok((self.listed_value(bytes)?, address(Some(kind))))
            }
            Expr::Load(ScalarType::Pointer, _) => {
                Ok((self.listed_value(expression)?, address(None)))
            }
            Expr::Unary(Unary::Address, _) => Ok((
                self.listed_value(expression)?,
                address(Some(ArgumentType::Pointer)),
            )),
            Expr::Load(word @ (ScalarType::Float32 | ScalarType::Float64), at) => {
                let (bytes, kind) = match word {
                    ScalarType::Float32 => (4, ArgumentType::Float32),
                    _ => (8, ArgumentType::Float64),
                };
                let shape = Shape {
                    bytes,
                    signed: false,
                    kind: Some(kind),
                };
                let chain = self.listed_value(at)?.map(|mut chain| {
                    let signed = false;
                    chain.steps.push(Step::Load { bytes, signed });
                    chain
                });
                Ok((chain, shape))
            }
            Expr::Cast(ScalarType::Pointer, _) => Ok((
                self.listed_value(expression)?,
                address(Some(ArgumentType::Pointer)),
            )),
            Expr::Cast(word, _) | Expr::Load(word, _) => {
                let (bytes, signed) = self.word(*word)?;
                let shape = Shape {
                    bytes,
                    signed,
                    kind: Some(ArgumentType::integer(bytes, signed)),
                };
                Ok((self.listed_value(expression)?, shape))
            }
            other => {
                let chain = self.listed_value(other)?;
                let signed = chain.as_ref().is_some_and(Chain::is_signed_sum);
                let shape = Shape {
                    bytes: 8,
                    signed,
                    kind: None,
                };
                Ok((chain, shape))
            }
        }
    }
}

/// The length of a string or of bytes: a constant, or another argument of the list.
fn length_of(length: &Expr, list: &[expr::Capture]) -> Result<Length, ConditionError> {
    if let Some(Datum::Integer(length)) = constant(length) {
        let length = u32::try_from(length);
        return length.map(Length::Fixed).map_err(|_| {
            error(
                0,
                "a string or bytes of that length cannot be captured".to_owned(),
            )
        });
    }
    let Expr::Name(length) = length else {
        let message = format!("a length must be a number or in the list, too: len={length}");
        return Err(error(0, message));
    };
    let has_name = |item: &&expr::Capture| item.name() == length.text && is_integer(&item.value);
    let is_it =
        |item: &&expr::Capture| matches!(&item.value, Expr::Name(name) if name.text == length.text);
    let found = list.iter().find(has_name);
    match found.or_else(|| list.iter().find(is_it)) {
        Some(item) => Ok(Length::Argument(item.name().to_owned())),
        None => Err(error(
            0,
            format!("a length must be in the list, too: len={length}"),
        )),
    }
}

/// Whether an item of a list is an integer, as far as its expression says that.
fn is_integer(value: &Expr) -> bool {
    !matches!(
        value,
        Expr::Str(..)
            | Expr::Bytes(..)
            | Expr::Float(_)
            | Expr::String(_)
            | Expr::Load(ScalarType::Float32 | ScalarType::Float64, _)
            | Expr::Cast(ScalarType::Float32 | ScalarType::Float64, _)
    )
}
