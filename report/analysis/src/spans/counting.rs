//! Counts the spans that end.

use std::cmp::Reverse;
use std::sync::Arc;

use usdtrec_format::trace::TimeRange;
use usdtrec_trace::added::added_argument::AddedValues;
use usdtrec_trace::events::order::place::SamplePlace;

use crate::spans::covers::WindowCovers;
use crate::spans::durations::{EndedSpan, PairStats, SlowSpan};
use crate::spans::matcher::PendingEnd;
use crate::spans::options::{BoundedFigure, GroupChoice, OTHERS, SpanOptions};
use crate::spans::stack::{Ended, Frame, Totals};
use crate::stats::coverage::Interval;
use crate::stats::keys::key::KeyWords;
use crate::stats::sketch::content_hash;

/// A span that began.
#[derive(Clone, Debug)]
pub(crate) struct OpenSpan {
    /// Whether it is selected: those that are not must be matched all the same.
    pub(crate) asked: bool,
    /// What it is grouped by; words of keys of the end are empty.
    pub(crate) group: Box<[KeyWords]>,
    pub(crate) place: SamplePlace,
    /// What its begin gets besides its own arguments.
    pub(crate) added: Option<Arc<AddedValues>>,
}

/// Counts the spans that end.
pub(crate) struct Counting<'c> {
    pub(crate) options: &'c SpanOptions,
    /// Only spans of which a part is in it count.
    pub(crate) time: TimeRange,
    /// Index of the pair.
    pub(crate) pair: usize,
    pub(crate) stats: &'c mut PairStats,
    pub(crate) covers: &'c mut WindowCovers,
    /// What ends them.
    pub(crate) end: &'c PendingEnd,
}

impl Totals<OpenSpan> for Counting<'_> {
    fn unfinished(&mut self, frame: &Frame<OpenSpan>, until: u64) {
        self.stats.counts.is_out_of_order = true;
        if frame.what.asked && overlaps(self.time, frame.time, until) {
            self.stats.counts.open += 1;
            self.stats.counts.unfinished += 1;
        }
    }

    fn paused(&mut self, frame: Frame<OpenSpan>, until: u64) {
        if !frame.what.asked {
            return;
        }
        let counts = &mut self.stats.counts;
        let is_paused = u64::from(overlaps(self.time, frame.time, until));
        counts.paused_begins += is_paused;
        if let Some(next) = frame.next {
            counts.followed_before_pause.paused += is_paused;
            counts.followed_before_pause.followed +=
                u64::from(overlaps(self.time, frame.time, next));
        }
    }

    #[inline]
    fn finished(&mut self, frame: &mut Frame<OpenSpan>, ended: Ended) {
        let Ended {
            duration,
            own,
            spent,
        } = ended;
        let options = self.options;
        let counts = &mut self.stats.counts;
        counts.nesting.add(frame);
        counts.longest = counts.longest.max(Some(duration));
        let span = Interval {
            begin: frame.time,
            end: frame.time.saturating_add(duration),
        };
        let is_in_time = overlaps(self.time, span.begin, span.end);
        counts.ended_begins += u64::from(frame.what.asked && is_in_time);
        counts.begun_ends += u64::from(self.end.counts && self.time.contains(span.end));
        if !frame.what.asked || !self.end.asked || !is_in_time {
            return;
        }
        self.stats.counts.ended += 1;
        if duration < options.min || !options.least_parts.has(spent.whole) {
            return;
        }
        let whole = self.whole_group(frame);
        let ended = EndedSpan {
            duration,
            own,
            spent,
            measured: match options.measured {
                None => Some(duration),
                Some(part) => spent.whole.ok().map(|parts| parts.get(part)),
            },
            interval: (options.heat)
                .and_then(|heat| heat.place_from_begin(frame.time))
                .map(|interval| interval as u32),
        };
        let group = match whole.is_empty() {
            true => &frame.what.group,
            false => &whole,
        };
        match &options.kept {
            GroupChoice::Bounded(sketches, figure) => {
                let figure = match figure {
                    BoundedFigure::Count => 1,
                    BoundedFigure::Own => own,
                    BoundedFigure::Sum | BoundedFigure::Max => duration,
                    BoundedFigure::Part(part) => spent.whole.map_or(0, |parts| parts.get(*part)),
                };
                if let Some(sketch) = sketches.get(self.pair) {
                    sketch.add(self.hash(frame), figure);
                }
                self.stats.add(ended, &[]);
            }
            GroupChoice::Halves(found) => {
                let hash = self.hash(frame);
                if let Some(found) = found.get(self.pair).filter(|found| found.groups.has(hash)) {
                    found.begins.add(frame.group, 1);
                    found.ends.add(self.end.group.hash, 1);
                }
                self.stats.add(ended, &[]);
            }
            GroupChoice::All | GroupChoice::Chosen(_) => {
                let is_kept = self.stats.add(ended, group);
                if let Some(waits) = frame.children.take_waits() {
                    self.stats.add_waits(waits, group);
                }
                if options.covers {
                    let has_own = frame.children.time > 0;
                    let own = has_own.then(|| frame.children.around(span));
                    let group = if is_kept { &**group } else { &[] };
                    self.covers.add(self.pair, group, span, own.as_ref());
                }
            }
        }
        if options.slowest > 0 {
            let slow = SlowSpan {
                duration,
                time: Reverse(frame.time),
                parts: spent.whole,
                begin: Reverse(frame.what.place),
                added: frame.what.added.clone(),
                end_added: self.end.added.clone(),
            };
            self.stats.keep(slow, options.slowest);
        }
    }
}

impl Counting<'_> {
    /// The hash of a span's group, the same in every run.
    fn hash(&self, frame: &Frame<OpenSpan>) -> u64 {
        match self.end.group.words.is_empty() {
            true => frame.group,
            false => content_hash((frame.group, self.end.group.hash)),
        }
    }

    /// The group of a span, where its end has a part of it; else empty.
    fn whole_group(&self, frame: &Frame<OpenSpan>) -> Box<[KeyWords]> {
        let end = &self.end.group.words;
        if end.is_empty() {
            return Box::default();
        }
        let options = self.options;
        if let GroupChoice::Chosen(chosen) = &options.kept
            && let Some(chosen) = chosen.get(self.pair)
            && !chosen.groups.has(self.hash(frame))
        {
            return OTHERS.into();
        }
        let begun = &frame.what.group;
        let both = begun.iter().zip(end).zip(&options.by);
        both.map(|((&begun, &end), by)| if by.of_end { end } else { begun })
            .collect()
    }
}

/// Whether a part of a span is in a time.
pub(crate) const fn overlaps(time: TimeRange, begin: u64, end: u64) -> bool {
    begin <= time.last && end >= time.first
}

#[cfg(test)]
mod tests {
    use usdtrec_format::NoTimeParts;

    use super::*;
    use crate::spans::matcher::SpanGroupWords;
    use crate::spans::options::FoundHalves;
    use crate::spans::spent_time::SpentTime;
    use crate::stats::sketch::{Combine, Sketch};
    use crate::stats::timeline::Timeline;

    fn finish(stats: &mut PairStats, options: &SpanOptions, asked: bool, span: Interval) {
        let end = PendingEnd {
            asked: true,
            ..PendingEnd::default()
        };
        finish_grouped(stats, options, &end, (asked, 0), span);
    }

    /// The begin is given by whether it is selected, and the hash of its part of the group.
    fn finish_grouped(
        stats: &mut PairStats,
        options: &SpanOptions,
        end: &PendingEnd,
        (asked, group): (bool, u64),
        span: Interval,
    ) {
        let mut counting = Counting {
            options,
            time: TimeRange::new(100, 199),
            pair: 0,
            stats,
            covers: &mut WindowCovers::default(),
            end,
        };
        let begun = OpenSpan {
            asked,
            group: Box::default(),
            place: SamplePlace::default(),
            added: None,
        };
        let mut frame = Frame::new(span.begin, Default::default(), begun);
        frame.group = group;
        let ended = Ended {
            duration: span.len(),
            own: span.len(),
            spent: SpentTime {
                whole: Err(NoTimeParts::NotRecorded),
                own: None,
            },
        };
        counting.finished(&mut frame, ended);
    }

    /// In heat maps with `--time`.
    #[test]
    fn spans_that_began_before_are_in_no_interval() {
        let options = SpanOptions {
            heat: Some(Timeline {
                from: 100,
                interval: 50,
                intervals: 2,
                until: 200,
            }),
            ..SpanOptions::default()
        };
        let mut stats = PairStats::new(1);
        for begin in [20, 110, 150] {
            let end = begin + 90;
            finish(&mut stats, &options, true, Interval { begin, end });
        }
        assert_eq!(stats.counts.ended, 3);
        let intervals = stats.all.heat.iter();
        let mut intervals: Vec<_> = intervals
            .map(|(cell, count)| (cell.interval, *count))
            .collect();
        intervals.sort_unstable();
        assert_eq!(intervals, [(0, 1), (1, 1)]);
    }

    /// Those that a filter leaves out have begun, too, and may have lasted longest.
    #[test]
    fn all_spans_say_what_may_have_begun_before_the_recording() {
        let mut stats = PairStats::new(1);
        assert!(stats.counts.has_no_begins());
        let options = SpanOptions::default();
        let (begin, end) = (100, 190);
        finish(&mut stats, &options, false, Interval { begin, end });
        assert!(!stats.counts.has_no_begins());
        finish(&mut stats, &options, true, Interval { begin, end: 110 });
        assert_eq!((stats.counts.ended, stats.counts.longest), (1, Some(90)));
    }

    /// Of what has a partner, each side counts as it is selected, whatever is selected of the other.
    #[test]
    fn begins_and_ends_count_on_their_own() {
        let mut stats = PairStats::new(1);
        let options = SpanOptions::default();
        for (is_begin, is_end) in [(true, false), (false, true), (true, true)] {
            let end = PendingEnd {
                asked: is_end,
                counts: is_end,
                ..PendingEnd::default()
            };
            let span = Interval {
                begin: 190,
                end: 195,
            };
            finish_grouped(&mut stats, &options, &end, (is_begin, 0), span);
        }
        // It ends after the time that is selected.
        let end = PendingEnd {
            asked: true,
            counts: true,
            ..PendingEnd::default()
        };
        let late = Interval {
            begin: 190,
            end: 210,
        };
        finish_grouped(&mut stats, &options, &end, (true, 0), late);
        let counts = stats.counts;
        assert_eq!(
            (counts.ended, counts.ended_begins, counts.begun_ends),
            (2, 3, 2)
        );
    }

    /// Of spans of other groups, neither begin nor end is needed.
    #[test]
    fn begins_and_ends_of_chosen_groups_are_found() {
        let of_span = |begin: u64, end: u64| content_hash((begin, end));
        let groups = Sketch::one_of(1, Combine::Sum);
        groups.add(of_span(7, 70), 100);
        groups.add(of_span(8, 80), 1);
        let sketch = || Sketch::one_of(2, Combine::Max);
        let options = SpanOptions {
            kept: GroupChoice::Halves(vec![FoundHalves {
                groups: groups.choose(1),
                begins: sketch(),
                ends: sketch(),
            }]),
            ..SpanOptions::default()
        };
        for (begin, end) in [(7, 70), (8, 80), (7, 80)] {
            let mut stats = PairStats::new(1);
            let end = PendingEnd {
                asked: true,
                group: SpanGroupWords {
                    words: OTHERS.into(),
                    hash: end,
                },
                ..PendingEnd::default()
            };
            let span = Interval {
                begin: 100,
                end: 110,
            };
            finish_grouped(&mut stats, &options, &end, (true, begin), span);
            assert!(stats.groups.is_empty());
        }
        let GroupChoice::Halves(found) = &options.kept else {
            unreachable!()
        };
        let [begins, ends] =
            [&found[0].begins, &found[0].ends].map(|found| found.choose(usize::MAX));
        assert!(begins.has(7) && !begins.has(8));
        assert!(ends.has(70) && !ends.has(80));
    }
}
