//! Matching the spans that are selected, in as many passes over the file as their groups need.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

use crate::question::GroupOrder;
use crate::rows::row_walk::asked_pairs;
use crate::samples::SelectedSamples;
use crate::span_report::group_keys;
use crate::span_report::request::SpanRequest;
use crate::spans::asked_keys::asked_keys;
use crate::spans::options::{
    ChosenSpans, FoundHalves, GroupChoice, Halves, SpanOptions, refuse_parts,
};
use crate::spans::own_keys::{EarlyKeys, own_keys};
use crate::spans::pair::Pair;
use crate::spans::waits::WaitEvents;
use crate::spans::walk::{SpanWalk, Spans};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::sketch::{Chosen, Combine, Sketch};
use crate::stats::timeline::Timeline;

/// The requested facts about spans besides their durations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpanExtras {
    /// Number of the slowest spans.
    pub(crate) slowest: usize,
    /// Intervals to count them in, too.
    pub(crate) heat: Option<Timeline>,
    /// Whether what threads waited for is wanted.
    pub(crate) waits: bool,
}

/// Matches spans, and calls `show` with them.
pub(crate) fn matched<T>(
    request: SpanRequest<'_>,
    extras: SpanExtras,
    notices: &mut Notices,
    show: impl FnOnce(&SpanWalk<'_>, Spans) -> T,
) -> Result<T, ReportError> {
    let SelectedSamples { session, filter } = request.samples;
    let question = request.question;
    let ordered = match question.order {
        GroupOrder::Part(part) => Some(part),
        _ => None,
    };
    for part in [ordered, question.measured, question.least_parts.first()] {
        refuse_parts(session, part)?;
    }
    let pairs = asked_pairs(&question.spans, session, |_| true)?;
    let of_pair = |event: usize| {
        let has = |pair: &Pair| pair.starts.contains(&event) || pair.dones.contains(&event);
        pairs.iter().any(has)
    };
    let rows = Rows::new(session, of_pair);
    let mut keys = match question.key.is_empty() {
        true => EarlyKeys::find(&pairs, session, filter, &rows),
        false => EarlyKeys::given(asked_keys(&question.key, &pairs, session, &rows)?),
    };
    let by = question.by.iter();
    let by = by.map(|name| group_keys::by(name, session, &rows, &pairs));
    let mut options = SpanOptions {
        keys: std::mem::take(&mut keys.keys),
        by: by.collect::<Result<_, _>>()?,
        min: question.min,
        least_parts: question.least_parts,
        measured: question.measured,
        slowest: extras.slowest,
        heat: extras.heat,
        kept: GroupChoice::All,
        covers: true,
        waits: match extras.waits {
            true => WaitEvents::find(session),
            false => WaitEvents::default(),
        },
    };
    let asked = Asked {
        session,
        filter,
        pairs: &pairs,
        rows: &rows,
    };
    let mut dictionary = Dictionary::default();
    let mut found = asked.walk(&options, &dictionary, notices);
    if !keys.hold(&found) {
        drop(found);
        options.keys = own_keys(&pairs, session, &rows);
        dictionary = Dictionary::default();
        found = asked.walk(&options, &dictionary, notices);
    }
    let overflow = found.pair_stats.iter().any(|stats| stats.overflow);
    if !overflow && !dictionary.is_overflown() {
        notices.add_forgotten(found.forgotten);
        return Ok(show(&asked.span_walk(&options, &dictionary), found));
    }
    drop(found);
    let bound = question.order.bounded_by();
    let sketch = |_| Sketch::one_of(pairs.len(), bound.combine);
    let sketches = pairs.iter().map(sketch).collect();
    options.kept = GroupChoice::Bounded(sketches, bound.figure);
    asked.walk(&options, &Dictionary::default(), notices);
    let sketches = match std::mem::take(&mut options.kept) {
        GroupChoice::Bounded(sketches, _) => sketches,
        _ => Vec::new(),
    };
    // Hashes are as good as random: a few more groups than expected have room.
    let mut groups = options.most_groups() * 3 / 4;
    loop {
        let chosen = sketches.iter().map(|sketch| sketch.choose(groups));
        let chosen = asked.with_halves(chosen.collect(), &mut options, notices);
        options.kept = GroupChoice::Chosen(chosen);
        let dictionary = Dictionary::default();
        let found = asked.walk(&options, &dictionary, notices);
        let overflow = found.pair_stats.iter().any(|stats| stats.overflow);
        if groups <= 1 || !(overflow || dictionary.is_overflown()) {
            notices.add_forgotten(found.forgotten);
            return Ok(show(&asked.span_walk(&options, &dictionary), found));
        }
        groups /= 2;
    }
}

/// What all walks for a question have in common.
struct Asked<'a> {
    session: &'a TraceSession,
    filter: &'a SampleFilter,
    pairs: &'a [Pair],
    rows: &'a Rows,
}

impl Asked<'_> {
    fn span_walk<'w>(
        &'w self,
        options: &'w SpanOptions,
        dictionary: &'w Dictionary,
    ) -> SpanWalk<'w> {
        SpanWalk {
            session: self.session,
            filter: self.filter,
            samples: None,
            pairs: self.pairs,
            options,
            rows: self.rows,
            dictionary,
        }
    }

    /// Finds the begins and ends of the spans of groups that are chosen, if a part of a group is only known when a span ends. Otherwise the strings of
    /// all begins and ends would have to be stored.
    fn with_halves(
        &self,
        chosen: Vec<Chosen>,
        options: &mut SpanOptions,
        notices: &mut Notices,
    ) -> Vec<ChosenSpans> {
        if !options.groups_by_end() {
            let whole = |groups| ChosenSpans {
                groups,
                halves: None,
            };
            return chosen.into_iter().map(whole).collect();
        }
        let sketches = 2 * chosen.len();
        let unfound = |groups| FoundHalves {
            groups,
            begins: Sketch::one_of(sketches, Combine::Max),
            ends: Sketch::one_of(sketches, Combine::Max),
        };
        options.kept = GroupChoice::Halves(chosen.into_iter().map(unfound).collect());
        self.walk(options, &Dictionary::default(), notices);
        let found = match std::mem::take(&mut options.kept) {
            GroupChoice::Halves(found) => found,
            _ => Vec::new(),
        };
        let found = found.into_iter().map(|found| ChosenSpans {
            groups: found.groups,
            halves: Some(Halves {
                begins: found.begins.choose(usize::MAX),
                ends: found.ends.choose(usize::MAX),
            }),
        });
        found.collect()
    }

    fn walk(&self, options: &SpanOptions, dictionary: &Dictionary, notices: &mut Notices) -> Spans {
        let walk = self.span_walk(options, dictionary);
        let walked = walk.run(|| (), |(), _, _, _| (), |_| false);
        notices.add_once(walked.outcome);
        walked.spans
    }
}
