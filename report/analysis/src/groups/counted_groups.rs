//! Which groups are counted one by one: all, or where those are too many, the first in the requested order, which further passes over the
//! file find.

use usdtrec_format::perf::Sample;
use usdtrec_trace::events::fold::{Folded, fold_sites};
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::events::site_samples::SiteSamples;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::groups::reused_pids::ReusedPids;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{Key, KeyWords};
use crate::stats::sketch::{Chosen, Combine, Sketch, content_hash};

/// The groups that were counted: all, or chosen ones.
#[derive(Debug)]
pub(crate) struct CountedGroups<A> {
    pub(crate) counts: A,
    pub(crate) dictionary: Dictionary,
    /// `None` if everything was counted group by group.
    pub(crate) kept: Option<ChosenGroups>,
}

/// Counts that have room for so many groups.
pub(crate) trait Bounded {
    /// Whether there were more.
    fn is_overflown(&self) -> bool;
}

/// What samples are grouped by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouping<'a> {
    pub(crate) session: &'a TraceSession,
    pub(crate) filter: &'a SampleFilter,
    pub(crate) rows: &'a Rows,
    pub(crate) keys: &'a [Key],
    /// Whether groups of different rows are different groups.
    pub(crate) by_row: bool,
    /// Whether the groups of each row are a table of their own.
    pub(crate) apart: bool,
}

/// Bounds of the figures of all groups, table by table.
#[derive(Debug)]
pub(crate) struct GroupBounds {
    /// `None` for a table without groups.
    sketches: Vec<Option<Sketch>>,
}

/// Groups that are counted one by one.
#[derive(Debug)]
pub(crate) struct ChosenGroups {
    chosen: Vec<Option<Chosen>>,
    hashing: Dictionary,
}

impl<'a> Grouping<'a> {
    /// The table of a sample.
    pub(crate) fn table(&self, target: SampleTarget) -> Option<usize> {
        let row = self.rows.of_event.get(target.event as usize).copied();
        row.flatten().map(|row| if self.apart { row } else { 0 })
    }

    /// Makes `key` the words of a sample's group, its row first; returns its table. `None` if it belongs to no row.
    #[inline]
    pub(crate) fn put(
        &self,
        key: &mut Vec<KeyWords>,
        resolver: &mut Resolver<'_>,
        Hit { target, sample }: Hit<'_>,
        dictionary: &Dictionary,
    ) -> Option<usize> {
        let row = self.rows.of_event.get(target.event as usize).copied();
        let row = row.flatten()?;
        key.clear();
        key.push(KeyWords::new(if self.by_row { row as u64 } else { 0 }, 0));
        let words = self.keys.iter();
        key.extend(words.map(|one| one.words(self.rows, resolver, target, sample, dictionary)));
        Some(if self.apart { row } else { 0 })
    }

    /// Makes `keys` the words of the groups of samples of one row, as [`put`](Self::put) does, one after the other. Nothing if they belong to
    /// no row.
    pub(crate) fn put_all(
        &self,
        keys: &mut Vec<KeyWords>,
        resolver: &mut Resolver<'_>,
        samples: SiteSamples<'_>,
        dictionary: &Dictionary,
    ) {
        keys.clear();
        let row = self.rows.of_event.get(samples.target.event as usize);
        let Some(row) = row.copied().flatten() else {
            return;
        };
        let row = KeyWords::new(if self.by_row { row as u64 } else { 0 }, 0);
        let words = self.words();
        keys.resize(samples.count() * words, row);
        for (at, key) in self.keys.iter().enumerate() {
            let column = keys.iter_mut().skip(1 + at).step_by(words);
            key.fill(self.rows, resolver, samples, dictionary, column);
        }
    }

    /// Number of words of a group's key: its row, and each key.
    pub(crate) const fn words(&self) -> usize {
        1 + self.keys.len()
    }

    /// Counts all groups with `walk`, or if they are more than `most`, those that come first: `bounds` says how great each may be, by what was counted
    /// so far.
    pub(crate) fn count<A: Bounded>(
        &self,
        most: usize,
        notices: &mut Notices,
        walk: impl Fn(Option<&ChosenGroups>, &Dictionary, &mut Notices) -> A,
        bounds: impl FnOnce(A, &mut Notices) -> GroupBounds,
    ) -> CountedGroups<A> {
        let is_whole = |counts: &A, dictionary: &Dictionary| {
            !counts.is_overflown() && !dictionary.is_overflown()
        };
        let dictionary = Dictionary::default();
        let counts = walk(None, &dictionary, notices);
        if is_whole(&counts, &dictionary) {
            return CountedGroups {
                counts,
                dictionary,
                kept: None,
            };
        }
        drop(dictionary);
        let bounds = bounds(counts, notices);
        // Hashes are as good as random: a few more groups than expected have room.
        let mut wanted = most * 3 / 4;
        loop {
            let kept = bounds.choose(wanted);
            let dictionary = Dictionary::default();
            let counts = walk(Some(&kept), &dictionary, notices);
            if wanted <= 1 || is_whole(&counts, &dictionary) {
                return CountedGroups {
                    counts,
                    dictionary,
                    kept: Some(kept),
                };
            }
            wanted /= 2;
        }
    }

    /// Adds all samples to one of several states, and returns these. The first of several walks says which pids several processes had.
    pub(crate) fn walk<A: Send>(
        &self,
        is_first: bool,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, &mut Resolver<'a>, SiteSamples<'_>) + Sync,
        notices: &mut Notices,
    ) -> Vec<A> {
        let notes_pids = is_first && self.keys.contains(&Key::Pid);
        let Folded { states, outcome } = self.fold(
            || (make(), ReusedPids::default()),
            |(state, reused), resolver, samples| {
                if notes_pids {
                    reused.add(resolver, samples);
                }
                add(state, resolver, samples);
            },
        );
        notices.add_once(outcome);
        let (states, reused): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        if is_first {
            ReusedPids::count(reused.into_iter(), notices);
        }
        states
    }

    /// Adds samples to one of several states, those of one site together.
    fn fold<A: Send>(
        &self,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, &mut Resolver<'a>, SiteSamples<'_>) + Sync,
    ) -> Folded<A> {
        let calls = self.keys.iter().find_map(Key::calls);
        fold_sites(self.session, self.filter, calls, make, add)
    }

    /// Walks over all samples once more and bounds a figure of each group. `tables` says which tables have groups.
    pub(crate) fn bounds(
        &self,
        tables: &[bool],
        combine: Combine,
        figure: impl Fn(&mut Resolver<'a>, SampleTarget, &Sample<'_>) -> u64 + Sync,
        notices: &mut Notices,
    ) -> GroupBounds {
        let all = tables.iter().filter(|has| **has).count();
        let sketch = |has: &bool| has.then(|| Sketch::one_of(all, combine));
        let sketches: Vec<Option<Sketch>> = tables.iter().map(sketch).collect();
        let hashing = Dictionary::hashing();
        let Folded { outcome, .. } = self.fold(Vec::<KeyWords>::new, |keys, resolver, samples| {
            let table = self.table(samples.target);
            let Some(Some(sketch)) = table.and_then(|table| sketches.get(table)) else {
                return;
            };
            self.put_all(keys, resolver, samples, &hashing);
            let groups = keys.chunks_exact(self.words());
            for (group, sample) in groups.zip(samples.samples()) {
                let figure = figure(resolver, samples.target, &sample);
                sketch.add(content_hash(group), figure);
            }
        });
        notices.add_once(outcome);
        GroupBounds { sketches }
    }
}

impl GroupBounds {
    /// About so many groups: those with the greatest figures of each table, few groups of one leaving room for those of others.
    pub(crate) fn choose(&self, mut groups: usize) -> ChosenGroups {
        let sketches = self.sketches.iter().enumerate();
        let mut by_size: Vec<(f64, usize, &Sketch)> = sketches
            .filter_map(|(table, sketch)| {
                let sketch = sketch.as_ref()?;
                Some((sketch.groups(), table, sketch))
            })
            .collect();
        by_size.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut chosen: Vec<Option<Chosen>> = self.sketches.iter().map(|_| None).collect();
        for (at, &(size, table, sketch)) in by_size.iter().enumerate() {
            let share = groups / (by_size.len() - at);
            // How many there are is an estimate: a few more.
            let wanted = share.min((size * 1.1) as usize + 64);
            groups -= wanted;
            chosen[table] = Some(sketch.choose(wanted));
        }
        ChosenGroups {
            chosen,
            hashing: Dictionary::hashing(),
        }
    }
}

impl ChosenGroups {
    /// Whether a sample's group is among them. `key` is a buffer.
    pub(crate) fn has(
        &self,
        grouping: &Grouping<'_>,
        key: &mut Vec<KeyWords>,
        resolver: &mut Resolver<'_>,
        hit: Hit<'_>,
    ) -> bool {
        let table = grouping.put(key, resolver, hit, &self.hashing);
        let chosen = table.and_then(|table| self.chosen.get(table)?.as_ref());
        chosen.is_some_and(|chosen| chosen.has(content_hash(&*key)))
    }

    /// No group of a table that is not among them has a greater figure.
    pub(crate) fn bound(&self, table: usize) -> u64 {
        let chosen = self.chosen.get(table).and_then(Option::as_ref);
        chosen.map_or(0, |chosen| chosen.bound)
    }
}
