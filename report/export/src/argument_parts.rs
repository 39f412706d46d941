//! Values of arguments as typed parts, for formats in which each part is a field of its own.

use usdtrec_format::Value;
use usdtrec_trace::form::Form;
use usdtrec_view::text::buffer::Text;

use crate::typed_value::{TypedValue, guessed_address, is_cut, string_bytes};

/// A part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ArgumentPart {
    /// The value itself.
    Value,
    /// Why there is no value.
    Missing,
    /// The number of what only looks like the address of a string.
    Number,
    /// The readable form of a mangled name.
    Demangled,
    /// Whether a string is longer than what was captured.
    Cut,
    /// The bytes of a string that is not UTF-8, in hexadecimal.
    Bytes,
}

/// Hands over the parts of a value, in a fixed order.
#[inline]
pub(crate) fn each_part<'v>(
    form: &Form,
    value: &'v Value,
    put: &mut dyn FnMut(ArgumentPart, TypedValue<'v>),
) {
    match TypedValue::new(form, value) {
        TypedValue::Missing(reason) => {
            put(ArgumentPart::Missing, TypedValue::String(reason.into()))
        }
        typed => put(ArgumentPart::Value, typed),
    }
    if !matches!(value, Value::String(_)) {
        return;
    }
    if let Some(address) = guessed_address(value) {
        put(ArgumentPart::Number, TypedValue::Unsigned(address));
    }
    if let Some(readable) = form.readable(value) {
        put(ArgumentPart::Demangled, TypedValue::String(readable.into()));
    }
    if is_cut(value) {
        put(ArgumentPart::Cut, TypedValue::Bool(true));
    }
    if let Some(bytes) = string_bytes(form, value) {
        put(ArgumentPart::Bytes, TypedValue::String(hex(bytes).into()));
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = Text::default();
    text.hex_bytes(bytes);
    text.into_string()
}
