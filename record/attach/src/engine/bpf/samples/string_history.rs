//! What an argument that nothing declares points to, as the hits of its site show: whether empty strings are taken for strings.
//!
//! Notes do not say which arguments are strings. Without a schema, every unsigned argument of pointer size is tried as a string, and the hit alone
//! decides: what looks like a string is one, whatever its length, and is printed with its number. Only memory that begins with a zero
//! may be anything: it is an empty string if the argument has pointed to strings and hardly to anything else. Readers are told once that is
//! known, in a record that they read before samples, so all hits of a site are decoded alike.
//!
//! How long the strings of a site are: whether its programs should try a short record first.
//!
//! The size of a reservation must be a constant. So a program first reserves 64 bytes for each string. If one is longer,
//! it discards the record and starts again with room for the limit (`program/sample_record.rs`). If an eighth of a
//! site's hits have a long string, the recorder sets a word, and the program reserves the whole room at once. No string
//! passes through memory of the CPU, which another hit could overwrite while the program is preempted.

/// Minimum ratio of strings to other contents.
const RATIO: u32 = 16;
/// Number of changes after which empty strings stay nothing. A program could have one at every few hits, each of which is a record.
const MAX_CHANGES: u8 = 16;

/// What an argument has pointed to so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine::bpf) struct StringHistory {
    strings: u32,
    others: u32,
    /// Whether it was written for readers that empty ones are strings.
    is_told: bool,
    /// How often that has changed.
    changes: u8,
}

impl StringHistory {
    /// Notes that there is something else than a string. Returns the fact to be written for readers, if it has changed.
    pub(super) fn note_other(&mut self) -> Option<bool> {
        self.others = self.others.saturating_add(1);
        self.news()
    }

    /// Notes bytes that look like a string. An empty one says nothing.
    pub(super) fn note_string(&mut self, bytes: &[u8]) -> Option<bool> {
        self.strings = self.strings.saturating_add(u32::from(!bytes.is_empty()));
        self.news()
    }

    /// Takes over that another site of the probe has strings there, if this one has shown nothing else.
    pub(super) fn adopt(&mut self) -> Option<bool> {
        (self.others == 0 && !self.is_told).then(|| {
            self.is_told = true;
            true
        })
    }

    /// Whether it was written for readers that empty ones are strings.
    pub(super) const fn is_told(&self) -> bool {
        self.is_told
    }

    fn news(&mut self) -> Option<bool> {
        let looks_so = match self.others {
            0 => self.strings > 0 || self.is_told,
            others => self.strings >= others.saturating_mul(RATIO),
        };
        let is_string = looks_so && self.changes < MAX_CHANGES;
        let has_changed = is_string != self.is_told;
        self.is_told = is_string;
        self.changes = self.changes.saturating_add(has_changed.into());
        has_changed.then_some(is_string)
    }
}

/// Number of hits that are counted before the setting may change.
const WINDOW: u32 = 256;
/// If one in so many hits has a long string, whole records are reserved at once: a second try costs about a sixth of a hit.
const LONG: u32 = 8;
/// If fewer than one in so many hits has one, short records are tried again.
const SHORT: u32 = 16;

/// Lengths of the strings of a sample id.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StringLengths {
    hits: u32,
    /// Number of records with a string that is too long for a short record.
    long: u32,
    are_long: bool,
}

impl StringLengths {
    /// Counts a hit. Returns whether strings are mostly long, if that has changed.
    pub(super) fn count(&mut self, is_long: bool) -> Option<bool> {
        self.hits += 1;
        self.long += u32::from(is_long);
        if self.hits < WINDOW {
            return None;
        }
        let share = if self.are_long { SHORT } else { LONG };
        let are_long = self.long * share >= self.hits;
        let has_changed = are_long != self.are_long;
        *self = Self {
            are_long,
            ..Self::default()
        };
        has_changed.then_some(are_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_program_cannot_change_what_is_told_for_ever() {
        let mut history = StringHistory::default();
        let mut told = Vec::new();
        for _ in 0..100 {
            told.extend(history.note_other());
            told.extend((0..RATIO).filter_map(|_| history.note_string(b"GET")));
        }
        assert_eq!(told.len(), usize::from(MAX_CHANGES));
        assert_eq!(told.last(), Some(&false));
    }

    #[test]
    fn sites_of_a_probe_take_over_what_others_have_shown() {
        let mut history = StringHistory::default();
        assert_eq!(history.adopt(), Some(true));
        assert_eq!(history.adopt(), None);
        assert_eq!(history.note_other(), Some(false));
        assert_eq!(history.adopt(), None);
    }

    /// The answers to hits of which one in `each` is long.
    fn answers(lengths: &mut StringLengths, each: u32) -> Vec<bool> {
        let hits = 0..4 * WINDOW;
        hits.filter_map(|hit| lengths.count(hit % each == 0))
            .collect()
    }

    #[test]
    fn only_a_change_is_returned() {
        let mut lengths = StringLengths::default();
        assert_eq!(answers(&mut lengths, 100), [false; 0]);
        assert_eq!(answers(&mut lengths, 10), [false; 0]);
        assert_eq!(answers(&mut lengths, 4), [true]);
        assert_eq!(
            answers(&mut lengths, 10),
            [false; 0],
            "between the two shares"
        );
        assert_eq!(answers(&mut lengths, 100), [false]);
    }
}
