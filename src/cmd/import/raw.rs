//! The arguments of imported events in the layout of the bpf engine.

use usdtrec_format::raw::{RawArgument, RawField, RawLayout, RawString, StringStatus, escape_into};

use super::event::{ImportedEvent, ImportedValue};
use super::shapes::{Shape, ShapeKind};

/// Maximum length of a string, bytes; its status is an `i16`.
const STRING_LIMIT: u16 = 4096;
/// Maximum length of all strings of an event, escaped, so that a sample fits into a record.
const STRINGS: usize = 48 << 10;
/// The address of a string, which the input does not say. Null would be a string that is missing.
const ADDRESS: u64 = 1;

/// The layout of a shape's arguments: 8 bytes for each, and 8 for the place and the length of a string.
pub(super) fn layout(shape: &Shape, id: u16) -> RawLayout {
    let mut end = RawLayout::FIELDS;
    let mut take = |bytes: u16| {
        let start = end;
        end += bytes;
        start
    };
    let fields: Vec<RawArgument> = shape
        .arguments
        .iter()
        .map(|argument| {
            let is_string = argument.kind == ShapeKind::String;
            RawArgument::Field(RawField {
                offset: take(8),
                size: 8,
                signed: matches!(argument.kind, ShapeKind::Integer { signed: true, .. }),
                fault: None,
                string: is_string.then(|| RawString {
                    location: take(4),
                    status: take(4),
                    known: true,
                    length: None,
                }),
            })
        })
        .collect();
    let has_strings = shape
        .arguments
        .iter()
        .any(|argument| argument.kind == ShapeKind::String);
    RawLayout {
        id,
        size: padded(end.into()) as u16,
        missing: None,
        string_limit: if has_strings { STRING_LIMIT } else { 0 },
        arguments: fields,
        listed: true,
        thread_context: None,
        thread_waits: None,
    }
}

/// Appends the raw part of a sample, with its size in front.
pub(super) fn put(event: &ImportedEvent<'_>, layout: &RawLayout, out: &mut Vec<u8>) {
    let start = out.len() + 4;
    out.extend([0; 4]);
    out.extend(layout.id.to_le_bytes());
    out.extend([0; 2]);
    out.extend(event.tid.to_le_bytes());
    out.resize(start + usize::from(layout.size), 0);
    let mut room = STRINGS;
    for (argument, raw) in event.arguments.iter().zip(&layout.arguments) {
        let RawArgument::Field(field) = raw else {
            continue;
        };
        let value = &argument.value;
        let word = if let Some(string) = field.string {
            put_string(value.text().as_bytes(), string, &mut room, start, out);
            ADDRESS
        } else {
            word(value)
        };
        set(out, start + usize::from(field.offset), &word.to_le_bytes());
    }
    let size = padded(out.len() - start);
    out.resize(start + size, 0);
    set(out, start - 4, &(size as u32).to_le_bytes());
}

/// The 8 bytes of a number.
fn word(value: &ImportedValue<'_>) -> u64 {
    match value {
        ImportedValue::Integer(number) => *number as u64,
        ImportedValue::Float(number) => number.to_bits(),
        ImportedValue::String(_) => 0,
    }
}

/// Appends a string, and sets its fields.
fn put_string(bytes: &[u8], string: RawString, room: &mut usize, start: usize, out: &mut Vec<u8>) {
    let mut kept = bytes.len().min(STRING_LIMIT.into());
    let at = out.len();
    loop {
        escape_into(&bytes[..kept], out);
        if out.len() - at <= *room {
            break;
        }
        out.truncate(at);
        kept /= 2;
    }
    *room -= out.len() - at;
    out.push(0);
    let status = if kept == bytes.len() {
        StringStatus::Whole
    } else {
        StringStatus::Cut
    };
    let location = (at - start) as u32 | ((out.len() - at) as u32) << 16;
    set(
        out,
        start + usize::from(string.location),
        &location.to_le_bytes(),
    );
    let word = status.word(kept as u16, STRING_LIMIT);
    set(out, start + usize::from(string.status), &word.to_le_bytes());
}

fn set(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// `len` rounded up so that it and the 4 bytes of its size in front are a multiple of 8.
const fn padded(len: usize) -> usize {
    (len + 4).next_multiple_of(8) - 4
}
