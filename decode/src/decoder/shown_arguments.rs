//! The choice of arguments that an argument list makes.
//!
//! A list that only names, chooses or orders arguments is not captured. The definitions say which of the probe's own
//! arguments are shown, in which order and under which names (`ProbeDefinition::shown`), and the decoder applies it
//! after the types. So such lists work with both engines, values are those without the list, and the recorder's filters
//! work on the probe's own arguments.

use usdtrec_format::{Missing, ShownArgument, Value};

use super::Decoder;
use super::operation::Operation;
use super::string_length::{Bytes, StringLength};

impl Decoder {
    /// The decoder of the arguments that a list shows, in the list's order. Apply types before: they are those of the probe's own
    /// arguments.
    #[must_use]
    pub fn showing(self, shown: &[ShownArgument]) -> Self {
        let mut showing = Self {
            operations: Vec::new(),
            raw: Vec::new(),
            fields: Vec::new(),
            lengths: Vec::new(),
            fixed: Vec::new(),
            constants: Vec::new(),
            shown: Some(shown.iter().map(|shown| shown.argument).collect()),
            ..self
        };
        for (slot, argument) in shown.iter().enumerate() {
            showing.show(slot, argument.argument, &self, shown);
        }
        showing
    }

    /// Adds an argument of the probe.
    fn show(&mut self, slot: usize, argument: usize, own: &Self, shown: &[ShownArgument]) {
        let fixed = own.fixed.get(argument).cloned();
        self.fixed.push(fixed.unwrap_or_else(no_argument));
        let operations = own.operations.iter().filter(|known| known.slot == argument);
        self.operations.extend(
            operations
                .cloned()
                .map(|operation| Operation { slot, ..operation }),
        );
        let raw = own.raw.iter().filter(|known| known.slot() == argument);
        self.raw.extend(raw.map(|operation| operation.at(slot)));
        let fields = own.fields.iter().filter(|known| known.slot == argument);
        self.fields.extend(fields.map(|operation| {
            let mut operation = *operation;
            operation.slot = slot;
            operation
        }));
        let constants = own.constants.iter().filter(|known| known.slot == argument);
        self.constants.extend(constants.map(|constant| {
            let mut constant = *constant;
            constant.slot = slot;
            constant
        }));
        let lengths = own.lengths.iter().filter(|known| known.string == argument);
        self.lengths.extend(lengths.map(|known| StringLength {
            string: slot,
            length: own.length_beside(&known.length, shown),
        }));
    }

    /// The indexes of the values that show an argument of the probe.
    pub(super) fn slots_of(&self, argument: usize) -> Vec<usize> {
        let Some(shown) = &self.shown else {
            return vec![argument];
        };
        let slots = shown.iter().enumerate();
        let slots = slots.filter(|(_, own)| **own == argument);
        slots.map(|(slot, _)| slot).collect()
    }

    /// The length of a string among the arguments that are shown, which may not have it.
    fn length_beside(&self, length: &Bytes, shown: &[ShownArgument]) -> Bytes {
        let Bytes::OfArgument(own) = *length else {
            return length.clone();
        };
        if let Some(slot) = shown.iter().position(|known| known.argument == own) {
            return Bytes::OfArgument(slot);
        }
        match self.raw.iter().find(|known| known.slot() == own) {
            Some(operation) => Bytes::OfHidden(Box::new(operation.clone())),
            None => match self.fixed.get(own).and_then(Bytes::number) {
                Some(bytes) => Bytes::Fixed(bytes),
                None => length.clone(),
            },
        }
    }
}

fn no_argument() -> Value {
    Value::Missing(Missing::Operand("the site has fewer arguments".to_owned()))
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{Attr, Sample};
    use usdtrec_format::schema::{Argument, ArgumentType, Length};
    use usdtrec_format::{
        Arch, RawArgument, RawField, RawLayout, RawLength, RawString, ShownArgument, StringAt,
        Value,
    };

    use super::super::Decoder;

    fn shown(arguments: &[usize]) -> Vec<ShownArgument> {
        let shown = arguments.iter().map(|&argument| ShownArgument {
            argument,
            name: None,
        });
        shown.collect()
    }

    fn values(decoder: &Decoder, sample: &Sample<'_>) -> Vec<Value> {
        let mut values = decoder.values();
        decoder.decode(sample, &mut values);
        values
    }

    #[test]
    fn arguments_are_chosen_ordered_and_repeated() {
        let attr = Attr {
            sample_regs_user: 0b11,
            ..Attr::default()
        };
        let decoder = Decoder::new("8@%rax -4@%ebx -4@$7 8@%rcx", Some(Arch::X86_64), &attr);
        let registers: Vec<u8> = [5_u64, u64::MAX]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let sample = Sample {
            regs_abi: 2,
            regs: &registers,
            ..Sample::default()
        };
        let own = values(&decoder, &sample);
        assert_eq!(
            own[..3],
            [Value::Unsigned(5), Value::Signed(-1), Value::Signed(7)]
        );
        for list in [&[2, 0][..], &[], &[1, 1, 3, 0], &[0, 1, 2, 3]] {
            let chosen: Vec<_> = list.iter().map(|&at| own[at].clone()).collect();
            let decoder = decoder.clone().showing(&shown(list));
            assert_eq!(decoder.len(), list.len());
            assert_eq!(values(&decoder, &sample), chosen);
        }
        let beyond = values(&decoder.showing(&shown(&[4, 1])), &sample);
        let Value::Missing(reason) = &beyond[0] else {
            panic!("{beyond:?}");
        };
        assert_eq!(reason.to_string(), "the site has fewer arguments");
        assert_eq!(beyond[1], Value::Signed(-1));
    }

    /// A string keeps its length, also if the argument that says it is not shown.
    #[test]
    fn a_hidden_length_is_a_length() {
        let field = |offset, size, string| {
            RawArgument::Field(RawField {
                offset,
                size,
                signed: false,
                fault: None,
                string,
            })
        };
        let length = RawLength::Field {
            offset: 16,
            size: 4,
            signed: false,
            fault: None,
        };
        let string = RawString {
            location: 20,
            status: 24,
            known: true,
            length: Some(length),
        };
        let layout = RawLayout {
            id: 1,
            size: 28,
            missing: None,
            string_limit: 64,
            arguments: vec![field(8, 8, Some(string)), field(16, 4, None)],
            listed: false,
            thread_context: None,
            thread_waits: None,
        };
        let string = ArgumentType::String(Some(Length::Argument("len".to_owned())));
        let arguments = [
            Argument {
                kind: Some(string),
                ..Argument::named("text")
            },
            Argument::named("len"),
        ];
        let decoder = Decoder::from_raw("8@%rax 4@%ebx", Some(Arch::X86_64), &layout);
        let decoder = decoder.typed(&arguments);
        let mut raw = vec![0; 8];
        raw.extend(0x5000_u64.to_le_bytes());
        raw.extend(3_u32.to_le_bytes());
        raw.extend((28_u32 | 6 << 16).to_le_bytes());
        raw.extend(6_u32.to_le_bytes());
        raw.extend(b"abcde\0");
        let sample = Sample {
            raw: &raw,
            ..Sample::default()
        };
        let expected = Value::String(StringAt {
            address: 0x5000,
            bytes: b"abc".to_vec(),
            cut: false,
            guessed: false,
            from_file: false,
        });
        for list in [&[0, 1][..], &[1, 0], &[0]] {
            let place = list.iter().position(|&own| own == 0).unwrap();
            let decoder = decoder.clone().showing(&shown(list));
            assert_eq!(values(&decoder, &sample)[place], expected, "{list:?}");
        }
    }
}
