//! Groups of the latest samples, found without hashing their keys well.

use crate::stats::keys::key::KeyWords;

/// Groups that are kept.
const SLOTS: usize = 256;

/// Places of groups by their keys, one for each of a few slots.
#[derive(Debug)]
pub(crate) struct RecentGroups {
    slots: Vec<Slot>,
}

/// A group; without a key, no group is kept.
#[derive(Clone, Debug, Default)]
struct Slot {
    key: Vec<KeyWords>,
    place: usize,
}

impl Default for RecentGroups {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS],
        }
    }
}

impl RecentGroups {
    /// The place of a group, if it is kept.
    #[inline]
    pub(crate) fn find(&self, key: &[KeyWords]) -> Option<usize> {
        let known = self.slots.get(slot(key))?;
        (known.key == key).then_some(known.place)
    }

    /// Keeps the place of a group, whose key is not empty.
    pub(crate) fn note(&mut self, key: &[KeyWords], place: usize) {
        if let Some(slot) = self.slots.get_mut(slot(key)) {
            slot.key.clear();
            slot.key.extend_from_slice(key);
            slot.place = place;
        }
    }
}

/// Spreads numbers that differ little over different slots; others may share one.
#[inline]
fn slot(key: &[KeyWords]) -> usize {
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = key.iter().fold(0_u64, |mixed, words| {
        (mixed ^ words.kind ^ words.word.rotate_left(8)).wrapping_mul(SPREAD)
    });
    (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_noted_is_found() {
        let mut near = RecentGroups::default();
        let keys: Vec<[KeyWords; 2]> = (0..1000)
            .map(|word| [KeyWords::new(1, word / 7), KeyWords::new(0, word % 7)])
            .collect();
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(near.find(key), None);
            near.note(key, place);
            assert_eq!(near.find(key), Some(place));
            assert_eq!(near.find(&key[..1]), None);
        }
        let found = keys.iter().filter_map(|key| Some((near.find(key)?, key)));
        let found: Vec<_> = found.collect();
        assert!(found.len() > SLOTS / 2);
        assert!(found.iter().all(|(place, key)| keys[*place] == **key));
    }
}
