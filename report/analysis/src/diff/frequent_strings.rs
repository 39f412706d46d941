//! Strings that are too many to be counted one by one: the most frequent ones, and the most frequent shapes if those are too many, too, are found
//! by two more passes over the file, so that they are the same whatever order they came in.

use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

use crate::diff::counts::RecordingCounts;
use crate::diff::strings::CountedStrings;
use crate::samples::SelectedSamples;
use crate::stats::shape::shape;
use crate::stats::sketch::{Chosen, Combine, Sketch, content_hash};
use crate::stats::timeline::Timeline;
use crate::string_walk::{DueArgument, DueString, walk_strings};

/// Arguments that are counted in one pass; each takes some megabytes.
const AT_ONCE: usize = 4;

/// The samples that are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedSamples<'a> {
    pub(crate) session: &'a TraceSession,
    pub(crate) filter: &'a SampleFilter,
    pub(crate) rows: &'a Rows,
    pub(crate) timeline: Timeline,
}

/// An argument that had too many strings.
#[derive(Clone, Copy, Debug)]
struct Due {
    row: usize,
    argument: usize,
    /// Whether there were too many shapes, too.
    shapes: bool,
}

/// Something for the strings of an argument, and the same for their shapes.
#[derive(Clone, Debug, Default)]
struct Both<T> {
    strings: T,
    shapes: T,
}

/// Counts strings of which there were too many once more.
pub(crate) fn recount(
    samples: ComparedSamples<'_>,
    sums: &mut RecordingCounts,
    notices: &mut Notices,
) {
    let mut all = Vec::new();
    for (row, sums) in sums.rows.iter().enumerate() {
        for (argument, sums) in sums.arguments.iter().enumerate() {
            if sums.strings.is_full() {
                all.push(Due {
                    row,
                    argument,
                    shapes: sums.strings.shapes().is_full(),
                });
            }
        }
    }
    for due in all.chunks(AT_ONCE) {
        for (due, found) in due.iter().zip(samples.count(due, notices)) {
            let row = sums.rows.get_mut(due.row);
            if let Some(argument) = row.and_then(|row| row.arguments.get_mut(due.argument)) {
                let shapes = due.shapes.then_some(found.shapes);
                argument.strings.replace(found.strings, shapes);
            }
        }
    }
}

impl ComparedSamples<'_> {
    /// The most frequent strings and shapes of each argument.
    fn count(&self, due: &[Due], notices: &mut Notices) -> Vec<Both<CountedStrings>> {
        let sketch = || Sketch::new(Combine::Sum);
        let sketches = due.iter().map(|_| Both {
            strings: sketch(),
            shapes: sketch(),
        });
        let sketches: Vec<Both<Sketch>> = sketches.collect();
        let bound = |(): &mut (), at: usize, string: &[u8], _| {
            let (Some(sketch), Some(due)) = (sketches.get(at), due.get(at)) else {
                return;
            };
            sketch.strings.add(content_hash(string), 1);
            if due.shapes {
                sketch.shapes.add(content_hash(shape(string)), 1);
            }
        };
        self.walk(due, || (), bound, notices);
        let mut wanted = CountedStrings::MAX_STRINGS * 3 / 4;
        loop {
            let chosen = sketches.iter().map(|sketch| Both {
                strings: sketch.strings.choose(wanted),
                shapes: sketch.shapes.choose(wanted),
            });
            let all = self.count_chosen(due, &chosen.collect::<Vec<_>>(), notices);
            let is_full =
                |both: &Both<CountedStrings>| both.strings.is_full() || both.shapes.is_full();
            if wanted <= 1 || !all.iter().any(is_full) {
                return all;
            }
            wanted /= 2;
        }
    }

    /// Counts the strings and shapes that were chosen.
    fn count_chosen(
        &self,
        due: &[Due],
        chosen: &[Both<Chosen>],
        notices: &mut Notices,
    ) -> Vec<Both<CountedStrings>> {
        let make = || vec![Both::<CountedStrings>::default(); due.len()];
        let add = |all: &mut Vec<Both<CountedStrings>>, at: usize, string: &[u8], slice| {
            let (Some(both), Some(chosen)) = (all.get_mut(at), chosen.get(at)) else {
                return;
            };
            if chosen.strings.has(content_hash(string)) {
                both.strings.add_one(string, slice);
            }
            if due.get(at).is_some_and(|due| due.shapes) {
                let shape = shape(string);
                if chosen.shapes.has(content_hash(&shape)) {
                    both.shapes.add_one(&shape, slice);
                }
            }
        };
        let mut all = make();
        for state in self.walk(due, make, add, notices) {
            for (both, more) in all.iter_mut().zip(&state) {
                both.strings.merge(&more.strings);
                both.shapes.merge(&more.shapes);
            }
        }
        all
    }

    /// Adds the strings of all that are due, each with its place among them and its slice.
    fn walk<A: Send>(
        &self,
        due: &[Due],
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, usize, &[u8], usize) + Sync,
        notices: &mut Notices,
    ) -> Vec<A> {
        let of_event = |event: usize| {
            let row = self.rows.of_event.get(event).copied().flatten();
            let due = due.iter().enumerate();
            due.filter_map(move |(at, due)| {
                let argument = due.argument;
                (row == Some(due.row)).then_some(DueArgument { at, argument })
            })
        };
        let samples = SelectedSamples {
            session: self.session,
            filter: self.filter,
        };
        let add = |state: &mut A, string: DueString<'_>| {
            add(
                state,
                string.at,
                string.bytes,
                self.timeline.place(string.time),
            );
        };
        walk_strings(samples, of_event, make, add, notices)
    }
}
