//! Arguments that are in registers or in the copied stack, written once more as the fields of a tracepoint, so that stock perf
//! shows them. Our readers take them from the registers and the stack, where each that is missing has its reason.
//!
//! All arguments have fields of 8 bytes, whatever their operands are: sites of a probe differ in those, and in their constants, and
//! have one format all the same.

use usdtrec_decode::Decoder;
use usdtrec_format::perf::{Attr, SampleLayout, SampleType, TracepointFormat};
use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::{
    Location, Missing, Operand, RawArgument, RawField, RawLayout, Value, parse_operands,
};

use crate::plan::layout::padded;
use crate::select::PlannedProbe;

/// Most arguments that are written: beyond, a sample with the largest copy of the stack might not fit into a record.
const MOST: usize = 64;

/// Bytes of a record before the raw part: header, identifier, address, ids, time, CPU.
const HEAD: usize = 48;

/// Bytes of a field.
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
    /// Plans the fields. `None` for a probe of an unknown machine, and for more arguments than fit.
    pub(super) fn new(probe: &PlannedProbe, id: u16) -> Option<Self> {
        let arch = probe.arch?;
        let count = probe.arguments.len();
        if count > MOST {
            return None;
        }
        let attr = attr_of(probe);
        let sites = probe.sites.iter();
        let sites: Vec<(Vec<Operand>, Vec<Value>)> = sites
            .map(|site| {
                let decoder = Decoder::new(&site.args, Some(arch), &attr);
                let operands = parse_operands(&site.args, Some(arch));
                (operands, decoder.typed(&probe.arguments).values())
            })
            .collect();
        let never: Vec<_> = (0..count).map(|place| never_there(&sites, place)).collect();
        let has_missing = sites.iter().any(|(operands, _)| {
            let fields = never
                .iter()
                .enumerate()
                .filter(|(_, never)| never.is_none());
            let mut operands = fields.map(|(place, _)| operands.get(place));
            operands.any(|operand| operand.is_none_or(may_be_missing))
        });
        let mut end = RawLayout::FIELDS;
        let mut arguments = Vec::new();
        let mut known = probe.arguments.clone();
        for ((place, argument), never) in known.iter_mut().enumerate().zip(never) {
            let operands = sites.iter().filter_map(|(operands, _)| operands.get(place));
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
                // Beyond the last bit one that is missing speaks for all.
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
            // The fields have sizes and signs of their own.
            listed: true,
        };
        let format = TracepointFormat::of_layout(
            &probe.provider,
            &probe.name,
            &layout,
            ("", Some(arch)),
            &known,
        );
        Some(Self { layout, format })
    }

    /// The format, for stock perf.
    pub(super) fn format(&self) -> &TracepointFormat {
        &self.format
    }

    /// Makes the attr of the kernel's samples that of the samples with fields.
    pub(super) fn attr(&self, attr: &mut Attr) {
        attr.kind = TRACEPOINT;
        attr.config = self.layout.id.into();
        attr.sample_type = attr.sample_type | SampleType::RAW;
    }

    /// How the samples of each site are written; `attr` is that of the kernel's samples.
    pub(super) fn sites<'a>(
        &'a self,
        probe: &'a PlannedProbe,
        attr: &'a Attr,
    ) -> impl Iterator<Item = SiteFields> + 'a {
        probe.sites.iter().map(|site| {
            let decoder = Decoder::new(&site.args, probe.arch, attr).typed(&probe.arguments);
            SiteFields {
                values: decoder.values(),
                decoder,
                sample: SampleLayout::new(attr),
                layout: self.layout.clone(),
            }
        })
    }
}

/// An attr as far as it says what registers and stack there are.
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

/// Why no hit of any site has an argument.
fn never_there(sites: &[(Vec<Operand>, Vec<Value>)], place: usize) -> Option<String> {
    let mut reasons = sites.iter().map(|(_, values)| match values.get(place) {
        Some(Value::Missing(Missing::Truncated)) => None,
        Some(Value::Missing(missing)) => Some(missing.to_string()),
        _ => None,
    });
    let first = reasons.next()??;
    reasons
        .all(|reason| reason.as_ref() == Some(&first))
        .then_some(first)
}

/// How the samples of a site are written.
#[derive(Debug)]
pub(super) struct SiteFields {
    decoder: Decoder,
    values: Vec<Value>,
    sample: SampleLayout,
    layout: RawLayout,
}

impl SiteFields {
    /// Appends a sample of the kernel's with its fields. One that is shorter than its attr says is left out: `false`.
    pub(super) fn rewrite(&mut self, record: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let done = self.try_rewrite(record, out).is_some();
        if !done {
            out.truncate(start);
        }
        done
    }

    fn try_rewrite(&mut self, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (head, rest) = record.split_at_checked(HEAD)?;
        let sample = self.sample.parse(record.get(8..)?)?;
        self.decoder.decode(&sample, &mut self.values);
        let len = self.layout.size;
        let size = record.len() + 4 + usize::from(len);
        let size = u16::try_from(size).ok()?;
        out.extend_from_slice(head.get(..6)?);
        out.extend_from_slice(&size.to_ne_bytes());
        out.extend_from_slice(head.get(8..)?);
        out.extend_from_slice(&u32::from(len).to_ne_bytes());
        let start = out.len();
        out.resize(start + usize::from(len), 0);
        let raw = out.get_mut(start..)?;
        put(raw, 0, self.layout.id.to_ne_bytes())?;
        put(raw, 4, sample.tid.to_ne_bytes())?;
        let mut missing = 0_u32;
        for (argument, value) in self.layout.arguments.iter().zip(&self.values) {
            let RawArgument::Field(field) = argument else {
                continue;
            };
            match word(value, field.signed) {
                Some(bits) => put(raw, field.offset, bits.to_ne_bytes())?,
                None => missing |= 1 << field.fault.unwrap_or(0),
            }
        }
        if let Some(offset) = self.layout.missing {
            put(raw, offset, missing.to_ne_bytes())?;
        }
        out.extend_from_slice(rest);
        Some(())
    }
}

/// Puts the fields into the order of the registers that the first site has them in: behind them in the record stand the registers,
/// so that what compresses records finds one long match and not one for each argument.
fn in_order_of_registers(
    arguments: &mut [RawArgument],
    probe: &PlannedProbe,
    sites: &[(Vec<Operand>, Vec<Value>)],
) {
    let operands = sites.first().map_or(&[][..], |(operands, _)| operands);
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

/// Writes bytes into the raw part.
#[inline]
fn put<const N: usize>(raw: &mut [u8], offset: u16, bytes: [u8; N]) -> Option<()> {
    let at = usize::from(offset);
    raw.get_mut(at..at + N)?.copy_from_slice(&bytes);
    Some(())
}

/// The bits of a value in a field of 8 bytes; `None` if it has none, or they would be another number's there.
fn word(value: &Value, signed: bool) -> Option<u64> {
    match value {
        Value::Unsigned(number) => (!signed || i64::try_from(*number).is_ok()).then_some(*number),
        Value::Signed(number) => (signed || *number >= 0).then_some(number.cast_unsigned()),
        Value::Float32(number) => Some(number.to_bits().into()),
        Value::Float64(number) => Some(number.to_bits()),
        _ => None,
    }
}
