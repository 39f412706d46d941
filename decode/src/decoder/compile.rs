//! Compiles operands to operations, or to values that do not depend on the sample.

use usdtrec_format::{Arch, Constant, Location, Missing, Operand, Register, Value};

use super::operation::{BitSource, Shape};
use super::registers::{Address, Index, Sampled, sampled_index};

/// A compiled argument.
#[derive(Debug)]
pub(super) enum Compiled<Operation> {
    /// A value that does not depend on the sample: a constant, or a value that is always missing.
    Fixed(Value),
    /// An operation on each sample.
    PerSample(Operation),
}

/// The bits of an operand in a sample.
#[derive(Debug)]
pub(super) struct OperandBits {
    pub(super) source: BitSource,
    pub(super) shape: Shape,
}

/// Compiles an operand for samples with the registers of `mask` (perf's register bits).
pub(super) fn operand(operand: &Operand, arch: Arch, mask: u64) -> Compiled<OperandBits> {
    captured(operand, arch, mask).unwrap_or_else(|missing| Compiled::Fixed(Value::Missing(missing)))
}

/// The error is why the value is in no sample.
fn captured(operand: &Operand, arch: Arch, mask: u64) -> Result<Compiled<OperandBits>, Missing> {
    let sampled = |register: Register| sampled(arch, register, mask);
    let memory = |address: Address| {
        let shape = shape(operand, arch.pointer_size())?;
        if let Shape::Wide(bytes) = shape
            && arch.is_big_endian()
        {
            // The lowest bytes are the last ones.
            return Err(Missing::Operand(format!("value of {bytes} bytes")));
        }
        let source = BitSource::Memory(address);
        Ok(Compiled::PerSample(OperandBits { source, shape }))
    };
    match &operand.location {
        Location::Constant(Constant::Integer(number)) | Location::ConstantExpression(number) => {
            integer(operand, *number).map(Compiled::Fixed)
        }
        Location::Constant(Constant::Float(number)) => float(operand, *number).map(Compiled::Fixed),
        &Location::Register {
            register,
            width,
            shift,
            pair,
        } => {
            let bits = RegisterBits { width, shift, pair };
            register_operand(operand, arch, sampled(register)?, bits).map(Compiled::PerSample)
        }
        &Location::RegisterDeref { register, offset } => {
            let of_stack = register == arch.stack_pointer();
            let base = match sampled(register) {
                // The stack dump is sufficient.
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
    let index = sampled_index(arch, register, mask).ok_or(Missing::Register(name))?;
    Ok(Sampled { index, name })
}

/// Why an operand's value is never in a sample with registers and stack.
fn unreachable(location: &Location) -> String {
    match location {
        Location::SymbolDeref { symbol, .. } | Location::SymbolIndexed { symbol, .. } => {
            format!("memory at {symbol} not captured")
        }
        // The dynamic linker determines the address of a symbol in a process, and may choose another file's symbol.
        Location::SymbolAddress { symbol, .. } | Location::GotDeref { symbol, .. } => {
            format!("address of {symbol} not captured")
        }
        Location::Absolute { address } => format!("memory at {address:#x} not captured"),
        Location::Segment { segment, .. } => format!("memory in segment {segment} not captured"),
        Location::Unparsed { text, error } => format!("{text}: {error}"),
        _ => "operand of a kind not known here".to_owned(),
    }
}

/// The value of a constant, truncated to the operand's size.
fn integer(operand: &Operand, number: i64) -> Result<Value, Missing> {
    if operand.float && number != 0 {
        // The note does not say whether this is the number or its bits, which are equal for 0 only.
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

/// The bits of a register that a note names, as in [`Location::Register`].
#[derive(Clone, Copy)]
struct RegisterBits {
    /// Bytes.
    width: u8,
    /// Number of the first bit.
    shift: u8,
    /// Whether the value is in this register and the next.
    pair: bool,
}

/// Compiles a register operand.
fn register_operand(
    operand: &Operand,
    arch: Arch,
    register: Sampled,
    RegisterBits { width, shift, pair }: RegisterBits,
) -> Result<OperandBits, Missing> {
    let size = operand.size.unwrap_or(width);
    let word = arch.pointer_size();
    if pair || word == 4 && size == 8 {
        return Ok(OperandBits {
            source: BitSource::LowerHalf(register),
            shape: Shape::Unsigned(word),
        });
    }
    let shape = match shape(operand, width)? {
        // If the register name is narrower than the value, only the named part is known.
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
    // A floating-point register of s390x has shorter values at its left.
    let at_left = arch == Arch::S390x && register.name.starts_with('f');
    let shift = if at_left {
        64 - 8 * shape.bytes()
    } else {
        shift
    };
    let source = BitSource::Register { register, shift };
    Ok(OperandBits { source, shape })
}

/// The shape of a value; `default` is its size in bytes if the note has no size.
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
