//! Arguments that are bits of a register, for callers that convert samples without decoding values.

use super::Decoder;
use super::operation::{BitSource, Operation, Shape};

/// An argument that is bits of one sampled register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWord {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// Index of the register among the sampled ones, from 0.
    pub register: usize,
    /// The lowest bit of the value.
    pub shift: u8,
    /// Size of the value in bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it is a signed integer.
    pub signed: bool,
    /// Whether the bits are those of a float.
    pub float: bool,
}

impl RegisterWord {
    /// The value's bits, sign-extended if it is signed. `register` is the content of the register.
    #[must_use]
    #[inline]
    pub const fn bits(&self, register: u64) -> u64 {
        let unused = 64 - 8 * self.bytes as u32;
        let bits = register >> self.shift << unused;
        if self.signed {
            (bits.cast_signed() >> unused).cast_unsigned()
        } else {
            bits >> unused
        }
    }
}

impl Decoder {
    /// The arguments that are not constant, if all of them are bits of registers of a 64-bit little-endian program; `None` if
    /// any is not, or for other programs.
    #[must_use]
    pub fn register_words(&self) -> Option<Vec<RegisterWord>> {
        let is_usual = !self.machine.narrow && !self.machine.big_endian;
        let has_others = !self.raw.is_empty() || !self.fields.is_empty();
        if !is_usual || has_others {
            return None;
        }
        self.operations
            .iter()
            .map(Operation::register_word)
            .collect()
    }
}

impl Operation {
    const fn register_word(&self) -> Option<RegisterWord> {
        let BitSource::Register { register, shift } = &self.source else {
            return None;
        };
        let (bytes, signed) = match self.shape {
            Shape::Unsigned(bytes) => (bytes, false),
            Shape::Signed(bytes) => (bytes, true),
            Shape::Float32 => (4, false),
            Shape::Float64 => (8, false),
            Shape::Wide(_) => return None,
        };
        Some(RegisterWord {
            argument: self.slot,
            register: register.index,
            shift: *shift,
            bytes,
            signed,
            float: matches!(self.shape, Shape::Float32 | Shape::Float64),
        })
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{Attr, Sample};
    use usdtrec_format::{Arch, Value};

    use super::super::Decoder;

    fn bits(value: &Value) -> u64 {
        match value {
            Value::Unsigned(number) => *number,
            Value::Signed(number) => number.cast_unsigned(),
            Value::Float32(number) => number.to_bits().into(),
            Value::Float64(number) => number.to_bits(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_are_the_values_that_are_decoded() {
        let attr = Attr {
            sample_regs_user: 0b11_1111,
            ..Attr::default()
        };
        let args = "-1@%al 1@%ah -2@%bx 2@%cx -4@%edx 4@%esi -8@%rdi 8@%rax 4f@%ebx 8f@%rcx -4@$7";
        let decoder = Decoder::new(args, Some(Arch::X86_64), &attr);
        let words = decoder.register_words().unwrap();
        assert_eq!(words.len(), 10, "the constant is in no register");
        for seed in [0, 1, 0x8081_8283_8485_8687, u64::MAX, 0x7fff_7fff_7fff_7f80] {
            let registers = (0..6_u32).map(|at| u64::rotate_left(seed, 4 * at));
            let registers: Vec<u64> = registers.collect();
            let bytes: Vec<u8> = registers
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let sample = Sample {
                regs_abi: 2,
                regs: &bytes,
                ..Sample::default()
            };
            let mut values = decoder.values();
            decoder.decode(&sample, &mut values);
            for word in &words {
                let register = registers[word.register];
                assert_eq!(
                    word.bits(register),
                    bits(&values[word.argument]),
                    "{word:?}"
                );
            }
        }
    }

    #[test]
    fn other_places_and_machines_have_no_words() {
        let attr = Attr {
            sample_regs_user: u64::MAX,
            ..Attr::default()
        };
        for (args, arch) in [
            ("-4@%eax -4@8(%rsp)", Arch::X86_64),
            ("-4@%eax", Arch::I386),
            ("8@%r2", Arch::S390x),
        ] {
            let decoder = Decoder::new(args, Some(arch), &attr);
            assert_eq!(decoder.register_words(), None, "{args}");
        }
    }
}
