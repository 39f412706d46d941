//! Texts that are too many to be counted one by one: the most frequent ones are found by two more passes over the file, so that they
//! are the same whatever order they came in.

use usdtrec_trace::events::notices::Notices;

use crate::samples::SelectedSamples;
use crate::stats::sketch::{Chosen, Combine, Sketch, content_hash};
use crate::stats::text_counts::TextCounts;
use crate::text_walk::{DueArgument, DueText, walk_texts};

/// Arguments that are counted in one pass; each takes some megabytes.
const AT_ONCE: usize = 8;

/// An argument of an event, and which texts are its.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextsOfArgument {
    /// Index of the texts.
    pub(crate) texts: usize,
    /// Index of the argument in its event.
    pub(crate) argument: usize,
}

/// Counts texts of which there were too many once more. `places` has the arguments of each event that are counted.
pub(crate) fn recount(
    samples: SelectedSamples<'_>,
    texts: &mut [&mut TextCounts],
    places: &[Vec<TextsOfArgument>],
    notices: &mut Notices,
) {
    let overflown = texts.iter().enumerate();
    let overflown: Vec<usize> = overflown
        .filter(|(_, texts)| texts.others() > 0)
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
            |(), at, text| {
                if let Some(sketch) = sketches.get(at) {
                    sketch.add(content_hash(text), 1);
                }
            },
            notices,
        );
        let mut wanted = TextCounts::MAX_TEXTS * 3 / 4;
        let counted = loop {
            let chosen = sketches.iter().map(|sketch| sketch.choose(wanted));
            let chosen: Vec<Chosen> = chosen.collect();
            let states = walk.run(
                || vec![(TextCounts::default(), 0_u64); due.len()],
                |counts, at, text| {
                    if let (Some((texts, others)), Some(chosen)) =
                        (counts.get_mut(at), chosen.get(at))
                    {
                        if chosen.has(content_hash(text)) {
                            texts.add(text);
                        } else {
                            *others += 1;
                        }
                    }
                },
                notices,
            );
            let mut all = vec![(TextCounts::default(), 0_u64); due.len()];
            for state in states {
                for ((texts, others), (more, more_others)) in all.iter_mut().zip(state) {
                    texts.merge(more);
                    *others += more_others;
                }
            }
            if wanted <= 1 || all.iter().all(|(texts, _)| texts.others() == 0) {
                break all;
            }
            wanted /= 2;
        };
        for (&at, (counts, others)) in due.iter().zip(counted) {
            if let Some(texts) = texts.get_mut(at) {
                texts.replace(counts, others);
            }
        }
    }
}

/// A walk over the texts of some arguments.
struct Walk<'a> {
    samples: SelectedSamples<'a>,
    due: &'a [usize],
    places: &'a [Vec<TextsOfArgument>],
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
                let at = self.due.iter().position(|&due| due == of.texts)?;
                let argument = of.argument;
                Some(DueArgument { at, argument })
            })
        };
        let add = |state: &mut A, text: DueText<'_>| add(state, text.at, text.bytes);
        walk_texts(self.samples, due, make, add, notices)
    }
}
