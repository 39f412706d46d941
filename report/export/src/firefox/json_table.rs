//! Columns of tables in JSON.

use usdtrec_view::text::buffer::Text;

/// Appends an array.
pub(crate) fn put_list<T>(all: &[T], out: &mut Text, put: impl Fn(&T, &mut Text)) {
    out.byte(b'[');
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        put(one, out);
    }
    out.byte(b']');
}

/// Appends a member with a column of numbers or `null`.
pub(crate) fn put_column<T>(
    name: &str,
    rows: &[T],
    out: &mut Text,
    number: impl Fn(&T) -> Option<u32>,
) {
    out.fixed(b",\"");
    out.string(name);
    out.fixed(b"\":");
    put_list(rows, out, |row, out| match number(row) {
        Some(number) => out.unsigned(number.into()),
        None => out.fixed(b"null"),
    });
}
