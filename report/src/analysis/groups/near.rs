//! Groups of the latest samples, found without hashing their keys well.

use crate::stats::keys::key::Words;

/// Groups that are remembered.
const SLOTS: usize = 256;

/// Places of groups by their keys, one for each of a few slots.
#[derive(Debug)]
pub(crate) struct Near {
    slots: Vec<(Vec<Words>, usize)>,
}

impl Default for Near {
    fn default() -> Self {
        let slots = vec![(Vec::new(), 0); SLOTS];
        Self { slots }
    }
}

impl Near {
    /// The place of a group, if it is remembered.
    #[inline]
    pub(crate) fn find(&self, key: &[Words]) -> Option<usize> {
        let (known, place) = self.slots.get(slot(key))?;
        (known == key).then_some(*place)
    }

    /// Remembers the place of a group, whose key is not empty.
    pub(crate) fn note(&mut self, key: &[Words], place: usize) {
        if let Some(slot) = self.slots.get_mut(slot(key)) {
            slot.0.clear();
            slot.0.extend_from_slice(key);
            slot.1 = place;
        }
    }
}

/// Tells numbers that differ a little apart; others may meet.
#[inline]
fn slot(key: &[Words]) -> usize {
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = key.iter().fold(0_u64, |mixed, words| {
        (mixed ^ words.0 ^ words.1.rotate_left(8)).wrapping_mul(SPREAD)
    });
    (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_noted_is_found() {
        let mut near = Near::default();
        let keys: Vec<[Words; 2]> = (0..1000)
            .map(|word| [(1, word / 7), (0, word % 7)])
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
