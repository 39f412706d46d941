//! Names of probes in notes.

/// The name of a probe in notes: DTrace's hyphens are two underscores.
pub(super) fn note_name(name: &str) -> String {
    name.replace('-', "__")
}
