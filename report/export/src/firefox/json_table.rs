//! Values and tables in JSON.

use serde_json::Value as Json;
use usdtrec_format::escape::escape_json;
use usdtrec_view::text::buffer::Text;

/// A column of a table: its name, and the cell of a row.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Json);

/// Appends a value, harmless for a terminal.
pub(crate) fn put_json(value: &Json, out: &mut Text) {
    out.string(&escape_json(&value.to_string()));
}

/// Appends an array.
pub(crate) fn put_list(all: impl IntoIterator<Item = Json>, out: &mut Text) {
    out.byte(b'[');
    for (at, one) in all.into_iter().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        put_json(&one, out);
    }
    out.byte(b']');
}

/// Appends a comma and a member with a table.
pub(crate) fn put_table<T>(name: &str, rows: &[T], columns: &[Column<T>], out: &mut Text) {
    out.string(&format!(",\n\"{name}\":{{\"length\":{}", rows.len()));
    for (column, cell) in columns {
        out.string(&format!(",\"{column}\":"));
        put_list(rows.iter().map(cell), out);
    }
    out.byte(b'}');
}
