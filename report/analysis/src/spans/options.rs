//! How spans are matched and counted.

use usdtrec_format::{LeastParts, TimePart};
use usdtrec_trace::process::process_field::THREAD_WAITS;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::spans::durations::{MAX_HEAT_GROUPS, MAX_SPAN_GROUPS, PairStats};
use crate::spans::key::SpanKey;
use crate::spans::pair::Pair;
use crate::spans::waits::WaitEvents;
use crate::stats::keys::key::{Key, KeyWords};
use crate::stats::sketch::{Chosen, Sketch};
use crate::stats::timeline::Timeline;

/// How spans are matched and counted.
#[derive(Debug, Default)]
pub(crate) struct SpanOptions {
    /// The key of each pair.
    pub(crate) keys: Vec<SpanKey>,
    /// The keys that spans are grouped by.
    pub(crate) by: Vec<GroupBy>,
    /// Shorter ones do not count, ns.
    pub(crate) min: u64,
    /// Those with less of a part do not count either.
    pub(crate) least_parts: LeastParts,
    /// Which part of their time is measured; `None` for their duration.
    pub(crate) measured: Option<TimePart>,
    /// Number of the slowest spans to keep.
    pub(crate) slowest: usize,
    /// Time intervals to count spans by, too.
    pub(crate) heat: Option<Timeline>,
    /// Which groups are kept.
    pub(crate) kept: GroupChoice,
    /// Whether it is found in which time spans were open.
    pub(crate) covers: bool,
    /// The events whose hits are waits in spans.
    pub(crate) waits: WaitEvents,
}

impl SpanOptions {
    /// Maximum number of groups with statistics of their own.
    pub(crate) const fn most_groups(&self) -> usize {
        match self.heat {
            Some(_) => MAX_HEAT_GROUPS,
            None => MAX_SPAN_GROUPS,
        }
    }

    /// Whether a part of what spans are grouped by is only known when they end.
    pub(crate) fn groups_by_end(&self) -> bool {
        self.by.iter().any(|by| by.of_end)
    }

    /// Statistics of each pair, without spans.
    pub(crate) fn pair_stats(&self, pairs: &[Pair]) -> Vec<PairStats> {
        vec![PairStats::new(self.most_groups()); pairs.len()]
    }
}

/// Refuses a question about a part of the time of spans where the trace does not say how long threads have waited.
pub(crate) fn refuse_parts(
    session: &TraceSession,
    part: Option<TimePart>,
) -> Result<(), QuestionError> {
    match part {
        Some(part) if !session.has_waits() => Err(QuestionError::NotOfProcess {
            what: part.spec().name,
            needs: THREAD_WAITS,
        }),
        _ => Ok(()),
    }
}

/// Which groups are kept.
#[derive(Debug, Default)]
pub(crate) enum GroupChoice {
    /// All, up to the maximum.
    #[default]
    All,
    /// No group: only the bounds of the figures of each pair's groups are found.
    Bounded(Vec<Sketch>, BoundedFigure),
    /// No group: only the begins and ends of the spans of some groups of each pair are found.
    Halves(Vec<FoundHalves>),
    /// Some groups of each pair; all others are one group.
    Chosen(Vec<ChosenSpans>),
}

/// Some groups of a pair.
#[derive(Debug)]
pub(crate) struct ChosenSpans {
    pub(crate) groups: Chosen,
    /// Where a part of a group is only known when a span ends: the begins and ends of spans of these groups. Words of others are not needed.
    pub(crate) halves: Option<Halves>,
}

/// The begins and ends of the spans of some groups, by the hashes of their parts of the groups.
#[derive(Debug)]
pub(crate) struct Halves {
    pub(crate) begins: Chosen,
    pub(crate) ends: Chosen,
}

/// The same while they are found.
#[derive(Debug)]
pub(crate) struct FoundHalves {
    pub(crate) groups: Chosen,
    pub(crate) begins: Sketch,
    pub(crate) ends: Sketch,
}

impl ChosenSpans {
    /// Whether a begin with this hash of its part of a group may be of a span of one of them.
    pub(crate) fn has_begin(&self, hash: u64) -> bool {
        let begins = self.halves.as_ref().map(|halves| &halves.begins);
        begins.unwrap_or(&self.groups).has(hash)
    }

    /// The same of an end.
    pub(crate) fn has_end(&self, hash: u64) -> bool {
        let halves = self.halves.as_ref();
        halves.is_some_and(|halves| halves.ends.has(hash))
    }
}

/// A figure of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundedFigure {
    /// Number of its spans.
    Count,
    /// Sum of their times.
    Sum,
    /// Sum without the time of nested spans.
    Own,
    /// The longest.
    Max,
    /// Sum of a part of their time.
    Part(TimePart),
}

/// The group of all that are not chosen.
pub(crate) const OTHERS: [KeyWords; 1] = [KeyWords::new(u64::MAX, u64::MAX)];

/// A key that spans are grouped by.
#[derive(Clone, Debug)]
pub struct GroupBy {
    /// As it was requested.
    pub name: String,
    pub key: Key,
    /// Whether it is a key of the hit that ends the span, not of the one that begins it.
    pub of_end: bool,
    /// The argument, if both hits have an argument of this name and the question does not say which is meant.
    pub(crate) of_both: Option<String>,
}

impl GroupBy {
    /// A key of the hit that begins the span.
    pub(crate) fn of_begin(key: Key) -> Self {
        Self {
            name: key.name().to_owned(),
            key,
            of_end: false,
            of_both: None,
        }
    }
}
