//! Help that names the fields of the table of fields.

use usdtrec_report::fields::{
    FIELDS, Field, FieldSpec, FieldValues, field_help, process_field_names,
};

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

/// A help text: in place of `{fields}` are all fields with what they are, in place of `{process}` the names of those about the process, in place of
/// `{of hit}` those of the others but the span, and in place of `{keys}` all keys.
pub(super) fn with_fields(help: &str) -> String {
    let is_of_hit = |spec: &&FieldSpec| {
        !matches!(spec.values, FieldValues::Process(_)) && spec.field != Field::Span
    };
    let of_hit = FIELDS.iter().filter(is_of_hit).map(|spec| spec.name);
    let of_hit: Vec<&str> = of_hit.collect();
    help.replace("{process}", &process_field_names().join(", "))
        .replace("{of hit}", &of_hit.join(", "))
        .replace("{fields}", &field_help().join(", "))
        .replace("{keys}", &group_keys().join(", "))
}
