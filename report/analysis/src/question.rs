//! Questions that a report answers.
//!
//! Whatever is asked is one [`Question`], the default report among them. One walk over the trace fills one state per
//! thread, the states are merged, facts are made of them, and text, JSON and CSV of the facts. Groups with equal
//! figures are in the order of their values.

use std::str::FromStr;

use usdtrec_format::{LeastParts, TimePart};
use usdtrec_trace::question_error::QuestionError;

/// A question about a trace.
#[derive(Clone, Debug, Default)]
pub enum Question {
    /// A summary: probes, spans, arguments, losses.
    #[default]
    Summary,
    /// Samples counted by groups, as `perf report --sort`.
    Groups {
        /// Keys: `event`, `comm`, `pid`, `tid`, `cpu`, `dso`, `sym`, or names of arguments.
        sort: Vec<String>,
        /// An argument whose numbers are summed up in each group.
        value: Option<String>,
        /// Maximum number of groups shown; `None` for all.
        top: Option<usize>,
        /// By which figure of these numbers groups are sorted; by their events without numbers.
        order: GroupOrder,
    },
    /// The time from one probe to another.
    Spans(SpanQuestion),
    /// The distribution of numbers.
    Histogram {
        /// Of what.
        of: Subject,
        /// In which buckets.
        scale: Scale,
    },
    /// The distribution of numbers over time.
    Heatmap(Subject),
    /// The number of events, interval by interval.
    Rate {
        /// Length of an interval, ns.
        interval: u64,
        /// Keys to group by, as of [`Question::Groups`]; empty for one series a probe.
        sort: Vec<String>,
    },
    /// The stacks of the selected events.
    Stacks {
        /// The weight of stacks.
        weight: StackWeight,
        /// Which stacks.
        of: StackKind,
    },
}

/// Which stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackKind {
    /// The recorded ones if an event that is selected has any, else those of scripts.
    #[default]
    Auto,
    /// Recorded call chains.
    Native,
    /// The functions of scripts, by the recorded calls and returns.
    Script,
}

impl StackKind {
    /// The key for them.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Auto => "stack",
            Self::Native => "stack:native",
            Self::Script => "stack:script",
        }
    }
}

/// What stacks weigh.
#[derive(Clone, Debug, Default)]
pub enum StackWeight {
    /// Number of hits.
    #[default]
    Hits,
    /// The sum of an argument of this name; of floats, rounded to an integer.
    Sum(String),
    /// The time in spans that begin there and in no span within them. `by`, `top` and `order` of the question are not used.
    Spans(SpanQuestion),
}

/// In which order a tree of stacks has the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// The outermost frame first.
    #[default]
    Caller,
    /// The innermost frame first: the function with the probe.
    Callee,
}

impl Question {
    /// The question about spans, if there is one.
    pub(crate) const fn spans(&self) -> Option<&SpanQuestion> {
        match self {
            Self::Spans(question)
            | Self::Stacks {
                weight: StackWeight::Spans(question),
                ..
            }
            | Self::Histogram {
                of: Subject::Span(question),
                ..
            }
            | Self::Heatmap(Subject::Span(question)) => Some(question),
            _ => None,
        }
    }
}

/// Numbers of a trace.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An argument, of each probe that has one of this name.
    Argument(String),
    /// The durations of spans.
    Span(SpanQuestion),
}

/// Buckets of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// By value where there are few different ones, else powers of two.
    #[default]
    Auto,
    /// Powers of two.
    Log2,
    /// Twenty of one width.
    Linear,
    /// Each value.
    Value,
}

/// A question about spans.
#[derive(Clone, Debug, Default)]
pub struct SpanQuestion {
    /// `START..DONE`, or names of spans that are found by the names of their probes, with globs.
    pub spans: Vec<String>,
    /// What beginning and end have in common, and nothing else must: `tid`, `pid`, or arguments of both. If empty, the thread and those
    /// arguments that both have and that distinguish calls.
    pub key: Vec<String>,
    /// What spans are grouped by: keys as of `--sort`, of the hit that begins them, or of the one that ends them as `EVENT.KEY` or
    /// where it alone has the argument.
    pub by: Vec<String>,
    /// Shorter ones do not count, ns.
    pub min: u64,
    /// Those with less of a part of their time do not count either.
    pub least_parts: LeastParts,
    /// Which part of their time histograms and heat maps are of; `None` for their duration.
    pub measured: Option<TimePart>,
    /// Number of the slowest spans, and of groups; `None` for 10 of the slowest and all groups.
    pub top: Option<usize>,
    /// By which figure groups are sorted.
    pub order: GroupOrder,
}

/// A figure by which groups are sorted, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupOrder {
    /// Number of spans or events.
    Count,
    /// Of spans, the time in which at least one of them was open, each moment once; of numbers, their sum.
    #[default]
    Total,
    /// Sum of the durations of spans, or of numbers.
    Sum,
    /// Time in which one of the spans was open and none within it, each moment once.
    Own,
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile, of spans.
    P999,
    /// The longest or greatest.
    Max,
    /// Sum of a part of the time of spans.
    Part(TimePart),
}

impl GroupOrder {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Count,
        Self::Total,
        Self::Sum,
        Self::Own,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Part(TimePart::OnCpu),
        Self::Part(TimePart::Runnable),
        Self::Part(TimePart::Iowait),
        Self::Part(TimePart::Blocked),
    ];

    /// Its name: `count`, `total`, `sum`, `self`, `mean`, `p50`, `p90`, `p99`, `p99.9`, `max`, or that of a part.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Total => "total",
            Self::Sum => "sum",
            Self::Own => "self",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Part(part) => part.spec().name,
        }
    }

    /// The same figure of numbers, whose total is their sum.
    ///
    /// # Errors
    /// [`QuestionError::Order`] for a figure that spans alone have.
    pub fn of_numbers(self) -> Result<Self, QuestionError> {
        match self {
            Self::Total => Ok(Self::Sum),
            Self::Own | Self::P999 | Self::Part(_) => {
                let is_spans = |order: &Self| {
                    matches!(order, Self::Total | Self::Own | Self::P999 | Self::Part(_))
                };
                let all = Self::ALL.into_iter().filter(|order| !is_spans(order));
                Err(unknown(all, self.name()))
            }
            order => Ok(order),
        }
    }
}

impl FromStr for GroupOrder {
    type Err = QuestionError;

    fn from_str(name: &str) -> Result<Self, QuestionError> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|order| order.name() == name);
        found.ok_or_else(|| unknown(Self::ALL.into_iter(), name))
    }
}

fn unknown(expected: impl Iterator<Item = GroupOrder>, found: &str) -> QuestionError {
    let names: Vec<&str> = expected.map(GroupOrder::name).collect();
    let expected = match names.as_slice() {
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    };
    QuestionError::Order {
        expected,
        found: found.to_owned(),
    }
}
