//! `usdtrec report`.

use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use usdtrec_format::TimePart;
use usdtrec_report::answer::Answer;
use usdtrec_report::question::{Question, Scale, SpanQuestion, StackWeight, Subject};
use usdtrec_report::report::{self, ReportOptions, StackStyle, TextRoom};
use usdtrec_report::{AnswerQuestions as _, QuestionError, ReportError, TraceSession, WallTimes};

use super::selection::{self, Extent, has_functions};
use super::trigger_head;
use crate::advice::HINTS;
use crate::cli::{Colour, HOLDER_KEYS, HistScale, OutputFormat, ReportArgs, WithArgs, stack_kind};
use crate::terminal::Usage;
use crate::units::{least_ns, nanoseconds};
use crate::{progress, text_room};

/// Groups of spans that text shows if nothing is said; other formats have all.
const TEXT_GROUPS: usize = 10;

/// Runs the verb.
pub(crate) fn run(args: &ReportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let asked = ReportQuestion::new(args);
    let question = question(args, asked)?;
    let mut out = selection::paged_output(args.pager)?;
    let extent = Extent::for_spans(asked.has_spans());
    let session = selection::open(&args.selection, extent, buildid_dir)?;
    let trace = selection::trace_options(&args.selection);
    let options = ReportOptions {
        stacks: match args.call_graph {
            Some(graph) => StackStyle::Tree(graph),
            None => StackStyle::Folded,
        },
        format: selection::format(args.format),
        colours: colours(args.color),
        hints: HINTS,
        trace: (!selection::is_stdin(&args.selection)).then(|| trace.clone()),
        times_of_day: times_of_day(args, &session),
        room: room(args, out.has_pager()),
    };
    let notices = progress::shown_until_output(&session, &mut out, |out| {
        let answer = answer(args, &session, &question)?;
        if asked == ReportQuestion::Summary && args.format == OutputFormat::Text {
            trigger_head::write(&session, &trace, out)?;
        }
        report::write(&answer, &options, out)?;
        Ok::<_, ReportError>(answer.notices)
    })?;
    out.finish();
    selection::print_faults(&session, &notices);
    Ok(ExitCode::SUCCESS)
}

/// The room for the answer. A pager shows its beginning, however long it is, and so does a terminal with room for all of it.
fn room(args: &ReportArgs, is_paged: bool) -> TextRoom {
    let lines = match is_paged || args.top.is_some() {
        true => None,
        false => text_room::lines(),
    };
    TextRoom {
        columns: text_room::columns(args.width.width),
        lines,
    }
}

/// What moments are converted to times of day by; `None` to print the trace's clock.
fn times_of_day(args: &ReportArgs, session: &TraceSession) -> Option<WallTimes> {
    session.wall_times().filter(|_| !args.clock).cloned()
}

/// Whether to use colours on standard output.
pub(super) fn colours(when: Colour) -> bool {
    match when {
        Colour::Auto => AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        Colour::Always => true,
        Colour::Never => false,
    }
}

/// Refuses options that would have no effect.
fn refuse(args: &ReportArgs, asked: ReportQuestion) -> Result<(), Usage> {
    let is_text = args.format == OutputFormat::Text;
    refuse_with(args, asked)?;
    Usage::ensure(
        is_text || args.call_graph.is_none(),
        "--call-graph is text: for JSON and CSV, use --sort stack, or --span with --by stack",
    )?;
    asked.check(args)
}

/// Refuses arguments of other events that are not shown.
fn refuse_with(args: &ReportArgs, asked: ReportQuestion) -> Result<(), Usage> {
    let WithArgs { with, holders } = &args.selection.with;
    let shown = match asked {
        ReportQuestion::Summary => return Ok(()),
        // The slowest spans are shown with those of their begin, and groups are those of holders.
        ReportQuestion::Spans => WithArgs {
            with: Vec::new(),
            holders: *holders && !args.by.is_empty(),
        },
        _ => WithArgs {
            with: with.clone(),
            holders: *holders,
        },
    };
    let named = [
        &args.value,
        &args.hist,
        &args.heatmap,
        &args.selection.which.filter,
    ];
    let keys = args.sort.iter().chain(&args.by);
    let texts = keys.chain(named.into_iter().flatten());
    selection::refuse_unused_with(&shown, texts.map(String::as_str), asked.name())
}

/// Answers the question; that about spans by who held the lock, if nothing else is said.
fn answer(
    args: &ReportArgs,
    session: &TraceSession,
    question: &Question,
) -> Result<Answer, ReportError> {
    let asked = selection::selection(&args.selection.which);
    let Question::Spans(spans) = question else {
        return session.answer(&asked, question);
    };
    if !args.selection.with.holders || !spans.by.is_empty() {
        return session.answer(&asked, question);
    }
    let by = |keys: [&str; 2]| {
        let question = Question::Spans(SpanQuestion {
            by: keys.map(str::to_owned).to_vec(),
            ..spans.clone()
        });
        session.answer(&asked, &question)
    };
    let [holder, candidate] = HOLDER_KEYS;
    by(holder).or_else(|error| match &error {
        ReportError::Question(QuestionError::NoKey { .. }) => by(candidate).map_err(|_| error),
        _ => Err(error),
    })
}

/// Converts the options to the analysis to run.
fn question(args: &ReportArgs, asked: ReportQuestion) -> anyhow::Result<Question> {
    refuse(args, asked)?;
    Ok(if args.call_graph.is_some() {
        Question::Stacks {
            weight: stack_weight(args)?,
            of: stack_kind(args.stacks),
        }
    } else if !args.span.is_empty() {
        Question::Spans(spans(args, &args.span)?)
    } else if let Some(name) = &args.hist {
        Question::Histogram {
            of: subject(args, name)?,
            scale: scale(args.scale.unwrap_or_default()),
        }
    } else if let Some(name) = &args.heatmap {
        Question::Heatmap(subject(args, name)?)
    } else if let Some(interval) = &args.rate {
        Question::Rate {
            interval: nanoseconds("--rate", interval)?,
            sort: [&*args.sort, &*args.by].concat(),
        }
    } else if args.sort.is_empty() {
        Question::Summary
    } else {
        Question::Groups {
            sort: args.sort.clone(),
            value: args.value.clone(),
            top: args.top,
            order: args.order.unwrap_or_default().0.of_numbers()?,
        }
    })
}

/// Converts the options that say what stacks weigh.
fn stack_weight(args: &ReportArgs) -> anyhow::Result<StackWeight> {
    Ok(match (&*args.span, &args.value) {
        ([], Some(value)) => StackWeight::Sum(value.clone()),
        ([], None) => StackWeight::Hits,
        (named, _) => StackWeight::Spans(spans(args, named)?),
    })
}

/// Converts the value of `--hist` or `--heatmap`.
fn subject(args: &ReportArgs, name: &str) -> anyhow::Result<Subject> {
    Ok(match span_subject(name) {
        Some(SpanSubject { name, measured }) => Subject::Span(SpanQuestion {
            measured,
            ..spans(args, &[name.to_owned()])?
        }),
        None => Subject::Argument(name.to_owned()),
    })
}

/// What `--hist span:NAME` and `--hist span.blocked:NAME` are of.
struct SpanSubject<'a> {
    /// Name of the spans.
    name: &'a str,
    /// Which part of their time; `None` for their duration.
    measured: Option<TimePart>,
}

fn span_subject(subject: &str) -> Option<SpanSubject<'_>> {
    let (of, name) = subject.strip_prefix("span")?.split_once(':')?;
    let measured = match of.strip_prefix('.') {
        Some(part) => Some(TimePart::named(part)?),
        None if of.is_empty() => None,
        None => return None,
    };
    Some(SpanSubject { name, measured })
}

/// Converts the span options.
fn spans(args: &ReportArgs, named: &[String]) -> anyhow::Result<SpanQuestion> {
    Ok(SpanQuestion {
        spans: named.to_vec(),
        key: args.key.clone(),
        by: args.by.clone(),
        min: least_ns(args.min.as_ref(), args.selection.which.span_least)?,
        top: match args.format {
            OutputFormat::Text => args.top.or(Some(TEXT_GROUPS)),
            _ => args.top,
        },
        order: args.order.unwrap_or_default().0,
        least_parts: args.selection.which.span_parts,
        measured: None,
    })
}

same!(fn scale(HistScale) -> Scale: Auto Log2 Linear Value);

/// The questions to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportQuestion {
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

use ReportQuestion::{
    Groups, HeatMapOfArgument, HeatMapOfSpans, HistogramOfArgument, HistogramOfSpans, Rate, Spans,
    Stacks, StacksOfSpans, Summary,
};

/// An option, and the questions on whose answer it has an effect.
struct QuestionOption {
    name: &'static str,
    is_given: fn(&ReportArgs) -> bool,
    questions: &'static [ReportQuestion],
    /// What gives it an effect where another question would be another answer.
    addition: Option<Addition>,
}

/// An option without which another one has no effect on the answers to these questions.
struct Addition {
    option: &'static str,
    questions: &'static [ReportQuestion],
}

impl QuestionOption {
    const fn with(self, option: &'static str, questions: &'static [ReportQuestion]) -> Self {
        Self {
            addition: Some(Addition { option, questions }),
            ..self
        }
    }
}

const fn option(
    name: &'static str,
    is_given: fn(&ReportArgs) -> bool,
    questions: &'static [ReportQuestion],
) -> QuestionOption {
    QuestionOption {
        name,
        is_given,
        questions,
        addition: None,
    }
}

const OF_SPANS: &[ReportQuestion] = &[Spans, HistogramOfSpans, HeatMapOfSpans];
const MATCHED: &[ReportQuestion] = &[Spans, HistogramOfSpans, HeatMapOfSpans, StacksOfSpans];
const BY: &[ReportQuestion] = &[Spans, HistogramOfSpans, HeatMapOfSpans, Rate];
const TOP: &[ReportQuestion] = &[Groups, Spans, HistogramOfSpans, HeatMapOfSpans];
const MOMENTS: &[ReportQuestion] = &[Spans, HeatMapOfSpans, HeatMapOfArgument];
const FOLDED: &[ReportQuestion] = &[
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
    option("--order without --by", is_unordered, &[Groups]).with("--by KEYS", OF_SPANS),
    option("--order without --value", is_plain_order, OF_SPANS).with("--value ARG", &[Groups]),
    option("--top", |args| args.top.is_some(), TOP),
    option("--top without --by", is_top_of_all, &[Groups, Spans]).with("--by KEYS", OF_SPANS),
    option("--top without --by in CSV", is_top_of_csv, &[Groups]).with("--by KEYS", OF_SPANS),
    option("--clock", |args| args.clock, MOMENTS),
    option("--width", |args| args.width.width.is_some(), FOLDED),
    option(
        "--no-inline",
        is_without_functions,
        &[Stacks, StacksOfSpans],
    ),
];

fn has_least(args: &ReportArgs) -> bool {
    args.selection.which.asks_for_spans()
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

impl ReportQuestion {
    /// What the options ask.
    fn new(args: &ReportArgs) -> Self {
        let is_span = |subject: &str| span_subject(subject).is_some();
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
    fn has_spans(self) -> bool {
        MATCHED.contains(&self) || self == Summary
    }

    /// What asks it, in messages.
    const fn name(self) -> &'static str {
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
    fn check(self, args: &ReportArgs) -> Result<(), Usage> {
        let is_idle =
            |option: &&QuestionOption| (option.is_given)(args) && !option.questions.contains(&self);
        let Some(option) = OPTIONS.iter().find(is_idle) else {
            return Ok(());
        };
        let QuestionOption {
            name,
            questions,
            addition,
            ..
        } = option;
        let added = addition.as_ref();
        let advice = match added.filter(|added| added.questions.contains(&self)) {
            Some(added) => format!("add {}", added.option),
            None => {
                let others: Vec<&str> = questions.iter().map(|other| other.name()).collect();
                format!("use it with {}", others.join(", "))
            }
        };
        Err(Usage(format!(
            "{name} has no effect on {}: {advice}",
            self.name()
        )))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    /// What is refused is answered with the option that is named, beside those that were given.
    #[test]
    fn advice_goes_with_what_was_asked() {
        for (words, advice) in [
            ("--span query --order p99", "--by comm"),
            ("--span query --top 3 --format csv", "--by comm"),
            ("--hist span:query --order p99", "--by comm"),
            ("--hist span:query --top 3", "--by comm"),
            ("--sort comm --order p99", "--value arg1"),
        ] {
            let checked = |words: String| {
                let words = format!("usdtrec report {words}");
                let cli = Cli::try_parse_from(words.split(' ')).expect("options go together");
                let Command::Report(args) = cli.command else {
                    unreachable!("{words}");
                };
                ReportQuestion::new(&args).check(&args)
            };
            let option = advice.split(' ').next().unwrap_or_default();
            let refused = checked(words.to_owned()).expect_err(words);
            let added = format!(": add {option} ");
            assert!(refused.0.contains(&added), "{refused}");
            assert_eq!(checked(format!("{words} {advice}")), Ok(()));
        }
    }
}
