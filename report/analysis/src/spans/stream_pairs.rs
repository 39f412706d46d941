//! The pairs of a stream, to which events are added: the begin and the end of a span may be of files that come one after the other.

use foldhash::HashMap;

use crate::spans::key::SpanKey;
use crate::spans::pair::Pair;

/// Pairs that are new, or have other events than before.
#[derive(Debug)]
pub(crate) struct ChangedPairs {
    pub(crate) pairs: Vec<Pair>,
    /// The number of each.
    numbers: Vec<usize>,
}

impl ChangedPairs {
    /// Takes the pairs that all events of the stream make. Those that are known by their names keep their numbers.
    pub(crate) fn take(known: &mut Vec<Pair>, found: Vec<Pair>) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::default();
        for (number, pair) in known.iter().enumerate().rev() {
            places.entry(&pair.name).or_default().push(number);
        }
        // Several of one name come in the same order again.
        let places = found.iter().map(|pair| places.get_mut(&*pair.name)?.pop());
        let places: Vec<Option<usize>> = places.collect();
        let mut changed = Self {
            pairs: Vec::new(),
            numbers: Vec::new(),
        };
        for (pair, place) in found.into_iter().zip(places) {
            let number = place.unwrap_or(known.len());
            match known.get_mut(number) {
                Some(same) if *same == pair => continue,
                Some(former) => *former = pair.clone(),
                None => known.push(pair.clone()),
            }
            changed.numbers.push(number);
            changed.pairs.push(pair);
        }
        changed
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Puts their keys among those of all pairs.
    pub(crate) fn put_keys(&self, keys: Vec<SpanKey>, all: &mut Vec<SpanKey>) {
        for (&number, mut key) in self.numbers.iter().zip(keys) {
            match all.get_mut(number) {
                Some(former) => {
                    key.continue_from(former);
                    *former = key;
                }
                None => all.push(key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, starts: &[usize], dones: &[usize]) -> Pair {
        Pair {
            name: name.to_owned(),
            starts: starts.to_vec(),
            dones: dones.to_vec(),
            key: None,
        }
    }

    #[test]
    fn known_pairs_keep_their_numbers() {
        let mut known = vec![pair("a", &[0], &[1]), pair("b", &[2], &[3])];
        // Pairs come in the order of their begins.
        let found = vec![
            pair("new", &[1], &[6]),
            pair("b", &[2, 4], &[3]),
            pair("a", &[0], &[1]),
        ];
        let changed = ChangedPairs::take(&mut known, found);
        assert_eq!((changed.pairs.len(), &*changed.numbers), (2, &[2, 1][..]));
        let names: Vec<&str> = known.iter().map(|pair| &*pair.name).collect();
        assert_eq!(names, ["a", "b", "new"]);
        assert_eq!(known[1].starts, [2, 4]);
        let again = known.clone();
        assert!(ChangedPairs::take(&mut known, again).is_empty());
    }
}
