//! Help that names the fields about the process of a hit, which are those of the table of fields.

use usdtrec_report::script::{process_field_help, process_field_names};

/// A help text: their names are in place of `{process}`, with what they are in place of `{of process}`.
pub(super) fn with_process_fields(help: &str) -> String {
    let names = process_field_names().join(", ");
    let described = process_field_help().join(", ");
    help.replace("{process}", &names)
        .replace("{of process}", &described)
}
