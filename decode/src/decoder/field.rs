//! Values in a sample's raw part, described by the formats in `TRACING_DATA`: tracepoints, and the kprobes and uprobes
//! that stock perf records through tracefs, including SDT probes.

use usdtrec_format::perf::{FieldShape, TracepointField, TracepointFormat};
use usdtrec_format::{Missing, StringAt, Value};

use super::compile::Compiled;
use super::operation::Shape;

/// Maximum length of an array whose elements become arguments.
const MAX_ELEMENTS: u16 = 64;

/// The operation of an argument in the raw part.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldOperation {
    /// Index of the argument.
    pub(super) slot: usize,
    offset: usize,
    source: FieldSource,
}

#[derive(Clone, Copy, Debug)]
enum FieldSource {
    /// An integer at the offset.
    Bits(Shape),
    /// A NUL-terminated string in this many bytes at the offset.
    String(usize),
    /// A string at the location given by the word at the offset.
    LocatedString {
        /// Base of the offset in that word.
        base: usize,
        /// Whether it is of a kprobe or uprobe. The kernel writes no bytes there, without a NUL, if it could not read the string.
        of_probe: bool,
    },
}

/// An argument: name, type (`s32`, `str`) and operation.
#[derive(Debug)]
pub(super) struct FieldArgument {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) operation: Compiled<FieldOperation>,
}

/// The arguments of a tracepoint: its fields, except for the address of the hit. Every element of a
/// short array is an argument of its own.
pub(super) fn arguments(format: &TracepointFormat) -> Vec<FieldArgument> {
    let mut fields = format.fields.iter();
    let of_probe = fields.any(TracepointField::is_address_of_hit);
    let fields = format.fields.iter();
    let mut arguments: Vec<FieldArgument> = fields
        .filter(|field| !field.is_address_of_hit())
        .flat_map(|field| of_field(field, of_probe))
        .collect();
    for (slot, argument) in arguments.iter_mut().enumerate() {
        if let Compiled::PerSample(operation) = &mut argument.operation {
            operation.slot = slot;
        }
    }
    arguments
}

fn of_field(field: &TracepointField, of_probe: bool) -> Vec<FieldArgument> {
    let offset = usize::from(field.offset);
    let one = |name: String, kind: &str, offset: usize, source: FieldSource| FieldArgument {
        name,
        kind: kind.to_owned(),
        operation: Compiled::PerSample(FieldOperation {
            slot: 0,
            offset,
            source,
        }),
    };
    let name = field.name().to_owned();
    let bits = |bytes, signed| FieldSource::Bits(shape(bytes, signed));
    match field.shape() {
        FieldShape::Integer { bytes, signed } => {
            vec![one(
                name,
                &integer(bytes, signed),
                offset,
                bits(bytes, signed),
            )]
        }
        FieldShape::Integers {
            count,
            bytes,
            signed,
        } if count <= MAX_ELEMENTS => (0..usize::from(count))
            .map(|at| {
                let offset = offset + at * usize::from(bytes);
                let name = format!("{name}[{at}]");
                one(name, &integer(bytes, signed), offset, bits(bytes, signed))
            })
            .collect(),
        FieldShape::String => vec![one(
            name,
            "str",
            offset,
            FieldSource::String(field.size.into()),
        )],
        FieldShape::LocatedStrings { count, relative } if count <= MAX_ELEMENTS => (0
            ..usize::from(count))
            .map(|at| {
                let offset = offset + at * 4;
                let base = if relative { offset + 4 } else { 0 };
                let name = format!("{name}[{at}]");
                one(
                    name,
                    "str",
                    offset,
                    FieldSource::LocatedString { base, of_probe },
                )
            })
            .collect(),
        FieldShape::LocatedString { relative } => {
            let base = if relative { offset + 4 } else { 0 };
            vec![one(
                name,
                "str",
                offset,
                FieldSource::LocatedString { base, of_probe },
            )]
        }
        _ => {
            let reason = format!("field \"{}\" of {} bytes", field.declaration, field.size);
            vec![FieldArgument {
                name,
                kind: "?".to_owned(),
                operation: Compiled::Fixed(Value::Missing(Missing::Operand(reason))),
            }]
        }
    }
}

const fn shape(bytes: u8, signed: bool) -> Shape {
    if signed {
        Shape::Signed(bytes)
    } else {
        Shape::Unsigned(bytes)
    }
}

fn integer(bytes: u8, signed: bool) -> String {
    let letter = if signed { 's' } else { 'u' };
    format!("{letter}{}", u32::from(bytes) * 8)
}

impl FieldOperation {
    /// Decodes the argument into `value`, reusing the memory of a string.
    #[inline]
    pub(super) fn decode(&self, raw: &[u8], value: &mut Value) {
        let rest = raw.get(self.offset..).unwrap_or_default();
        let found = match self.source {
            FieldSource::Bits(shape) => bits(rest, shape).map(|bits| *value = shape.value(bits)),
            FieldSource::String(len) => rest.get(..len).map(|bytes| put_string(value, bytes)),
            FieldSource::LocatedString { base, of_probe } => {
                located(raw, rest, base).map(|bytes| match bytes {
                    [] if of_probe => *value = Value::Missing(Missing::Unreadable),
                    _ => put_string(value, bytes),
                })
            }
        };
        if found.is_none() {
            *value = Value::Missing(Missing::Truncated);
        }
    }
}

#[inline]
fn bits(rest: &[u8], shape: Shape) -> Option<u64> {
    let mut word = [0; 8];
    let len = usize::from(shape.bytes());
    word.get_mut(..len)?.copy_from_slice(rest.get(..len)?);
    Some(u64::from_le_bytes(word))
}

/// The bytes located by the word at the start of `rest`.
#[inline]
fn located<'a>(raw: &'a [u8], rest: &[u8], base: usize) -> Option<&'a [u8]> {
    let word = u32::from_le_bytes(*rest.first_chunk()?);
    let start = base + (word & 0xffff) as usize;
    raw.get(start..start + (word >> 16) as usize)
}

/// String up to its NUL.
#[inline]
fn put_string(value: &mut Value, bytes: &[u8]) {
    let len = bytes.iter().position(|&byte| byte == 0);
    let bytes = bytes.get(..len.unwrap_or(bytes.len())).unwrap_or_default();
    if let Value::String(string) = value {
        string.bytes.clear();
        string.bytes.extend_from_slice(bytes);
    } else {
        // The kernel does not record the address of the string.
        *value = Value::String(StringAt::of_bytes(bytes.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Decoder, TracepointDecoder};
    use super::*;
    use usdtrec_format::perf::Sample;

    fn format(fields: &[(&str, u16, u16, bool)]) -> TracepointFormat {
        TracepointFormat {
            fields: fields
                .iter()
                .map(|&(declaration, offset, size, signed)| TracepointField {
                    declaration: declaration.to_owned(),
                    offset,
                    size,
                    signed,
                })
                .collect(),
            ..TracepointFormat::default()
        }
    }

    fn decoded(format: &TracepointFormat, raw: &[u8]) -> Vec<(String, Value)> {
        let TracepointDecoder { arguments, decoder } = Decoder::from_tracepoint(format);
        let mut values = decoder.values();
        let sample = Sample {
            raw,
            ..Sample::default()
        };
        decoder.decode(&sample, &mut values);
        let names = arguments.into_iter().map(|argument| argument.name);
        names.zip(values).collect()
    }

    fn string(bytes: &[u8]) -> Value {
        Value::String(StringAt::of_bytes(bytes.to_vec()))
    }

    #[test]
    fn fields_become_arguments_by_size_and_sign() {
        let format = format(&[
            ("unsigned long __probe_ip", 8, 8, false),
            ("s16 arg1", 16, 2, true),
            ("u8 arg2", 18, 1, false),
            ("u64 arg3", 19, 8, false),
            ("s8 arg4[2]", 27, 2, true),
            ("u8 arg5[]", 29, 2, false),
            ("struct s odd", 31, 3, false),
        ]);
        let mut raw = vec![0; 16];
        raw.extend((-1_i16).to_le_bytes());
        raw.push(200);
        raw.extend(u64::MAX.to_le_bytes());
        raw.extend([0xfe, 5, 6, 7, 0, 0, 0]);
        let missing = Missing::Operand("field \"struct s odd\" of 3 bytes".to_owned());
        let expected = [
            ("arg1", Value::Signed(-1)),
            ("arg2", Value::Unsigned(200)),
            ("arg3", Value::Unsigned(u64::MAX)),
            ("arg4[0]", Value::Signed(-2)),
            ("arg4[1]", Value::Signed(5)),
            ("arg5[0]", Value::Unsigned(6)),
            ("arg5[1]", Value::Unsigned(7)),
            ("odd", Value::Missing(missing)),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(decoded(&format, &raw), expected);
        for (name, value) in decoded(&format, &raw[..15]) {
            if name != "odd" {
                assert_eq!(value, Value::Missing(Missing::Truncated), "{name}");
            }
        }
    }

    #[test]
    fn strings_are_found_where_the_word_says() {
        let format = format(&[
            ("__data_loc char[] far", 8, 4, true),
            ("__rel_loc char[] near", 12, 4, true),
            ("char comm[8]", 16, 8, false),
        ]);
        let mut raw = vec![0; 8];
        raw.extend((6_u32 << 16 | 24).to_le_bytes());
        raw.extend((4_u32 << 16 | 14).to_le_bytes());
        raw.extend(b"tick\0junk".first_chunk::<8>().unwrap());
        raw.extend(b"hello\0abc\0");
        let values: Vec<Value> = decoded(&format, &raw)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        assert_eq!(values, [string(b"hello"), string(b"abc"), string(b"tick")]);
        raw.truncate(33);
        let values = decoded(&format, &raw);
        assert_eq!(
            values[1].1,
            Value::Missing(Missing::Truncated),
            "reaches over the end"
        );
    }

    /// A string of a probe has its NUL, unless its memory could not be read; others may be of no bytes.
    #[test]
    fn strings_that_a_probe_could_not_read_are_missing() {
        let fields = [
            ("unsigned long __probe_ip", 8, 8, false),
            ("__data_loc char[] empty", 16, 4, true),
            ("__data_loc char[] fault", 20, 4, true),
        ];
        let mut raw = vec![0; 16];
        raw.extend((1_u32 << 16 | 24).to_le_bytes());
        raw.extend(25_u32.to_le_bytes());
        raw.push(0);
        let values = |format: &TracepointFormat| {
            let values = decoded(format, &raw).into_iter();
            values.map(|(_, value)| value).collect::<Vec<_>>()
        };
        let fault = Value::Missing(Missing::Unreadable);
        assert_eq!(values(&format(&fields)), [string(b""), fault]);
        assert_eq!(values(&format(&fields[1..])), [string(b""), string(b"")]);
    }
}
