//! Texts in debugging information, within limits.

use gimli::{AttributeValue, Dwarf, Reader, Section, Unit};

use super::sections::Bytes;

/// Longer names and paths are not read, bytes.
const MAX_STRING_BYTES: usize = 64 << 10;

/// The text of an attribute; `None` if it is too long or cannot be read.
pub(super) fn text(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    value: AttributeValue<Bytes>,
) -> Option<Bytes> {
    match value {
        AttributeValue::String(string) => (string.len() <= MAX_STRING_BYTES).then_some(string),
        AttributeValue::DebugStrRef(at) => string(dwarf.debug_str.reader(), at.0),
        AttributeValue::DebugStrRefSup(at) => string(dwarf.sup()?.debug_str.reader(), at.0),
        AttributeValue::DebugLineStrRef(at) => string(dwarf.debug_line_str.reader(), at.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let at = dwarf.string_offset(unit, index).ok()?;
            string(dwarf.debug_str.reader(), at.0)
        }
        _ => None,
    }
}

/// The text at an offset of a section. A search for its end beyond the limit would take time in proportion to the section.
fn string(section: &Bytes, at: usize) -> Option<Bytes> {
    let mut section = section.clone();
    section.skip(at).ok()?;
    let most = section.len().min(MAX_STRING_BYTES);
    section.truncate(most).ok()?;
    section.read_null_terminated_slice().ok()
}

/// A text as UTF-8; other bytes are replaced.
pub(super) fn utf8(text: &Bytes) -> Option<String> {
    Some(String::from_utf8_lossy(&text.to_slice().ok()?).into_owned())
}
