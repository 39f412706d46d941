//! Hashes of the arguments that the begin and the end of a span must have in common.

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::quality::RandomState;
use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::stats::keys::key::KeyWords;

/// Hashes of arguments that begin and end of a span have in common. 0 means that a value is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Marks([u64; Self::APART]);

impl Marks {
    /// Number of arguments with a mark of their own; further ones share the last.
    pub(crate) const APART: usize = 4;

    /// The marks of this number of arguments without known values.
    pub(crate) fn unknown(arguments: usize) -> Self {
        Self(std::array::from_fn(|at| u64::from(at >= arguments)))
    }

    /// Whether the value of an argument is not known.
    pub(crate) fn is_partial(self) -> bool {
        self.0.contains(&0)
    }

    /// Whether the values that are known on both sides are the same.
    pub(crate) fn is_compatible(self, other: Self) -> bool {
        let both = self.0.iter().zip(other.0);
        both.into_iter()
            .all(|(&one, other)| one == other || one == 0 || other == 0)
    }

    /// The marks as words.
    pub(crate) const fn words(self) -> [u64; Self::APART] {
        self.0
    }

    /// The marks of these words.
    pub(crate) const fn from_words(words: [u64; Self::APART]) -> Self {
        Self(words)
    }

    /// Whether the value of the first argument is not known.
    pub(crate) const fn lacks_first(self) -> bool {
        let [first, ..] = self.0;
        first == 0
    }

    /// One word for all of them.
    pub(crate) const fn word(self) -> u64 {
        let [a, b, c, d] = self.0;
        a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47)
    }
}

/// The arguments that begin and end of a span have in common and that must agree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agreement {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// For each argument, whether numbers are compared, too, not only strings.
    pub(crate) numbers: Vec<bool>,
    /// For each event of the trace, the index of each argument; empty for events of other pairs.
    pub(crate) places: Vec<Vec<usize>>,
    /// Whether the first of them is an integer that behaves as an id.
    pub(crate) has_id: bool,
    pub(crate) state: RandomState,
}

impl Agreement {
    /// Whether no argument must agree: then marks are the same in all hits.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds the id of spans, given its place in each event of the pair. It is the first argument, so that it has a mark of its own.
    pub(crate) fn add_id(&mut self, name: &str, places: &HashMap<usize, usize>) {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            self.names.remove(known);
            self.numbers.remove(known);
            for places in self.places.iter_mut().filter(|all| !all.is_empty()) {
                places.remove(known);
            }
        }
        self.names.insert(0, name.to_owned());
        self.numbers.insert(0, true);
        for (event, place) in places {
            if let Some(of_event) = self.places.get_mut(*event) {
                of_event.insert(0, *place);
            }
        }
        self.has_id = true;
    }

    /// Leaves the id alone.
    pub(crate) fn keep_id(&mut self) {
        self.names.truncate(1);
        self.numbers.truncate(1);
        self.places.iter_mut().for_each(|places| places.truncate(1));
    }

    /// The marks of a hit.
    #[inline]
    pub(crate) fn marks(
        &self,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
    ) -> Marks {
        let Some(places) = self.places.get(target.event as usize) else {
            return Marks::default();
        };
        if places.is_empty() {
            return Marks::default();
        }
        let mut marks = Marks::unknown(places.len());
        let Some(site) = resolver.session().site_of(target, sample) else {
            return marks;
        };
        for (at, (&place, &numbers)) in places.iter().zip(&self.numbers).enumerate() {
            let value = resolver.value(site, place, sample);
            let mark = value.map_or(0, |value| self.mark(value, numbers));
            let slot = &mut marks.0[at.min(Marks::APART - 1)];
            *slot = if at < Marks::APART {
                mark
            } else {
                slot.rotate_left(7) ^ mark
            };
        }
        marks
    }

    /// The words of the key of a thread's spans that end in any order; `None` if the id is missing.
    #[inline]
    pub(crate) fn crossing_words(&self, marks: Marks, tid: u64) -> Option<KeyWords> {
        let is_known = !self.has_id || !marks.lacks_first();
        is_known.then(|| KeyWords::new(marks.word(), tid))
    }

    /// The mark of a value; 0 if it is not known, or does not count.
    pub(crate) fn mark(&self, value: &Value, numbers: bool) -> u64 {
        match value {
            Value::String(string) => self.state.hash_one(&*string.bytes) | 1,
            Value::Unsigned(number) if numbers => self.mark_of_number(*number),
            Value::Signed(number) if numbers => self.mark_of_number(number.cast_unsigned()),
            _ => 0,
        }
    }

    /// The mark of a number, of which the lowest 64 bits are given.
    #[inline]
    pub(crate) fn mark_of_number(&self, bits: u64) -> u64 {
        self.state.hash_one(bits) | 1
    }
}
