//! The arguments that the begin and the end of a span must have in common.

use foldhash::HashMap;
use foldhash::quality::RandomState;
use usdtrec_format::perf::Sample;
use usdtrec_format::spans::{Marks, mark};
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::stats::keys::key::KeyWords;

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
            let mark = value.map_or(0, |value| mark(value, numbers, &self.state));
            marks.set(at, mark);
        }
        marks
    }

    /// The words of the key of a thread's spans that end in any order; `None` if the id is missing.
    #[inline]
    pub(crate) fn crossing_words(&self, marks: Marks, tid: u64) -> Option<KeyWords> {
        let is_known = !self.has_id || !marks.lacks_first();
        is_known.then(|| KeyWords::new(marks.word(), tid))
    }
}
