//! Names of probes in notes, and counts in messages.

/// `1 byte`, `2 bytes`.
pub(super) fn counted(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// The name of a probe in notes: DTrace's hyphens are two underscores.
pub(super) fn note_name(name: &str) -> String {
    name.replace('-', "__")
}
