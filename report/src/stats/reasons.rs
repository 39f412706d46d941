//! Why values are missing, and how often.

use usdtrec_format::Missing;

/// Kinds of reasons that are counted one by one.
pub(crate) const REASONS: usize = 16;

/// Why values are missing, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons {
    /// Addresses and lengths are left out of the reasons.
    counts: Vec<(Missing, u64)>,
    others: u64,
}

impl Reasons {
    /// Counts a value that is missing for no reason that has a name.
    pub(crate) const fn add_other(&mut self) {
        self.others += 1;
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        for (missing, count) in other.counts {
            self.add(&missing, count);
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
        if let Some((_, count)) = self.counts.iter_mut().find(|(known, _)| same(known)) {
            *count += times;
        } else if self.counts.len() < REASONS {
            self.counts.push((missing.clone(), times));
        } else {
            self.others += times;
        }
    }

    /// All together.
    pub(crate) fn count(&self) -> u64 {
        let counts = self.counts.iter().map(|(_, count)| count);
        counts.sum::<u64>() + self.others
    }

    /// The reasons in words, the most frequent first, with their counts.
    pub(crate) fn in_words(&self) -> Vec<(String, u64)> {
        let mut words: Vec<(String, u64)> = self
            .counts
            .iter()
            .map(|(missing, count)| (without_address(missing), *count))
            .collect();
        if self.others > 0 {
            words.push(("other reasons".to_owned(), self.others));
        }
        words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
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
