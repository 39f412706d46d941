//! Why values are missing, and how often.

use usdtrec_format::Missing;

use crate::stats::frequency::{Frequency, sort_by_count, total};

/// Kinds of reasons that are counted one by one.
pub(crate) const REASONS: usize = 16;

/// Why values are missing, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons {
    /// Addresses and lengths are left out of the reasons.
    counts: Vec<Frequency<Missing>>,
    others: u64,
}

impl Reasons {
    /// Counts a value that is missing for no reason that has a name.
    pub(crate) const fn add_other(&mut self) {
        self.others += 1;
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        for missing in other.counts {
            self.add(&missing.value, missing.count);
        }
        self.others += other.others;
    }

    /// Counts values that are missing for a reason.
    pub(crate) fn add(&mut self, missing: &Missing, times: u64) {
        let same = |known: &Missing| match (known, missing) {
            (Missing::Register(a), Missing::Register(b)) => a == b,
            (Missing::Operand(a), Missing::Operand(b)) => a == b,
            _ => std::mem::discriminant(known) == std::mem::discriminant(missing),
        };
        if let Some(known) = self.counts.iter_mut().find(|known| same(&known.value)) {
            known.count += times;
        } else if self.counts.len() < REASONS {
            self.counts.push(Frequency::new(missing.clone(), times));
        } else {
            self.others += times;
        }
    }

    /// All together.
    pub(crate) fn count(&self) -> u64 {
        total(&self.counts) + self.others
    }

    /// The reasons in words, the most frequent first, with their counts.
    pub(crate) fn in_words(&self) -> Vec<Frequency<String>> {
        let counts = self.counts.iter();
        let words = counts.map(|known| Frequency::new(without_address(&known.value), known.count));
        let mut words: Vec<Frequency<String>> = words.collect();
        if self.others > 0 {
            words.push(Frequency::new("other reasons".to_owned(), self.others));
        }
        sort_by_count(&mut words);
        words
    }
}

/// The reason without what differs from sample to sample.
pub(crate) fn without_address(missing: &Missing) -> String {
    match missing {
        Missing::Memory(_) => "memory not captured".to_owned(),
        Missing::RedZone(_) => "red zone not captured".to_owned(),
        Missing::BeyondStack(..) => "stack beyond the bytes captured".to_owned(),
        Missing::Fault(_) => "fault".to_owned(),
        Missing::Pair(..) => "upper half not in the note".to_owned(),
        Missing::NotResident(_) => "not resident".to_owned(),
        Missing::Wide(bytes, _) => format!("value of {bytes} bytes"),
        other => other.to_string(),
    }
}
