//! From an operand to an operation, or to the value that it has in every sample.

use usdtrec_format::{Arch, Constant, Location, Missing, Operand, Register, Value};

use super::address::{Address, Index, Sampled};
use super::machine::place;
use super::operation::{Shape, Source};

/// An operand, compiled.
pub(super) enum Compiled {
    /// The same in every sample: a constant, or something that no sample holds.
    Fixed(Value),
    /// To be worked out for each sample.
    PerSample(Source, Shape),
}

/// Compiles an operand for samples that hold the registers of `mask` (perf's register bits).
pub(super) fn operand(operand: &Operand, arch: Arch, mask: u64) -> Compiled {
    match per_sample(operand, arch, mask) {
        Ok(Ok((source, shape))) => Compiled::PerSample(source, shape),
        Ok(Err(value)) => Compiled::Fixed(value),
        Err(missing) => Compiled::Fixed(Value::Missing(missing)),
    }
}

/// A constant's value, or how to get a variable's.
type Plan = Result<(Source, Shape), Value>;

fn per_sample(operand: &Operand, arch: Arch, mask: u64) -> Result<Plan, Missing> {
    let sampled = |register: Register| sampled(arch, register, mask);
    let memory = |address: Address| {
        let shape = shape(operand, arch.pointer_size())?;
        if let Shape::Wide(bytes) = shape
            && arch.is_big_endian()
        {
            // The lowest bytes are the last ones.
            return Err(Missing::Operand(format!("value of {bytes} bytes")));
        }
        Ok(Ok((Source::Memory(address), shape)))
    };
    match &operand.location {
        Location::Constant(Constant::Integer(number)) => integer(operand, *number).map(Err),
        Location::ConstantExpression(number) => integer(operand, *number).map(Err),
        Location::Constant(Constant::Float(number)) => float(operand, *number).map(Err),
        &Location::Register {
            register,
            width,
            shift,
            pair,
        } => register_operand(operand, arch, sampled(register)?, (width, shift, pair)).map(Ok),
        &Location::RegisterDeref { register, offset } => {
            let of_stack = register == arch.stack_pointer();
            let base = match sampled(register) {
                // A stack dump serves it all the same.
                Err(_) if of_stack => None,
                base => Some(base?),
            };
            memory(Address {
                base,
                index: None,
                offset,
                stack_offset: of_stack.then_some(offset),
            })
        }
        Location::Indexed(indexed) => memory(Address {
            base: indexed.register.map(sampled).transpose()?,
            index: Some(Index {
                register: sampled(indexed.index)?,
                scale: indexed.scale,
                extend: indexed.extend,
            }),
            offset: indexed.offset,
            stack_offset: None,
        }),
        location => Err(Missing::Operand(unreachable(location))),
    }
}

fn sampled(arch: Arch, register: Register, mask: u64) -> Result<Sampled, Missing> {
    let name = arch.register_name(register);
    let place = place(arch, register, mask).ok_or(Missing::Register(name))?;
    Ok(Sampled { place, name })
}

/// Why an operand's value is never in a sample of registers and stack.
fn unreachable(location: &Location) -> String {
    match location {
        Location::SymbolDeref { symbol, .. } | Location::SymbolIndexed { symbol, .. } => {
            format!("memory at {symbol} not captured")
        }
        // Where a symbol lies in a process is for its dynamic linker to say, which may take another file's.
        Location::SymbolAddress { symbol, .. } | Location::GotDeref { symbol, .. } => {
            format!("address of {symbol} not captured")
        }
        Location::Segment { segment, .. } => format!("memory in segment {segment} not captured"),
        Location::Unparsed { text, reason } => format!("{text}: {reason}"),
        _ => "operand of a kind not known here".to_owned(),
    }
}

/// The value of an integer in the note, cut to the operand's size.
fn integer(operand: &Operand, number: i64) -> Result<Value, Missing> {
    if operand.float && number != 0 {
        // Whether the bits or the number are meant is not said; for 0 both are the same.
        return Err(Missing::Operand(format!("integer {number} for a float")));
    }
    let wide = operand.size.is_some_and(|size| size > 8);
    if number < 0 && (operand.size.is_none() || wide && operand.is_signed()) {
        return Ok(Value::Signed(number));
    }
    if wide && number >= 0 {
        return Ok(Value::Unsigned(number.cast_unsigned()));
    }
    shape(operand, 8).map(|shape| shape.value(number as u64))
}

fn float(operand: &Operand, number: f64) -> Result<Value, Missing> {
    Ok(match shape(operand, 8)? {
        Shape::Float32 => Value::Float32(number as f32),
        _ => Value::Float64(number),
    })
}

/// A register: its `width` in bytes, its `shift` in bits, and whether it is one of a pair.
fn register_operand(
    operand: &Operand,
    arch: Arch,
    register: Sampled,
    (width, shift, pair): (u8, u8, bool),
) -> Result<(Source, Shape), Missing> {
    let size = operand.size.unwrap_or(width);
    let word = arch.pointer_size();
    if pair || word == 4 && size == 8 {
        return Ok((Source::LowerHalf(register), Shape::Unsigned(word)));
    }
    let shape = match shape(operand, width)? {
        // Of a register name narrower than the value, only what it names is known to be the value's.
        Shape::Unsigned(bytes) => Shape::Unsigned(bytes.min(width)),
        Shape::Signed(bytes) => Shape::Signed(bytes.min(width)),
        float if float.bytes() > width => {
            let reason = format!(
                "{}-byte float in {width} bytes of a register",
                float.bytes()
            );
            return Err(Missing::Operand(reason));
        }
        float => float,
    };
    Ok((Source::Register { register, shift }, shape))
}

/// The shape of a value; `default` is its size in bytes where the note gives none.
fn shape(operand: &Operand, default: u8) -> Result<Shape, Missing> {
    let size = operand.size.unwrap_or(default);
    match (operand.float, size) {
        (true, 4) => Ok(Shape::Float32),
        (true, 8) => Ok(Shape::Float64),
        (true, _) => Err(Missing::Operand(format!("{size}-byte float"))),
        (false, 1 | 2 | 4 | 8) if operand.signed == Some(true) => Ok(Shape::Signed(size)),
        (false, 1 | 2 | 4 | 8) => Ok(Shape::Unsigned(size)),
        (false, 9..) => Ok(Shape::Wide(size)),
        (false, _) => Err(Missing::Operand(format!("value of {size} bytes"))),
    }
}
