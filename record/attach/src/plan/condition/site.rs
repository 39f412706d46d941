//! A site's arguments, as expressions name them.

use usdtrec_decode::SampleField;
use usdtrec_format::expr::{BinaryOperator, Datum, Expr, Name, ScalarType, Unary};
use usdtrec_format::schema::{Argument, ArgumentType, Length};
use usdtrec_format::{Arch, Location, Operand};

use super::ConditionError;
use super::side::Float;
use super::side::{Side, StringEnd, against, constant, error, number_of, string_is};
use super::{
    Chain, ComparedString, Condition, Relation, Start, Step, all_of, always_if, any_of, beyond,
    number,
};
use crate::plan::capture::Capture;
use crate::plan::read::FloatType;
use crate::plan::read::{Address, Read, Source};

/// The index of the probe's own argument of a name; `None` for a name that is not an argument, such as `comm`.
///
/// # Errors
/// [`ConditionError::Expression`] for an unknown name. `event` is used in the message.
pub(crate) fn own_argument(
    name: &Name,
    event: &str,
    arguments: &[Argument],
) -> Result<Option<usize>, ConditionError> {
    if let Some(place) = Argument::place(arguments, &name.text) {
        return Ok(Some(place));
    }
    let mut of_context = SampleField::OF_CONTEXT.iter();
    if SampleField::of_hit(&name.text).is_some()
        || of_context.any(|field| field.name() == name.text)
    {
        return Ok(None);
    }
    let known = arguments.iter().map(|known| known.name.as_str());
    let of_hit = SampleField::OF_HIT.iter().map(|field| field.name());
    let known: Vec<&str> = known.chain(of_hit).collect();
    let message = format!(
        "{event} has no argument {name}; it has {}",
        known.join(", ")
    );
    Err(error(name.at, message))
}

/// A site, as filters and argument lists see it.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub arch: Arch,
    pub event: &'a str,
    pub operands: &'a [Operand],
    pub captures: &'a [Capture],
    /// Addresses of the operands that are in memory.
    pub addresses: &'a [Option<Address>],
    pub arguments: &'a [Argument],
    /// Whether filters mean what the expressions of the schema capture, not the arguments of the note.
    pub captures_schema: bool,
}

impl Site<'_> {
    /// The filter's condition at this site.
    ///
    /// # Errors
    /// [`ConditionError`], for an unknown name, or if a program cannot evaluate the expression.
    pub(crate) fn condition(&self, expression: &Expr) -> Result<Condition, ConditionError> {
        self.truth(expression, true)
    }

    /// The types of the arguments, with those that the filter compares with a string: that says that they are strings, if nothing else says
    /// what they are.
    pub(crate) fn with_strings_of(&self, filter: &Expr) -> Vec<Argument> {
        let mut arguments = self.arguments.to_vec();
        filter.each_string(&mut |name| {
            if let Ok(Some((place, _))) = self.argument(name)
                && self.may_be_string(place)
                && let Some(argument) = arguments.get_mut(place)
            {
                argument.kind = Some(ArgumentType::String(None));
            }
        });
        arguments
    }

    /// Whether the type of an argument is not known, and it may be an address.
    fn may_be_string(&self, place: usize) -> bool {
        let is_open = self
            .arguments
            .get(place)
            .is_none_or(|known| known.kind.is_none() && known.labels.is_none());
        let capture = self.captures.get(place);
        is_open && matches!(capture, Some(Capture::Value(read)) if read.pointer)
    }

    /// When an expression is true, or when it is not.
    fn truth(&self, expression: &Expr, wanted: bool) -> Result<Condition, ConditionError> {
        match expression {
            Expr::Unary(Unary::Not, inner) => self.truth(inner, !wanted),
            Expr::Binary(operator @ (BinaryOperator::And | BinaryOperator::Or), left, right) => {
                let both = vec![self.truth(left, wanted)?, self.truth(right, wanted)?];
                let all = (*operator == BinaryOperator::And) == wanted;
                Ok(if all { all_of(both) } else { any_of(both) })
            }
            Expr::Binary(operator, left, right) if Relation::from_operator(*operator).is_some() => {
                let relation = Relation::from_operator(*operator).unwrap_or(Relation::Equal);
                let relation = if wanted { relation } else { relation.negated() };
                self.compare(left, right, relation)
            }
            Expr::Binary(BinaryOperator::Glob, left, right) => self.glob(left, right, wanted),
            other => {
                let relation = if wanted {
                    Relation::NotEqual
                } else {
                    Relation::Equal
                };
                match self.side(other, None)? {
                    Side::Value(value) => number(value, relation, 0),
                    Side::Float(float) => float.with_zero(!wanted),
                    Side::Constant(datum) => Ok(always_if(datum.truth() == Some(wanted))),
                    Side::Missing => Ok(Condition::Never),
                    Side::String(..) | Side::Comm => Err(beyond("a string that is not compared")),
                }
            }
        }
    }

    fn compare(
        &self,
        left: &Expr,
        right: &Expr,
        relation: Relation,
    ) -> Result<Condition, ConditionError> {
        let one = self.side(left, Some(right))?;
        let other = self.side(right, Some(left))?;
        let (one, other) = match (constant(left), constant(right)) {
            (_, Some(_)) => {
                let other = other.rounded_to(&one);
                (one, other)
            }
            (Some(_), None) => (one.rounded_to(&other), other),
            (None, None) => (one, other),
        };
        match (one, other) {
            // An argument that is a constant here, and what it is compared with.
            (Side::Constant(one), Side::Constant(other)) => {
                let ordering = one.compare(&other);
                Ok(always_if(
                    ordering.is_some_and(|ordering| relation.holds(ordering)),
                ))
            }
            (side, Side::Constant(constant)) => against(side, constant, relation),
            (Side::Constant(constant), side) => against(side, constant, relation.swapped()),
            _ => Err(beyond("a comparison of two values of a hit")),
        }
    }

    fn glob(&self, left: &Expr, right: &Expr, wanted: bool) -> Result<Condition, ConditionError> {
        let Side::Constant(Datum::String(glob)) = self.side(right, None)? else {
            return Err(beyond("a glob that is no constant"));
        };
        let (bytes, is_prefix) = match glob.strip_suffix(b"*") {
            Some(prefix) => (prefix, true),
            None => (&*glob, false),
        };
        if bytes.iter().any(|byte| b"*?[\\".contains(byte)) {
            return Err(beyond("a glob with more than a * at its end"));
        }
        let string = ComparedString {
            bytes: bytes.to_vec(),
            is_prefix,
            negated: !wanted,
        };
        string_is(self.side(left, Some(right))?, string)
    }

    /// Compiles an expression as one side of a comparison with `other`.
    fn side(&self, expression: &Expr, other: Option<&Expr>) -> Result<Side, ConditionError> {
        let Expr::String(string) = expression else {
            return self.side_of_hit(expression, matches!(other, Some(Expr::String(_))));
        };
        let labels = match other {
            Some(Expr::Name(name)) => self.argument(name)?.and_then(|(_, known)| known),
            _ => None,
        };
        let Some(labels) = labels.and_then(|known| known.labels.as_ref()) else {
            return Ok(Side::Constant(Datum::String(string.clone().into())));
        };
        let word = String::from_utf8_lossy(string);
        let number = labels.number(&word).ok_or_else(|| {
            let known: Vec<&str> = labels.words().values().map(String::as_str).collect();
            let known = known.join(", ");
            error(0, format!("{word:?} is not one of its words: {known}"))
        })?;
        Ok(Side::Constant(Datum::Integer(number.into())))
    }

    /// Compiles an expression that is not a string; `is_string` is whether it is compared with one.
    fn side_of_hit(&self, expression: &Expr, is_string: bool) -> Result<Side, ConditionError> {
        if let Some(constant) = constant(expression) {
            return Ok(Side::Constant(constant));
        }
        match expression {
            Expr::Name(name) => self.name(name, is_string),
            Expr::Str(address, length) => self.string(address, length.as_deref()),
            Expr::Load(word @ (ScalarType::Float32 | ScalarType::Float64), address) => {
                let kind = match word {
                    ScalarType::Float32 => FloatType::Single,
                    _ => FloatType::Double,
                };
                Ok(match self.value(address)? {
                    Some(at) => Side::Float(Float::at(at, kind)),
                    None => Side::Missing,
                })
            }
            other => Ok(self.value(other)?.map_or(Side::Missing, Side::Value)),
        }
    }

    /// The string at an address, of at most `length` bytes.
    fn string(&self, address: &Expr, length: Option<&Expr>) -> Result<Side, ConditionError> {
        let end = match length.map(constant) {
            None => StringEnd::Nul,
            Some(Some(Datum::Integer(most))) => {
                StringEnd::Most(u64::try_from(most.max(0)).unwrap_or(u64::MAX))
            }
            Some(_) => return Err(beyond("a string whose length is no constant")),
        };
        // A declared string ends where its declaration says.
        if let Expr::Name(name) = address
            && let Side::String(at, declared) = self.name(name, false)?
        {
            return match (declared, end) {
                (declared, StringEnd::Nul) => Ok(Side::String(at, declared)),
                (StringEnd::Nul, end) => Ok(Side::String(at, end)),
                _ => Err(beyond("a string with two lengths")),
            };
        }
        Ok(match self.value(address)? {
            Some(at) => Side::String(at, end),
            None => Side::Missing,
        })
    }

    fn name(&self, name: &Name, is_string: bool) -> Result<Side, ConditionError> {
        let Some((place, known)) = self.argument(name)? else {
            return Ok(match SampleField::of_hit(&name.text) {
                Some(SampleField::Comm) => Side::Comm,
                Some(field) => Side::Value(Chain {
                    start: Start::Field(field),
                    steps: Vec::new(),
                    signed: false,
                }),
                None => return Err(beyond("a thread context")),
            });
        };
        if let Some(captured) = self.captured(known) {
            let side = self.of_note().side_of_hit(&captured, is_string)?;
            // A word of memory is a string if the filter says that, as an argument without a type is.
            let is_word = matches!(captured, Expr::Load(ScalarType::Pointer, _));
            return Ok(match side {
                Side::Value(at) if is_string && is_word => Side::String(at, StringEnd::Nul),
                side => side,
            });
        }
        let kind = known.and_then(|known| known.kind.as_ref());
        let (Some(capture), Some(operand)) = (self.captures.get(place), self.operands.get(place))
        else {
            return Ok(Side::Missing);
        };
        let of_string =
            matches!(kind, Some(ArgumentType::String(_))) || is_string && self.may_be_string(place);
        if let (Capture::Constant, Some(number)) = (capture, number_of(operand)) {
            return Ok(Side::Constant(number));
        }
        if let (true, Capture::Value(read)) = (operand.float, capture)
            && !self.is_part(operand)
        {
            return Ok(Side::Float(Float {
                bits: Chain::from_read(read.clone()),
                kind: FloatType::from_bytes(read.size),
            }));
        }
        let Some(value) = self.read(place) else {
            return Ok(Side::Missing);
        };
        if !of_string {
            return Ok(Side::Value(value));
        }
        let end = match kind {
            Some(ArgumentType::String(Some(Length::Argument(length)))) => self.end_by(length),
            Some(ArgumentType::String(Some(Length::Fixed(_)))) => {
                return Err(beyond("a string of fixed length"));
            }
            _ => StringEnd::Nul,
        };
        Ok(Side::String(value, end))
    }

    /// Where a string ends whose length another argument says. Where that is a constant, a string is recorded up to its NUL.
    fn end_by(&self, length: &str) -> StringEnd {
        let text = length.to_owned();
        let name = Name { text, at: 0 };
        if let Ok(Side::Constant(Datum::Integer(most))) = self.name(&name, false) {
            return u64::try_from(most).map_or(StringEnd::Nul, StringEnd::Most);
        }
        let length = self.value(&Expr::Name(name)).ok().flatten();
        length.map_or(StringEnd::Nul, StringEnd::Length)
    }

    /// The expression that is captured in place of an argument.
    fn captured(&self, known: Option<&Argument>) -> Option<Expr> {
        let capture = known?.capture.as_deref();
        let capture = capture.filter(|_| self.captures_schema)?;
        Expr::parse(capture).ok()
    }

    /// The same site, with the arguments of the note: those are what the expressions of a schema have.
    const fn of_note(&self) -> Self {
        Self {
            captures_schema: false,
            ..*self
        }
    }

    /// The index of an argument, and its name and type; `None` for a name that is not an argument, such as `comm`.
    pub(super) fn argument(
        &self,
        name: &Name,
    ) -> Result<Option<(usize, Option<&Argument>)>, ConditionError> {
        let place = own_argument(name, self.event, self.arguments)?;
        Ok(place.map(|place| (place, self.arguments.get(place))))
    }

    /// Whether only a part of an operand's value is captured: of a pair of registers the note names only one, of what is wider
    /// than a word the rest is left.
    pub(super) fn is_part(&self, operand: &Operand) -> bool {
        let bytes = operand.bytes(self.arch);
        let pair = matches!(operand.location, Location::Register { .. })
            && bytes > self.arch.pointer_size();
        pair || bytes > 8
    }

    /// The value of an argument, by its type; `None` if it cannot be read.
    fn read(&self, place: usize) -> Option<Chain> {
        let Some(Capture::Value(read)) = self.captures.get(place) else {
            return None;
        };
        let operand = self.operands.get(place)?;
        if operand.float || self.is_part(operand) {
            return None;
        }
        let mut read = read.clone();
        match self
            .arguments
            .get(place)
            .and_then(|known| known.kind.as_ref())
        {
            Some(ArgumentType::Integer { bytes, signed }) => {
                read.size = read.size.min(*bytes);
                read.signed = *signed;
            }
            Some(kind) if kind.is_address() => read.signed = false,
            _ => {}
        }
        Some(Chain::from_read(read))
    }

    /// The address of an argument; `None` if it is not in memory at this site.
    fn address_of(&self, name: &Name) -> Result<Option<Chain>, ConditionError> {
        let Some((place, _)) = self.argument(name)? else {
            return Err(error(
                name.at,
                format!("{name} is not an argument in memory"),
            ));
        };
        let address = self.addresses.get(place).copied().flatten();
        Ok(address.map(|address| {
            Chain::from_read(Read {
                source: Source::Address(address),
                size: self.arch.pointer_size(),
                signed: false,
                pointer: false,
            })
        }))
    }

    /// The lowest bytes of an argument of which more are not captured; `None` for others.
    fn lowest(&self, expression: &Expr, bytes: u8) -> Result<Option<Chain>, ConditionError> {
        let Expr::Name(name) = expression else {
            return Ok(None);
        };
        let Some((place, known)) = self.argument(name)? else {
            return Ok(None);
        };
        let Some(operand) = self.operands.get(place) else {
            return Ok(None);
        };
        if self.captured(known).is_some() {
            return Ok(None);
        }
        if operand.float || !self.is_part(operand) {
            return Ok(None);
        }
        if let Some(mut chain) = self.address_of(name)? {
            let signed = false;
            chain.steps.push(Step::Load { bytes, signed });
            return Ok(Some(chain));
        }
        Ok(match self.captures.get(place) {
            Some(Capture::Value(read)) if read.size >= bytes => {
                Some(Chain::from_read(read.clone()))
            }
            _ => None,
        })
    }

    /// An argument as a number. A string that is captured in its place is none, but the argument itself is its address or leads to that.
    fn numeric_argument(&self, name: &Name) -> Result<Side, ConditionError> {
        let known = self.argument(name)?.and_then(|(_, known)| known);
        let site = match self.captured(known) {
            Some(Expr::Str(..) | Expr::Bytes(..)) => self.of_note(),
            _ => *self,
        };
        site.name(name, false)
    }

    /// A number of a hit; `None` if it cannot be read at this site.
    pub(super) fn value(&self, expression: &Expr) -> Result<Option<Chain>, ConditionError> {
        let step = |inner: &Expr, step: Step, signed: bool| {
            Ok(self.value(inner)?.map(|mut chain| {
                chain.steps.push(step);
                chain.signed = signed;
                chain
            }))
        };
        match expression {
            Expr::Name(name) => match self.numeric_argument(name)? {
                Side::Value(value) | Side::String(value, _) => Ok(Some(value)),
                Side::Constant(Datum::Integer(number)) => Ok(Some(Chain::from_read(Read {
                    source: Source::Number(number as u64),
                    size: 8,
                    signed: number < 0,
                    pointer: false,
                }))),
                Side::Comm => Err(beyond("arithmetic with comm")),
                Side::Float(_) | Side::Constant(Datum::Float32(_) | Datum::Float(_)) => {
                    Err(ConditionError::FloatArithmetic)
                }
                _ => Ok(None),
            },
            Expr::Unary(Unary::Address, inner) => match &**inner {
                Expr::Name(name) => self.address_of(name),
                other => Err(beyond(&format!("the address of {other}"))),
            },
            Expr::Cast(word, inner) => {
                let (bytes, signed) = self.word(*word)?;
                if let Some(mut chain) = self.lowest(inner, bytes)? {
                    chain.steps.push(Step::Cut { bytes, signed });
                    chain.signed = signed;
                    return Ok(Some(chain));
                }
                step(inner, Step::Cut { bytes, signed }, signed)
            }
            Expr::Load(word, address) => {
                let (bytes, signed) = self.word(*word)?;
                step(address, Step::Load { bytes, signed }, signed)
            }
            Expr::Binary(
                operator
                @ (BinaryOperator::Add | BinaryOperator::Subtract | BinaryOperator::BitAnd),
                left,
                right,
            ) => {
                let Some(Datum::Integer(number)) = constant(right) else {
                    return Err(beyond("arithmetic with two values of a hit"));
                };
                let add = |number| {
                    Ok(self.value(left)?.map(|mut chain| {
                        chain.steps.push(Step::Add(number));
                        chain
                    }))
                };
                match (operator, i64::try_from(number), u64::try_from(number)) {
                    (BinaryOperator::Add, Ok(number), _) => add(number),
                    (BinaryOperator::Subtract, Ok(number), _) if number != i64::MIN => add(-number),
                    (BinaryOperator::BitAnd, _, Ok(mask)) => step(left, Step::And(mask), false),
                    _ => Err(beyond("a constant of that size")),
                }
            }
            other => Err(beyond(&format!("{other}"))),
        }
    }

    /// Size and sign of a type.
    pub(super) fn word(&self, word: ScalarType) -> Result<(u8, bool), ConditionError> {
        match word {
            ScalarType::Integer { bytes, signed } => Ok((bytes, signed)),
            ScalarType::Pointer => Ok((self.arch.pointer_size(), false)),
            ScalarType::Float32 | ScalarType::Float64 => Err(beyond("a float")),
        }
    }
}
