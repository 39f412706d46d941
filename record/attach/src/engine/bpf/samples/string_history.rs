//! What an argument that nothing declares points to, as the hits of its site show: whether empty strings are believed.
//!
//! Notes do not say which arguments are strings. Without a schema, every unsigned argument of pointer size is tried as a string, and the hit alone
//! decides: what looks like a string is one, whatever its length, and is printed with its number. Only memory that begins with a zero
//! may be anything: it is an empty string if the argument has pointed to strings and hardly to anything else. Readers are told once that is
//! known, in a record that they read before samples, so all hits of a site are decoded alike.

/// Minimum ratio of strings to other contents.
const RATIO: u32 = 16;

/// What an argument has pointed to so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine::bpf) struct StringHistory {
    strings: u32,
    others: u32,
    /// Whether readers were told that empty ones are strings.
    is_told: bool,
}

impl StringHistory {
    /// Notes that there is something else than a string. Returns what readers have to be told, if that has changed.
    pub(in crate::engine::bpf) fn note_other(&mut self) -> Option<bool> {
        self.others = self.others.saturating_add(1);
        self.news()
    }

    /// Notes bytes that look like a string. An empty one says nothing.
    pub(in crate::engine::bpf) fn note_string(&mut self, bytes: &[u8]) -> Option<bool> {
        self.strings = self.strings.saturating_add(u32::from(!bytes.is_empty()));
        self.news()
    }

    /// Takes over that another site of the probe has strings there, if this one has shown nothing else.
    pub(in crate::engine::bpf) fn adopt(&mut self) -> Option<bool> {
        (self.others == 0 && !self.is_told).then(|| {
            self.is_told = true;
            true
        })
    }

    /// Whether readers were told that empty ones are strings.
    pub(in crate::engine::bpf) const fn is_told(&self) -> bool {
        self.is_told
    }

    fn news(&mut self) -> Option<bool> {
        let is_string = match self.others {
            0 => self.strings > 0 || self.is_told,
            others => self.strings >= others.saturating_mul(RATIO),
        };
        let has_changed = is_string != self.is_told;
        self.is_told = is_string;
        has_changed.then_some(is_string)
    }
}

#[cfg(test)]
mod tests {
    use super::StringHistory;

    #[test]
    fn readers_are_told_what_holds() {
        let mut history = StringHistory::default();
        assert_eq!(history.note_string(b""), None);
        assert_eq!(history.note_string(b"/"), Some(true));
        assert_eq!(history.note_string(b""), None);
        assert_eq!(history.note_other(), Some(false));
        for _ in 0..14 {
            assert_eq!(history.note_string(b"GET"), None);
        }
        assert_eq!(history.note_string(b"GET"), Some(true));
    }

    #[test]
    fn sites_of_a_probe_take_over_what_others_have_shown() {
        let mut history = StringHistory::default();
        assert_eq!(history.adopt(), Some(true));
        assert_eq!(history.adopt(), None);
        assert_eq!(history.note_other(), Some(false));
        assert_eq!(history.adopt(), None);
    }
}
