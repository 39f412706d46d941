//! `report --span`: how long what lies between two probes takes.

pub(crate) mod facts;
pub(crate) mod group_keys;
pub(crate) mod groups;
pub(crate) mod passes;

use crate::analysis::span_report::facts::SpanFacts;

use crate::analysis::span_report::facts::{SlowFacts, SpanReport};
use crate::analysis::span_report::groups::{Ranking, ranked};
use crate::analysis::span_report::passes::{Extras, matched};
use crate::analysis::spans::durations::Durations;
use crate::analysis::spans::key::SpanKey;
use crate::analysis::spans::walk::{Figure, SpanWalk, Spans};
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::Filter;
use crate::stats::sketch::Combine;
use crate::stats::timeline::Timeline;
use crate::trace::session::Session;
use crate::view::head::Head;
use crate::view::report::ReportOptions;
use crate::view::script::Format;

/// What is asked of spans.
#[derive(Clone, Debug, Default)]
pub struct SpanQuestion {
    /// `START..DONE`, or the name of a span that is found by the names of its probes.
    pub span: String,
    /// What beginning and end have in common, and nothing else must: `tid`, `pid`, or arguments of both. If empty, the thread and those
    /// arguments that both have and that tell calls apart.
    pub key: Vec<String>,
    /// What spans are grouped by: keys as of `--sort`, of the hit that begins them, or of the one that ends them as `EVENT.KEY` or
    /// where it alone has the argument.
    pub by: Vec<String>,
    /// Shorter ones do not count, ns.
    pub min: u64,
    /// How many of the slowest are shown, and how many groups; `None` for 10 in text, else for 10 of the slowest and all groups.
    pub top: Option<usize>,
    /// By which figure groups are sorted.
    pub order: SpanOrder,
}

/// A figure of spans, by which groups are sorted, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanOrder {
    /// Number of spans.
    Count,
    /// Time in which at least one of them was open.
    #[default]
    Total,
    /// Time in them and in no span within them.
    Own,
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Longest.
    Max,
}

/// Groups, and slowest spans, that are shown if nothing is said.
const TOP: usize = 10;

/// A question about the spans of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanRequest<'a> {
    pub(crate) session: &'a Session,
    pub(crate) filter: &'a Filter,
    pub(crate) question: &'a SpanQuestion,
    pub(crate) options: &'a ReportOptions,
}

/// The spans of a pair of probes, or of a group of them.
#[derive(Debug)]
pub(crate) struct NamedSpans {
    pub(crate) name: String,
    pub(crate) durations: Durations,
}

/// Spans of all pairs, or groups.
#[derive(Debug)]
pub(crate) struct AllSpans {
    pub(crate) named: Vec<NamedSpans>,
    /// Whose arguments are meant, where that can be mistaken.
    pub(crate) remarks: Vec<String>,
}

impl SpanRequest<'_> {
    /// In which order groups are, and how many are shown.
    fn ranking(&self) -> Ranking {
        let all = match self.options.format {
            Format::Text => TOP,
            Format::Json | Format::Csv | Format::CsvRaw => usize::MAX,
        };
        Ranking {
            order: self.question.order,
            top: self.question.top.unwrap_or(all),
        }
    }
}

/// Matches spans and shows them.
pub(crate) fn report(request: SpanRequest<'_>) -> Result<(String, Notices), ReportError> {
    let SpanRequest {
        session,
        filter,
        question,
        options,
    } = request;
    let mut notices = Notices::new(session);
    let extras = Extras {
        slowest: question.top.unwrap_or(TOP),
        heat: None,
    };
    let report = matched(request, extras, &mut notices, |walk, spans| {
        let tallies = spans.tallies.iter().enumerate();
        let groups = tallies.map(|(at, _)| ranked(walk, &spans, at, request.ranking()).facts());
        let (groups, others) = groups.unzip();
        let slowest = spans.tallies.iter();
        SpanReport {
            head: Head::new(session).with(group_keys::remarks(walk, filter)),
            by: walk.options.by.clone(),
            spans: facts(walk, &spans),
            groups,
            others,
            slowest: slowest.map(|tally| SlowFacts::of(session, tally)).collect(),
        }
    })?;
    let text = match options.format {
        Format::Text => crate::view::report::spans::render(&report, question, options.look()),
        Format::Json => crate::view::report::spans_data::json(&report),
        format => crate::view::report::spans_data::csv(format.csv(), &report),
    };
    Ok((text, notices))
}

/// The spans of each pair, or of each group in the order asked for and of all others; by the interval of `heat` in which they began, if it is given.
pub(crate) fn named(
    request: SpanRequest<'_>,
    heat: Option<Timeline>,
    notices: &mut Notices,
) -> Result<AllSpans, ReportError> {
    let extras = Extras { slowest: 0, heat };
    matched(request, extras, notices, |walk, spans| {
        let mut named = Vec::new();
        for (at, (pair, tally)) in walk.pairs.iter().zip(&spans.tallies).enumerate() {
            let name = &pair.name;
            if request.question.by.is_empty() {
                named.push(NamedSpans {
                    name: name.clone(),
                    durations: tally.all.clone(),
                });
                continue;
            }
            let by = request.question.by.join(", ");
            let groups = ranked(walk, &spans, at, request.ranking());
            let shown = groups.shown.into_iter();
            named.extend(shown.map(|(group, durations)| NamedSpans {
                name: format!("{name} by {by}: {}", group.name()),
                durations: durations.clone(),
            }));
            if let Some((others, durations)) = groups.others {
                let count = others.groups.map(|groups| format!("{groups} "));
                named.push(NamedSpans {
                    name: format!("{name} by {by}: {}other groups", count.unwrap_or_default()),
                    durations,
                });
            }
        }
        AllSpans {
            named,
            remarks: group_keys::remarks(walk, request.filter),
        }
    })
}

impl SpanOrder {
    /// What bounds the figure: none of a group's spans that are left out can make it greater.
    const fn bounded_by(self) -> (Figure, Combine) {
        match self {
            Self::Count => (Figure::Count, Combine::Sum),
            Self::Total => (Figure::Sum, Combine::Sum),
            Self::Own => (Figure::Own, Combine::Sum),
            _ => (Figure::Max, Combine::Max),
        }
    }
}

/// What spans are, pair by pair.
pub(crate) fn facts(walk: &SpanWalk<'_>, spans: &Spans) -> Vec<SpanFacts> {
    let both = walk.pairs.iter().zip(&spans.tallies).enumerate();
    both.map(|(at, (pair, tally))| {
        let thread = SpanKey::default();
        let key = walk.options.keys.get(at).unwrap_or(&thread);
        SpanFacts::new(walk.session, (pair, key), tally)
    })
    .collect()
}
