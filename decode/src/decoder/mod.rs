//! Decodes samples to values. The operands of a site are compiled once into a flat list of operations.

mod compile;
mod constant_address;
mod field;
mod number_source;
mod operation;
mod raw;
mod registers;
mod shown_arguments;
mod stack_copy;
mod string_length;
#[cfg(test)]
mod tests;
mod typed;

use usdtrec_format::perf::{Attr, Sample, TracepointFormat};
use usdtrec_format::trace::StringArgument;
use usdtrec_format::{Arch, Missing, Operand, RawLayout, Value, parse_operands};

pub use self::constant_address::{StringEvidence, UnreadString};
pub use self::number_source::{IntegerShape, NumberSource, RawInteger};

use self::compile::{Compiled, OperandBits};
use self::constant_address::ConstantAddress;
use self::field::{FieldArgument, FieldOperation};
use self::operation::{BitSource, Operation, Shape};
use self::raw::RawOperation;
use self::registers::{Machine, Registers};
use self::stack_copy::Stack;

/// Decodes the samples of one site.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Operations on registers and stack.
    operations: Vec<Operation>,
    /// Operations on the raw part of the bpf engine.
    raw: Vec<RawOperation>,
    fields: Vec<FieldOperation>,
    /// Strings with a length: another argument, or fixed.
    lengths: Vec<string_length::StringLength>,
    /// One value for each operand: constants and values that are always missing; others are
    /// [`Missing::Truncated`] until a sample is decoded.
    fixed: Vec<Value>,
    /// Those of the constants that may be addresses of strings.
    constants: Vec<ConstantAddress>,
    /// Whether any operation reads memory.
    reads_memory: bool,
    /// For each value the index of the probe's argument; `None` if they are the same.
    shown: Option<Vec<usize>>,
    machine: Machine,
}

/// An argument of a tracepoint.
#[derive(Clone, Debug)]
pub struct TracepointArgument {
    /// Name of the field, followed by the index for an element of an array.
    pub name: String,
    /// Type: `s32`, `u64`, `str`; `?` if the value cannot be decoded.
    pub kind: String,
}

/// A decoder of a tracepoint's samples.
#[derive(Clone, Debug)]
pub struct TracepointDecoder {
    /// The arguments, in the order of the decoder's values.
    pub arguments: Vec<TracepointArgument>,
    /// The decoder.
    pub decoder: Decoder,
}

impl Decoder {
    /// Parses and compiles the argument string of a site, as [`from_operands`](Self::from_operands) does.
    #[must_use]
    pub fn new(args: &str, arch: Option<Arch>, attr: &Attr) -> Self {
        Self::from_operands(&parse_operands(args, arch), arch, attr)
    }

    /// Compiles the operands of a site.
    ///
    /// `arch` is the architecture of the site's file (`None` if unknown: then every value is missing), and
    /// `attr` is the event's: its register mask and stack size determine the contents of a sample.
    #[must_use]
    pub fn from_operands(operands: &[Operand], arch: Option<Arch>, attr: &Attr) -> Self {
        let machine = Machine::new(arch, attr);
        let mut operations = Vec::new();
        let mut fixed = Vec::with_capacity(operands.len());
        let mut constants = Vec::new();
        for (slot, operand) in operands.iter().enumerate() {
            let compiled = arch.map_or_else(
                || {
                    let reason = "the file's architecture is not known".to_owned();
                    Compiled::Fixed(Value::Missing(Missing::Operand(reason)))
                },
                |arch| compile::operand(operand, arch, attr.sample_regs_user),
            );
            fixed.push(match compiled {
                Compiled::Fixed(value) => {
                    let address = arch.and_then(|arch| {
                        ConstantAddress::from_operand(slot, operand, arch, &value)
                    });
                    constants.extend(address);
                    value
                }
                Compiled::PerSample(OperandBits { source, shape }) => {
                    let is_address =
                        arch.is_some_and(|arch| shape == Shape::Unsigned(arch.pointer_size()));
                    operations.push(Operation {
                        slot,
                        source,
                        shape,
                        string: is_address.then_some(StringEvidence::Size),
                    });
                    Value::Missing(Missing::Truncated)
                }
            });
        }
        let of_memory = |operation: &Operation| matches!(operation.source, BitSource::Memory(_));
        Self {
            reads_memory: operations.iter().any(of_memory),
            constants,
            operations,
            raw: Vec::new(),
            fields: Vec::new(),
            lengths: Vec::new(),
            fixed,
            shown: None,
            machine,
        }
    }

    /// Compiles the argument string of a site whose samples have values in the raw part (bpf engine).
    #[must_use]
    pub fn from_raw(args: &str, arch: Option<Arch>, layout: &RawLayout) -> Self {
        let mut decoder = Self::from_operands(&[], arch, &Attr::default());
        let Some(arch) = arch else {
            return Self::new(args, None, &Attr::default());
        };
        for (slot, operand) in layout.operands(args, Some(arch)).iter().enumerate() {
            let value = match raw::argument(slot, operand, arch, layout) {
                Compiled::Fixed(value) => {
                    let address = ConstantAddress::from_operand(slot, operand, arch, &value);
                    decoder.constants.extend(address);
                    value
                }
                Compiled::PerSample(operation) => {
                    decoder.raw.push(operation);
                    Value::Missing(Missing::Truncated)
                }
            };
            decoder.fixed.push(value);
        }
        decoder
    }

    /// Compiles the fields of a tracepoint.
    #[must_use]
    pub fn from_tracepoint(format: &TracepointFormat) -> TracepointDecoder {
        let mut decoder = Self::from_operands(&[], None, &Attr::default());
        let mut arguments = Vec::new();
        for argument in field::arguments(format) {
            let FieldArgument {
                name,
                kind,
                operation,
            } = argument;
            arguments.push(TracepointArgument { name, kind });
            decoder.fixed.push(match operation {
                Compiled::PerSample(operation) => {
                    decoder.fields.push(operation);
                    Value::Missing(Missing::Truncated)
                }
                Compiled::Fixed(value) => value,
            });
        }
        TracepointDecoder { arguments, decoder }
    }

    /// Number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fixed.len()
    }

    /// Whether the site has no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fixed.is_empty()
    }

    /// A buffer for [`decode`](Self::decode), one value for each argument.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        self.fixed.clone()
    }

    /// Decodes a sample into a buffer that [`values`](Self::values) of this decoder made.
    ///
    /// Only values that depend on the sample are written: constants, and operands that are always missing,
    /// are in the buffer from the start.
    #[inline]
    pub fn decode(&self, sample: &Sample<'_>, values: &mut [Value]) {
        self.decode_of(sample, values, |_| true);
        for length in &self.lengths {
            length.apply(sample.raw, values);
        }
    }

    /// Decodes the argument with this index into a buffer of [`values`](Self::values), and others only where its value depends on them.
    #[inline]
    pub fn decode_one(&self, index: usize, sample: &Sample<'_>, values: &mut [Value]) {
        if self.lengths.iter().any(|length| length.string == index) {
            return self.decode(sample, values);
        }
        self.decode_of(sample, values, |slot| slot == index);
    }

    /// Decodes the chosen arguments, whose strings are as long as they were captured.
    #[inline]
    fn decode_of(
        &self,
        sample: &Sample<'_>,
        values: &mut [Value],
        is_chosen: impl Fn(usize) -> bool,
    ) {
        for constant in self.constants.iter().filter(|known| is_chosen(known.slot)) {
            constant.reset(values);
        }
        for operation in self.raw.iter().filter(|known| is_chosen(known.slot())) {
            if let Some(value) = values.get_mut(operation.slot()) {
                operation.decode(sample.raw, value);
            }
        }
        for field in self.fields.iter().filter(|known| is_chosen(known.slot)) {
            if let Some(value) = values.get_mut(field.slot) {
                field.decode(sample.raw, value);
            }
        }
        if self.operations.is_empty() {
            return;
        }
        let machine = &self.machine;
        let registers = Registers::new(sample, machine);
        let stack = if self.reads_memory {
            Stack::new(sample, &registers, machine)
        } else {
            Stack::default()
        };
        for operation in self.operations.iter().filter(|known| is_chosen(known.slot)) {
            if let Some(value) = values.get_mut(operation.slot) {
                *value = operation.value(&registers, &stack);
            }
        }
    }

    /// Takes what other hits of the site say of an argument of the probe.
    pub fn learn_string(&mut self, learned: &StringArgument) {
        for slot in self.slots_of(learned.argument as usize) {
            self.learn_value(slot, learned);
        }
    }

    /// Takes that a value is a string.
    pub fn declare_string(&mut self, slot: usize) {
        let declared = StringArgument {
            site: 0,
            argument: slot as u32,
            is_string: true,
            address: None,
        };
        self.learn_value(slot, &declared);
    }

    fn learn_value(&mut self, slot: usize, learned: &StringArgument) {
        let of_argument = |operation: &&mut RawOperation| operation.slot() == slot;
        if let Some(operation) = self.raw.iter_mut().find(of_argument) {
            operation.learn_string(learned);
        }
        if learned.address.is_some() {
            return;
        }
        let words = self.operations.iter_mut();
        let words = words.map(|operation| (operation.slot, &mut operation.string));
        let constants = self.constants.iter_mut();
        let constants = constants.map(|constant| (constant.slot, &mut constant.string));
        for (_, string) in words
            .chain(constants)
            .filter(|(argument, _)| *argument == slot)
        {
            *string = string.map(|string| string.learned(learned.is_string));
        }
    }

    /// The indexes of the arguments that samples may have as the address of a string without the string. They depend on the site and
    /// its types only.
    #[must_use]
    pub fn unread_arguments(&self) -> Vec<usize> {
        let raw = self
            .raw
            .iter()
            .filter(|operation| operation.may_lack_string());
        let words = self.operations.iter();
        let words = words.filter(|operation| operation.string.is_some());
        let constants = self.constants.iter();
        let constants = constants.filter(|constant| constant.string.is_some());
        raw.map(RawOperation::slot)
            .chain(words.map(|operation| operation.slot))
            .chain(constants.map(|constant| constant.slot))
            .collect()
    }

    /// The string of one of the [`unread_arguments`](Self::unread_arguments), if a sample lacks it. `values` has the argument's value.
    #[must_use]
    pub fn unread_string(
        &self,
        argument: usize,
        sample: &Sample<'_>,
        values: &[Value],
    ) -> Option<UnreadString> {
        let raw = self.raw.iter().find(|known| known.slot() == argument);
        let constant = || self.constants.iter().find(|known| known.slot == argument);
        let string = match raw {
            Some(operation) => operation.unread_string(sample.raw),
            None => match constant() {
                Some(constant) => constant.unread_string(),
                None => self.string_of_word(argument, values),
            },
        };
        string.filter(|string| string.address >= constant_address::MIN_ADDRESS)
    }

    /// The string at the address that an argument in a register or in memory is.
    fn string_of_word(&self, argument: usize, values: &[Value]) -> Option<UnreadString> {
        let mut operations = self.operations.iter();
        let operation = operations.find(|known| known.slot == argument)?;
        let Some(&Value::Unsigned(address)) = values.get(argument) else {
            return None;
        };
        Some(UnreadString {
            argument,
            address,
            evidence: operation.string?,
            limit: constant_address::LIMIT,
        })
    }
}
