//! What events need of keys and numbers.

use super::measured_fields::Measured;

/// What events need of keys and numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::engine::bpf) struct EventNeeds<'a> {
    /// Size of the longest raw part with its strings, bytes, a multiple of 8; `None` if there are no events.
    pub(super) longest_raw: Option<usize>,
    /// The measured arguments of each event.
    pub(super) measured: Vec<&'a [Measured]>,
}
