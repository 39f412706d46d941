//! How long the strings of a site are: whether its programs should try a short record first.
//!
//! The size of a reservation must be a constant. So a program first reserves 64 bytes for each string. If one is longer,
//! it discards the record and starts again with room for the limit (`program/sample_record.rs`). If an eighth of a
//! site's hits have a long string, the recorder sets a word, and the program reserves the whole room at once. No string
//! passes through memory of the CPU, which another hit could overwrite while the program is preempted.

/// Number of hits that are counted before the setting may change.
const WINDOW: u32 = 256;
/// If one in so many hits has a long string, whole records are reserved at once: a second try costs about a sixth of a hit.
const LONG: u32 = 8;
/// If fewer than one in so many hits has one, short records are tried again.
const SHORT: u32 = 16;

/// Lengths of the strings of a sample id.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine::bpf) struct StringLengths {
    hits: u32,
    /// Number of records with a string that is too long for a short record.
    long: u32,
    are_long: bool,
}

impl StringLengths {
    /// Counts a hit. Returns whether strings are mostly long, if that has changed.
    pub(in crate::engine::bpf) fn count(&mut self, is_long: bool) -> Option<bool> {
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
