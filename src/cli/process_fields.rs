//! Help that names the fields about the process of a hit, which are those of the table of fields.

use usdtrec_report::script::{process_field_help, process_field_names};

/// Keys by which events are grouped, besides arguments and these fields: those that are named before these, and after.
const KEYS: [&[&str]; 2] = [
    &["event", "comm", "pid", "tid", "cpu"],
    &["dso", "sym", "srcline", "caller", "stack"],
];

/// The keys by which events of any trace are grouped.
pub(crate) fn group_keys() -> Vec<&'static str> {
    let [before, after] = KEYS;
    [before, &process_field_names(), after].concat()
}

/// A help text: their names are in place of `{process}`, with what they are in place of `{of process}`, and all keys in place of `{keys}`.
pub(super) fn with_process_fields(help: &str) -> String {
    let names = process_field_names().join(", ");
    let described = process_field_help().join(", ");
    help.replace("{process}", &names)
        .replace("{of process}", &described)
        .replace("{keys}", &group_keys().join(", "))
}
