//! What `report` is asked, and the options that go with it.

use crate::cli::{OutputFormat, ReportArgs};
use crate::cmd::selection::has_functions;
use crate::terminal::Usage;

/// The questions to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Summary,
    Groups,
    Spans,
    Stacks,
    StacksOfSpans,
    HistogramOfSpans,
    HistogramOfArgument,
    HeatMapOfSpans,
    HeatMapOfArgument,
    Rate,
}

use Asked::{
    Groups, HeatMapOfArgument, HeatMapOfSpans, HistogramOfArgument, HistogramOfSpans, Rate, Spans,
    Stacks, StacksOfSpans, Summary,
};

/// An option, and the questions on whose answer it has an effect.
struct QuestionOption {
    name: &'static str,
    is_given: fn(&ReportArgs) -> bool,
    questions: &'static [Asked],
}

const fn option(
    name: &'static str,
    is_given: fn(&ReportArgs) -> bool,
    questions: &'static [Asked],
) -> QuestionOption {
    QuestionOption {
        name,
        is_given,
        questions,
    }
}

const OF_SPANS: &[Asked] = &[Spans, HistogramOfSpans, HeatMapOfSpans];
const MATCHED: &[Asked] = &[Spans, HistogramOfSpans, HeatMapOfSpans, StacksOfSpans];
const BY: &[Asked] = &[Spans, HistogramOfSpans, HeatMapOfSpans, Rate];
const TOP: &[Asked] = &[Groups, Spans, HistogramOfSpans, HeatMapOfSpans];
const MOMENTS: &[Asked] = &[Spans, HeatMapOfSpans, HeatMapOfArgument];
const FOLDED: &[Asked] = &[
    Summary,
    Spans,
    Stacks,
    StacksOfSpans,
    HistogramOfSpans,
    HistogramOfArgument,
    HeatMapOfSpans,
    HeatMapOfArgument,
    Rate,
];

/// The options whose effect depends on values of others, as `--hist span:NAME`; the rest is said to clap.
const OPTIONS: [QuestionOption; 12] = [
    option("--key", |args| !args.key.is_empty(), MATCHED),
    option("--min", |args| args.min.is_some(), MATCHED),
    option("--filter 'span > TIME'", has_least, MATCHED),
    option("--by", |args| !args.by.is_empty(), BY),
    option("--order without --by", is_unordered, &[Groups]),
    option("--order without --value", is_plain_order, OF_SPANS),
    option("--top", |args| args.top.is_some(), TOP),
    option("--top without --by", is_top_of_all, &[Groups, Spans]),
    option("--top without --by in CSV", is_top_of_csv, &[Groups]),
    option("--clock", |args| args.clock, MOMENTS),
    option("--width", |args| args.width.width.is_some(), FOLDED),
    option(
        "--no-inline",
        is_without_functions,
        &[Stacks, StacksOfSpans],
    ),
];

fn has_least(args: &ReportArgs) -> bool {
    args.selection.which.span_least > 0
}

fn is_unordered(args: &ReportArgs) -> bool {
    args.order.is_some() && args.by.is_empty()
}

fn is_plain_order(args: &ReportArgs) -> bool {
    args.order.is_some() && args.value.is_none()
}

fn is_top_of_all(args: &ReportArgs) -> bool {
    args.top.is_some() && args.by.is_empty()
}

fn is_top_of_csv(args: &ReportArgs) -> bool {
    is_top_of_all(args) && !matches!(args.format, OutputFormat::Text | OutputFormat::Json)
}

fn is_without_functions(args: &ReportArgs) -> bool {
    let mut keys = args.sort.iter().chain(&args.by);
    args.selection.inline.no_inline && !keys.any(|key| has_functions(key))
}

impl Asked {
    /// What the options ask.
    pub(super) fn new(args: &ReportArgs) -> Self {
        let is_span = |subject: &str| subject.starts_with("span:");
        let are_spans = !args.span.is_empty();
        match (&args.hist, &args.heatmap) {
            _ if args.call_graph.is_some() && are_spans => StacksOfSpans,
            _ if args.call_graph.is_some() => Stacks,
            _ if are_spans => Spans,
            (Some(subject), _) if is_span(subject) => HistogramOfSpans,
            (Some(_), _) => HistogramOfArgument,
            (_, Some(subject)) if is_span(subject) => HeatMapOfSpans,
            (_, Some(_)) => HeatMapOfArgument,
            _ if args.rate.is_some() => Rate,
            _ if args.sort.is_empty() => Summary,
            _ => Groups,
        }
    }

    /// Whether spans are matched for the answer.
    pub(super) fn has_spans(self) -> bool {
        MATCHED.contains(&self) || self == Summary
    }

    /// What asks it, in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Summary => "the plain report",
            Groups => "--sort",
            Spans => "--span",
            Stacks => "--call-graph without --span",
            StacksOfSpans => "--call-graph with --span",
            HistogramOfSpans => "--hist span:NAME",
            HistogramOfArgument => "--hist ARG",
            HeatMapOfSpans => "--heatmap span:NAME",
            HeatMapOfArgument => "--heatmap ARG",
            Rate => "--rate",
        }
    }

    /// Refuses the options without an effect on the answer.
    pub(super) fn check(self, args: &ReportArgs) -> Result<(), Usage> {
        let is_idle =
            |option: &&QuestionOption| (option.is_given)(args) && !option.questions.contains(&self);
        match OPTIONS.iter().find(is_idle) {
            None => Ok(()),
            Some(QuestionOption {
                name, questions, ..
            }) => {
                let others: Vec<&str> = questions.iter().map(|other| other.name()).collect();
                Err(Usage(format!(
                    "{name} has no effect on {}: use it with {}",
                    self.name(),
                    others.join(", ")
                )))
            }
        }
    }
}
