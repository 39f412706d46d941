//! Strings that are too many to be counted one by one: the most frequent ones are found by two more passes over the file, so that they
//! are the same whatever order they came in.

use usdtrec_trace::events::notices::Notices;

use crate::samples::SelectedSamples;
use crate::stats::sketch::{Chosen, Combine, Sketch, content_hash};
use crate::stats::string_counts::StringCounts;
use crate::string_walk::{DueArgument, DueString, walk_strings};

/// Arguments that are counted in one pass; each takes some megabytes.
const AT_ONCE: usize = 8;

/// An argument of an event, and which strings are its.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringsOfArgument {
    /// Index of the strings.
    pub(crate) strings: usize,
    /// Index of the argument in its event.
    pub(crate) argument: usize,
}

/// Counts strings of which there were too many once more. `places` has the arguments of each event that are counted.
pub(crate) fn recount(
    samples: SelectedSamples<'_>,
    strings: &mut [&mut StringCounts],
    places: &[Vec<StringsOfArgument>],
    notices: &mut Notices,
) {
    let overflown = strings.iter().enumerate();
    let overflown: Vec<usize> = overflown
        .filter(|(_, strings)| strings.others() > 0)
        .map(|(at, _)| at)
        .collect();
    for due in overflown.chunks(AT_ONCE) {
        let sketches: Vec<Sketch> = due.iter().map(|_| Sketch::new(Combine::Sum)).collect();
        let walk = Walk {
            samples,
            due,
            places,
        };
        walk.run(
            || (),
            |(), at, string| {
                if let Some(sketch) = sketches.get(at) {
                    sketch.add(content_hash(string), 1);
                }
            },
            notices,
        );
        let mut wanted = StringCounts::MAX_STRINGS * 3 / 4;
        let counted = loop {
            let chosen = sketches.iter().map(|sketch| sketch.choose(wanted));
            let chosen: Vec<Chosen> = chosen.collect();
            let states = walk.run(
                || vec![(StringCounts::default(), 0_u64); due.len()],
                |counts, at, string| {
                    if let (Some((strings, others)), Some(chosen)) =
                        (counts.get_mut(at), chosen.get(at))
                    {
                        if chosen.has(content_hash(string)) {
                            strings.add(string);
                        } else {
                            *others += 1;
                        }
                    }
                },
                notices,
            );
            let mut all = vec![(StringCounts::default(), 0_u64); due.len()];
            for state in states {
                for ((strings, others), (more, more_others)) in all.iter_mut().zip(state) {
                    strings.merge(more);
                    *others += more_others;
                }
            }
            if wanted <= 1 || all.iter().all(|(strings, _)| strings.others() == 0) {
                break all;
            }
            wanted /= 2;
        };
        for (&at, (counts, others)) in due.iter().zip(counted) {
            if let Some(strings) = strings.get_mut(at) {
                strings.replace(counts, others);
            }
        }
    }
}

/// A walk over the strings of some arguments.
struct Walk<'a> {
    samples: SelectedSamples<'a>,
    due: &'a [usize],
    places: &'a [Vec<StringsOfArgument>],
}

impl Walk<'_> {
    fn run<A: Send>(
        &self,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, usize, &[u8]) + Sync,
        notices: &mut Notices,
    ) -> Vec<A> {
        let due = |event: usize| {
            let arguments = self.places.get(event).into_iter().flatten();
            arguments.filter_map(|of| {
                let at = self.due.iter().position(|&due| due == of.strings)?;
                let argument = of.argument;
                Some(DueArgument { at, argument })
            })
        };
        let add = |state: &mut A, string: DueString<'_>| add(state, string.at, string.bytes);
        walk_strings(self.samples, due, make, add, notices)
    }
}
