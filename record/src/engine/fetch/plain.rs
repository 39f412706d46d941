//! Arguments in registers or in the copied stack, additionally written as the fields of a tracepoint, so that stock perf prints them. Our
//! readers decode them from the registers and the stack, with the reason for each missing value.
//!
//! All fields have 8 bytes, independent of the operands, because sites of a probe with different operands and constants share one format.

use usdtrec_decode::{Decoder, RegisterWord};
use usdtrec_format::perf::{Attr, SampleLayout, SampleType, TracepointFormat};
use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::{Location, Missing, Operand, RawArgument, RawField, RawLayout, Value};

use crate::plan::layout::padded;
use crate::probe::PlannedProbe;

/// Maximum number of arguments: with more, a sample with the largest copy of the stack might not fit into a record.
const MOST: usize = 64;

/// Length of a record before the raw part, bytes: header, identifier, address, ids, time, CPU.
const HEAD: usize = 48;

/// Size of a field, bytes.
const WORD: u16 = 8;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// The fields of a probe's samples.
#[derive(Debug)]
pub(super) struct Fields {
    layout: RawLayout,
    format: TracepointFormat,
}

impl Fields {
    /// Plans the fields. `None` for a probe of an unknown architecture, and if there are too many arguments.
    pub(super) fn new(probe: &PlannedProbe, id: u16) -> Option<Self> {
        let arch = probe.arch?;
        let count = probe.arguments.len();
        if count > MOST {
            return None;
        }
        let attr = attr_of(probe);
        let sites = probe.sites.iter();
        let sites: Vec<SiteValues<'_>> = sites
            .map(|site| {
                let decoder = Decoder::of_operands(&site.operands, Some(arch), &attr);
                SiteValues {
                    operands: &site.operands,
                    values: decoder.typed(&probe.arguments).values(),
                }
            })
            .collect();
        let never: Vec<_> = (0..count).map(|place| never_there(&sites, place)).collect();
        let fields = never.iter().enumerate();
        let mut fields = fields.filter(|(_, never)| never.is_none());
        let has_missing = fields.any(|(place, _)| {
            let operands = || sites.iter().map(|site| site.operands.get(place));
            operands().any(|operand| operand.is_none_or(may_be_missing))
                || signs_clash(operands().flatten(), probe.arguments.get(place))
        });
        let mut end = RawLayout::FIELDS;
        let mut arguments = Vec::new();
        let mut known = probe.arguments.clone();
        for ((place, argument), never) in known.iter_mut().enumerate().zip(never) {
            let operands = sites.iter().filter_map(|site| site.operands.get(place));
            if operands.clone().any(|operand| operand.float) {
                argument.kind = Some(ArgumentType::Float64);
            }
            if let Some(reason) = never {
                arguments.push(RawArgument::NotCaptured { reason });
                continue;
            }
            arguments.push(RawArgument::Field(RawField {
                offset: end,
                size: WORD as u8,
                signed: operands
                    .into_iter()
                    .any(|operand| is_signed(operand, argument)),
                // All arguments from the last bit on share it.
                fault: has_missing.then_some(place.min(31) as u8),
                string: None,
            }));
            end += WORD;
        }
        let missing = has_missing.then_some(end);
        in_order_of_registers(&mut arguments, probe, &sites);
        let layout = RawLayout {
            id,
            size: padded(end + if has_missing { 4 } else { 0 }),
            missing,
            string_limit: 0,
            arguments,
            // The fields have their own sizes and signs.
            listed: true,
        };
        let format = TracepointFormat::of_layout(
            &probe.provider,
            &probe.name,
            &layout,
            "",
            Some(arch),
            &known,
            None,
        );
        Some(Self { layout, format })
    }

    /// The format, for stock perf.
    pub(super) fn format(&self) -> &TracepointFormat {
        &self.format
    }

    /// Changes the attr of the kernel's samples to that of samples with fields.
    pub(super) fn attr(&self, attr: &mut Attr) {
        attr.kind = TRACEPOINT;
        attr.config = self.layout.id.into();
        attr.sample_type = attr.sample_type | SampleType::RAW;
    }

    /// How the samples of each site are rewritten. `attr` is that of the kernel's samples.
    pub(super) fn sites<'a>(
        &'a self,
        probe: &'a PlannedProbe,
        attr: &'a Attr,
    ) -> impl Iterator<Item = SiteFields> + 'a {
        let sites = probe.sites.iter();
        sites.map(|site| {
            let decoder =
                Decoder::of_operands(&site.operands, probe.arch, attr).typed(&probe.arguments);
            SiteFields::new(decoder, attr, &self.layout)
        })
    }
}

/// The part of an attr that determines the captured registers and stack.
fn attr_of(probe: &PlannedProbe) -> Attr {
    Attr {
        sample_regs_user: probe.plan.registers,
        sample_stack_user: probe.plan.stack,
        ..Attr::default()
    }
}

/// Whether an operand may have no value at a hit.
fn may_be_missing(operand: &Operand) -> bool {
    !matches!(
        operand.location,
        Location::Constant(_)
            | Location::ConstantExpression(_)
            | Location::Register { pair: false, .. }
    )
}

/// Whether an argument's value is signed.
fn is_signed(operand: &Operand, argument: &Argument) -> bool {
    match &argument.kind {
        Some(ArgumentType::Integer { signed, .. }) => *signed,
        Some(kind) if kind.is_address() => false,
        _ => operand.is_signed() && !operand.float,
    }
}

/// Whether a value of a site may be outside the range of a field that has the sign of another site.
fn signs_clash<'o>(
    operands: impl Iterator<Item = &'o Operand> + Clone,
    argument: Option<&Argument>,
) -> bool {
    let is_signed = |operand| argument.is_some_and(|argument| is_signed(operand, argument));
    let is_wide = |operand: &Operand| operand.size.is_none_or(|size| size >= 8) && !operand.float;
    operands.clone().any(is_signed)
        && operands
            .clone()
            .any(|operand| is_wide(operand) && !is_signed(operand))
}

/// A site, and the values that are known before a hit.
struct SiteValues<'a> {
    operands: &'a [Operand],
    /// For each operand its value, or why it is missing.
    values: Vec<Value>,
}

/// The reason if an argument is missing at all hits of all sites.
fn never_there(sites: &[SiteValues<'_>], place: usize) -> Option<String> {
    let mut reasons = sites.iter().map(|site| match site.values.get(place) {
        Some(Value::Missing(Missing::Truncated)) => None,
        Some(Value::Missing(missing)) => Some(missing.to_string()),
        _ => None,
    });
    let first = reasons.next()??;
    reasons
        .all(|reason| reason.as_ref() == Some(&first))
        .then_some(first)
}

/// How the samples of a site are rewritten.
#[derive(Debug)]
pub(super) struct SiteFields {
    decoder: Decoder,
    values: Vec<Value>,
    sample: SampleLayout,
    layout: RawLayout,
    /// The raw part of a sample without values, preceded by its size: the parts that are equal in all samples.
    raw: Vec<u8>,
    /// The fast path for samples with registers only.
    quick: Option<Quick>,
}

/// Length of the size before the raw part, bytes.
const RAW_HEAD: usize = 4;

/// Copies registers to fields without decoding values.
#[derive(Debug)]
struct Quick {
    /// Length of a whole sample, bytes.
    len: usize,
    words: Vec<QuickWord>,
}

/// A register, and the field that it is copied to.
#[derive(Debug)]
struct QuickWord {
    word: RegisterWord,
    /// Offset of the register in the record, and of the field in the new one, bytes.
    from: usize,
    to: usize,
    /// The bit of the argument in the word of missing values, set if the value does not fit the field because of its sign.
    clash: u32,
}

impl Quick {
    /// Offset of the registers' ABI and of the registers in a record.
    const ABI: usize = HEAD;
    const REGISTERS: usize = HEAD + 8;
    /// `PERF_SAMPLE_REGS_ABI_64`.
    const ABI_64: u64 = 2;

    /// `None` if samples have more than registers.
    fn new(decoder: &Decoder, layout: &RawLayout, attr: &Attr) -> Option<Self> {
        if attr.sample_regs_user == 0 || attr.sample_type.has(SampleType::STACK_USER) {
            return None;
        }
        let words = decoder.register_words()?.into_iter().map(|word| {
            let Some(RawArgument::Field(field)) = layout.arguments.get(word.argument) else {
                return None;
            };
            // A field without a fault bit can hold every value of its operands.
            let clashes = field.signed != word.signed && !word.float;
            let clash = field.fault.filter(|_| clashes);
            Some(QuickWord {
                word,
                from: Self::REGISTERS + 8 * word.register,
                to: HEAD + RAW_HEAD + usize::from(field.offset),
                clash: clash.map_or(0, |bit| 1 << bit),
            })
        });
        Some(Self {
            len: Self::REGISTERS + 8 * attr.sample_regs_user.count_ones() as usize,
            words: words.collect::<Option<_>>()?,
        })
    }
}

impl SiteFields {
    fn new(decoder: Decoder, attr: &Attr, layout: &RawLayout) -> Self {
        let quick = Quick::new(&decoder, layout, attr);
        let mut same = decoder.values();
        for quick in quick.iter().flat_map(|quick| &quick.words) {
            if let Some(value) = same.get_mut(quick.word.argument) {
                // A field that every sample writes is never missing.
                *value = Value::Unsigned(0);
            }
        }
        let mut raw = vec![0; layout.size.into()];
        // A layout has space for its own fields.
        let _ = put(&mut raw, 0, layout.id.to_ne_bytes());
        let _ = put_values(layout, &same, &mut raw);
        raw.splice(..0, u32::from(layout.size).to_ne_bytes());
        Self {
            quick,
            values: decoder.values(),
            decoder,
            sample: SampleLayout::new(attr),
            layout: layout.clone(),
            raw,
        }
    }

    /// Appends a sample of the kernel with its fields. Returns `false`, and appends nothing, if it is shorter than its attr requires.
    pub(super) fn rewrite(&mut self, record: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let done = self.quickly(record, out).is_some() || {
            out.truncate(start);
            self.by_values(record, out).is_some()
        };
        if !done {
            out.truncate(start);
        }
        done
    }

    /// Copies registers. `None` for a sample without the layout of [`Quick`], for example of a thread without registers.
    #[inline]
    fn quickly(&self, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let quick = self.quick.as_ref()?;
        let abi = record.get(Quick::ABI..)?.first_chunk()?;
        if record.len() != quick.len || u64::from_ne_bytes(*abi) != Quick::ABI_64 {
            return None;
        }
        let new = self.put_frame(record, out)?;
        let mut missing = 0;
        for quick in &quick.words {
            let register = record.get(quick.from..)?.first_chunk()?;
            let bits = quick.word.bits(u64::from_ne_bytes(*register));
            if bits.cast_signed() < 0 && quick.clash != 0 {
                missing |= quick.clash;
                continue;
            }
            *new.get_mut(quick.to..)?.first_chunk_mut()? = bits.to_ne_bytes();
        }
        if let (Some(offset), true) = (self.layout.missing, missing != 0) {
            let at = HEAD + RAW_HEAD + usize::from(offset);
            let word = new.get_mut(at..)?.first_chunk_mut()?;
            *word = (u32::from_ne_bytes(*word) | missing).to_ne_bytes();
        }
        Some(())
    }

    /// Appends a sample with the fields that are equal in all samples.
    #[inline]
    fn put_frame<'o>(&self, record: &[u8], out: &'o mut Vec<u8>) -> Option<&'o mut [u8]> {
        let (head, rest) = record.split_at_checked(HEAD)?;
        let size = u16::try_from(record.len() + self.raw.len()).ok()?;
        // The thread, which follows the identifier, the address and the process.
        let tid: [u8; 4] = *head.get(28..)?.first_chunk()?;
        let start = out.len();
        out.extend_from_slice(head);
        out.extend_from_slice(&self.raw);
        out.extend_from_slice(rest);
        let new = out.get_mut(start..)?;
        put(new, 6, size.to_ne_bytes())?;
        put(new, (HEAD + RAW_HEAD + 4) as u16, tid)?;
        Some(new)
    }

    /// Decodes the values.
    fn by_values(&mut self, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let sample = self.sample.parse(record.get(8..)?)?;
        self.decoder.decode(&sample, &mut self.values);
        let new = self.put_frame(record, out)?;
        let raw = new.get_mut(HEAD + RAW_HEAD..)?;
        put_values(&self.layout, &self.values, raw)
    }
}

/// Writes values to the fields of a raw part, and the bits of missing values.
fn put_values(layout: &RawLayout, values: &[Value], raw: &mut [u8]) -> Option<()> {
    let mut missing = 0_u32;
    for (argument, value) in layout.arguments.iter().zip(values) {
        let RawArgument::Field(field) = argument else {
            continue;
        };
        match word(value, field.signed) {
            Some(bits) => put(raw, field.offset, bits.to_ne_bytes())?,
            None => missing |= 1 << field.fault.unwrap_or(0),
        }
    }
    if let Some(offset) = layout.missing {
        put(raw, offset, missing.to_ne_bytes())?;
    }
    Some(())
}

/// Sorts the fields by the registers of the first site. The registers follow the fields in the record, so that compression finds one long
/// match instead of one per argument.
fn in_order_of_registers(
    arguments: &mut [RawArgument],
    probe: &PlannedProbe,
    sites: &[SiteValues<'_>],
) {
    let operands = sites.first().map_or(&[][..], |site| site.operands);
    let number = |operand: Option<&Operand>| match operand?.location {
        Location::Register { register, .. } => probe.arch?.perf_register(register),
        _ => None,
    };
    let mut fields: Vec<(u8, &mut RawField)> = arguments
        .iter_mut()
        .enumerate()
        .filter_map(|(place, argument)| match argument {
            RawArgument::Field(field) => {
                Some((number(operands.get(place)).unwrap_or(u8::MAX), field))
            }
            _ => None,
        })
        .collect();
    fields.sort_by_key(|(number, _)| *number);
    for (offset, (_, field)) in (RawLayout::FIELDS..).step_by(WORD.into()).zip(fields) {
        field.offset = offset;
    }
}

/// Writes bytes to the raw part.
#[inline]
fn put<const N: usize>(raw: &mut [u8], offset: u16, bytes: [u8; N]) -> Option<()> {
    let at = usize::from(offset);
    raw.get_mut(at..at + N)?.copy_from_slice(&bytes);
    Some(())
}

/// The bits of a value in a field of 8 bytes; `None` without a value, or if the bits would mean another number there.
fn word(value: &Value, signed: bool) -> Option<u64> {
    match value {
        Value::Unsigned(number) => (!signed || i64::try_from(*number).is_ok()).then_some(*number),
        Value::Signed(number) => (signed || *number >= 0).then_some(number.cast_unsigned()),
        Value::Float32(number) => Some(number.to_bits().into()),
        Value::Float64(number) => Some(number.to_bits()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::Arch;

    use super::*;

    /// A sample as the kernel writes it: the head, followed by these words.
    fn sample(words: &[u64]) -> Vec<u8> {
        let size = (HEAD + 8 * words.len()) as u16;
        let mut record = vec![9, 0, 0, 0, 2, 0];
        record.extend(size.to_ne_bytes());
        let head = [77, 0x40_1000, 4321 << 32 | 1234, 5_000_000, 1];
        let words = head.iter().chain(words);
        record.extend(words.flat_map(|word| word.to_ne_bytes()));
        record
    }

    /// Fields with these signs, followed by the word of missing values.
    fn layout(signs: &[bool]) -> RawLayout {
        let fields = signs.iter().enumerate();
        let arguments = fields.map(|(place, signed)| {
            RawArgument::Field(RawField {
                offset: RawLayout::FIELDS + WORD * place as u16,
                size: WORD as u8,
                signed: *signed,
                fault: Some(place as u8),
                string: None,
            })
        });
        let end = RawLayout::FIELDS + WORD * signs.len() as u16;
        RawLayout {
            id: 10_001,
            size: padded(end + 4),
            missing: Some(end),
            string_limit: 0,
            arguments: arguments.collect(),
            listed: true,
        }
    }

    fn attr(registers: u64, stack: u32) -> Attr {
        let common = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::REGS_USER;
        let with_stack = SampleType(if stack > 0 {
            SampleType::STACK_USER.0
        } else {
            0
        });
        Attr {
            sample_type: common | with_stack,
            sample_regs_user: registers,
            sample_stack_user: stack,
            ..Attr::default()
        }
    }

    fn fields(args: &str, attr: &Attr, signs: &[bool]) -> SiteFields {
        let decoder = Decoder::new(args, Some(Arch::X86_64), attr);
        SiteFields::new(decoder, attr, &layout(signs))
    }

    /// The registers rax, rbx, rcx, rdx; the fields, and the missing ones.
    const REGISTERS: u64 = 0b1111;

    /// Everything but the raw part is byte for byte the kernel's, at the offsets of a sample with a raw part.
    #[test]
    fn the_rest_of_a_sample_stays_as_it_is() {
        let of_registers = attr(REGISTERS, 0);
        let of_stack = attr(REGISTERS | 1 << 7, 16);
        let stack_pointer = 0x7ffd_0000;
        for (attr, args, words) in [
            (&of_registers, "-4@%eax 8@%rbx", &[2, 1, 2, 3, 4][..]),
            (&of_registers, "-4@%eax 8@%rbx", &[0]),
            (&of_registers, "-4@%eax 8@%rbx", &[1, 1, 2, 3, 4]),
            (
                &of_stack,
                "-4@%eax 8@8(%rsp)",
                &[2, 1, 2, 3, 4, stack_pointer, 16, 70, 80, 16],
            ),
        ] {
            let record = sample(words);
            let mut fields = fields(args, attr, &[true, false]);
            let mut out = vec![0xee];
            assert!(fields.rewrite(&record, &mut out));
            let mut with_raw = attr.clone();
            with_raw.sample_type = attr.sample_type | SampleType::RAW;
            let parsed = SampleLayout::new(&with_raw).parse(&out[9..]).unwrap();
            let raw = parsed.raw.len() + RAW_HEAD;
            let size = u16::from_ne_bytes([out[7], out[8]]);
            assert_eq!(usize::from(size), record.len() + raw);
            let (head, rest) = record.split_at(HEAD);
            assert_eq!(out[1..7], head[..6]);
            assert_eq!(out[9..=HEAD], head[8..]);
            assert_eq!(out[1 + HEAD + raw..], *rest);
            assert_eq!(parsed.raw[..8], [0x11, 0x27, 0, 0, 0xe1, 0x10, 0, 0]);
        }
    }

    /// Copying registers writes the same bytes as decoding.
    #[test]
    fn copied_registers_are_the_decoded_values() {
        let attr = attr(REGISTERS, 0);
        for (args, signs) in [
            ("-1@%al 1@%ah -2@%bx 8@%rcx", [true, false, true, false]),
            // Signs other than those of the fields.
            ("-4@%eax 8@%rbx -8@%rcx 4@%edx", [false, true, false, true]),
            ("-4@$-7 8@%rbx 8f@%xmm0 4f@%ecx", [true, true, false, true]),
            ("8f@%rax 8@$9 -4@%r9d -8@%rdx", [true, true, true, false]),
        ] {
            let mut fields = fields(args, &attr, &signs);
            assert!(fields.quick.is_some(), "{args}");
            for seed in [0, 1, 0x8081_8283_8485_8687, u64::MAX, i64::MAX as u64] {
                let words = [2, seed, seed.rotate_left(8), !seed, seed.swap_bytes()];
                let record = sample(&words);
                let (mut copied, mut decoded) = (Vec::new(), Vec::new());
                fields.quickly(&record, &mut copied).unwrap();
                fields.by_values(&record, &mut decoded).unwrap();
                assert_eq!(copied, decoded, "{args} {seed:#x}");
            }
        }
    }

    #[test]
    fn a_cut_sample_is_left_out() {
        let attr = attr(REGISTERS, 0);
        let mut fields = fields("-4@%eax 8@%rbx", &attr, &[true, false]);
        let record = sample(&[2, 1, 2, 3, 4]);
        for len in 0..record.len() {
            let mut out = vec![1];
            assert!(!fields.rewrite(&record[..len], &mut out));
            assert_eq!(out, [1]);
        }
    }
}
