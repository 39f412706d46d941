//! `usdtrec report`.

mod trigger_head;

use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use usdtrec_report::answer::Answer;
use usdtrec_report::question::{Question, Scale, SpanQuestion, StackWeight, Subject};
use usdtrec_report::report::{self, ReportOptions, StackStyle, TextRoom};
use usdtrec_report::{AnswerQuestions as _, QuestionError, ReportError, TraceSession, WallTimes};

use super::selection::{self, Extent};
use crate::advice::HINTS;
use crate::cli::{Colour, HOLDER_KEYS, HistScale, OutputFormat, ReportArgs, WithArgs, stack_kind};
use crate::terminal::Usage;
use crate::units::{least_ns, nanoseconds};
use crate::{progress, text_room};

/// Groups of spans that text shows if nothing is said; other formats have all.
const TEXT_GROUPS: usize = 10;

/// Runs the verb.
pub(crate) fn run(args: &ReportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let question = question(args)?;
    let mut out = selection::paged_output(args.pager)?;
    let are_spans = match kind(args) {
        "the plain report" => true,
        kind => !args.span.is_empty() || kind.ends_with("span:NAME"),
    };
    let extent = Extent::for_spans(are_spans);
    let session = selection::open(&args.selection, extent, buildid_dir)?;
    let options = ReportOptions {
        stacks: match args.call_graph {
            Some(graph) => StackStyle::Tree(graph),
            None => StackStyle::Folded,
        },
        format: selection::format(args.format),
        colours: colours(args.color),
        hints: HINTS,
        times_of_day: times_of_day(args, &session),
        room: room(args, out.has_pager()),
    };
    let notices = progress::shown_until_output(&session, &mut out, |out| {
        let answer = answer(args, &session, &question)?;
        if kind(args) == "the plain report" && args.format == OutputFormat::Text {
            trigger_head::write(&session, out)?;
        }
        report::write(&answer, &options, out)?;
        Ok::<_, ReportError>(answer.into_notices())
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

/// The option that selects the analysis, as shown in messages.
fn kind(args: &ReportArgs) -> &'static str {
    let is_span = |subject: &Option<String>| {
        subject
            .as_ref()
            .is_some_and(|name| name.starts_with("span:"))
    };
    match args {
        _ if args.call_graph.is_some() => "--call-graph",
        _ if !args.span.is_empty() => "--span",
        _ if is_span(&args.hist) => "--hist span:NAME",
        _ if args.hist.is_some() => "--hist ARG",
        _ if is_span(&args.heatmap) => "--heatmap span:NAME",
        _ if args.heatmap.is_some() => "--heatmap ARG",
        _ if args.rate.is_some() => "--rate",
        _ if !args.sort.is_empty() => "--sort",
        _ => "the plain report",
    }
}

/// Refuses options that would have no effect.
fn refuse(args: &ReportArgs) -> anyhow::Result<()> {
    let kind = kind(args);
    let shows_spans = !args.span.is_empty() || kind.ends_with("span:NAME");
    anyhow::ensure!(
        shows_spans || args.selection.which.span_least == 0,
        "--filter: span > TIME has no effect on {kind} without --span"
    );
    anyhow::ensure!(
        args.width.width.is_none() || args.format == OutputFormat::Text,
        "--width has no effect on JSON and CSV"
    );
    anyhow::ensure!(
        args.width.width.is_none() || kind != "--sort",
        "--width has no effect on {kind}, whose lines are those of perf"
    );
    refuse_with(args, kind)?;
    let of_spans = ["--span", "--hist span:NAME", "--heatmap span:NAME"];
    let refuse = |given: bool, option: &str, with: &[&str]| {
        anyhow::ensure!(
            !given || with.contains(&kind),
            "{option} has no effect on {kind}: use it with {}",
            with.join(", ")
        );
        Ok(())
    };
    anyhow::ensure!(
        !args.clock || args.format == OutputFormat::Text,
        "--clock has no effect on JSON and CSV of reports, which have times of the trace's clock"
    );
    let with_moments = ["--span", "--heatmap span:NAME", "--heatmap ARG"];
    refuse(args.clock, "--clock", &with_moments)?;
    let is_of_stacks = args.call_graph.is_some();
    let mut keys = args.sort.iter().chain(&args.by);
    anyhow::ensure!(
        !args.selection.inline.no_inline || is_of_stacks || keys.any(|key| has_functions(key)),
        "--no-inline has no effect on {kind} without stacks: use it with --call-graph, or the keys stack, caller and sym"
    );
    selection::refuse_no_inline_of_scripts(args.selection.inline, args.stacks)?;
    if is_of_stacks {
        refuse_with_stacks(args, kind)?;
    } else {
        refuse(args.stacks.is_some(), "--stacks", &["--call-graph"])?;
        refuse(!args.key.is_empty(), "--key", &of_spans)?;
        refuse(args.min.is_some(), "--min", &of_spans)?;
        let values = ["--sort", "--call-graph"];
        refuse(args.value.is_some(), "--value", &values)?;
    }
    let grouped = [
        "--span",
        "--hist span:NAME",
        "--heatmap span:NAME",
        "--rate",
    ];
    refuse(!args.by.is_empty(), "--by", &grouped)?;
    let sorted = ["--sort", grouped[0], grouped[1], grouped[2]];
    refuse(args.order.is_some(), "--order", &sorted)?;
    let histograms = ["--hist span:NAME", "--hist ARG"];
    refuse(args.scale.is_some(), "--scale", &histograms)?;
    let topped = [
        "--sort",
        "--span",
        "--hist span:NAME",
        "--heatmap span:NAME",
    ];
    refuse(args.top.is_some(), "--top", &topped)?;
    let by = !args.by.is_empty();
    anyhow::ensure!(
        args.order.is_none() || by || kind == "--sort",
        "--order sorts groups of spans: it needs --by"
    );
    anyhow::ensure!(
        args.order.is_none() || kind != "--sort" || args.value.is_some(),
        "--order with --sort needs --value: without it, groups are sorted by their number of events"
    );
    anyhow::ensure!(
        args.top.is_none() || by || !kind.ends_with("span:NAME"),
        "--top with {kind} limits groups: it needs --by"
    );
    anyhow::ensure!(
        args.top.is_none()
            || by
            || kind != "--span"
            || args.format == OutputFormat::Text
            || args.format == OutputFormat::Json,
        "--top with --span in CSV limits groups: it needs --by"
    );
    anyhow::ensure!(
        kind != "--rate" || !by || args.sort.is_empty(),
        "--by and --sort have the same meaning with --rate: use only one of them"
    );
    Ok(())
}

/// Refuses arguments of other events that are not shown.
fn refuse_with(args: &ReportArgs, kind: &str) -> Result<(), Usage> {
    let WithArgs { with, holders } = &args.selection.with;
    let shown = match kind {
        "the plain report" => return Ok(()),
        // The slowest spans are shown with those of their begin, and groups are those of holders.
        "--span" => WithArgs {
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
    selection::refuse_unused_with(&shown, texts.map(String::as_str), kind)
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

/// Whether a key is of functions that may be inlined.
pub(super) fn has_functions(key: &str) -> bool {
    let key = key.strip_suffix(":native").unwrap_or(key);
    ["stack", "caller", "sym", "symbol"].contains(&key)
}

/// Refuses options that would have no effect on stacks.
fn refuse_with_stacks(args: &ReportArgs, kind: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.format == OutputFormat::Text,
        "{kind} is text: for JSON and CSV, use --sort stack, or --span with --by stack"
    );
    anyhow::ensure!(
        args.value.is_none() || args.span.is_empty(),
        "--value and --span both say what stacks weigh: use only one of them"
    );
    let of_spans = !args.key.is_empty() || args.min.is_some();
    anyhow::ensure!(
        !args.span.is_empty() || !of_spans,
        "--key and --min have no effect on {kind} without --span"
    );
    Ok(())
}

/// Converts the options to the analysis to run.
fn question(args: &ReportArgs) -> anyhow::Result<Question> {
    refuse(args)?;
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
    Ok(match name.strip_prefix("span:") {
        Some(span) => Subject::Span(spans(args, &[span.to_owned()])?),
        None => Subject::Argument(name.to_owned()),
    })
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
    })
}

const fn scale(scale: HistScale) -> Scale {
    match scale {
        HistScale::Auto => Scale::Auto,
        HistScale::Log2 => Scale::Log2,
        HistScale::Linear => Scale::Linear,
        HistScale::Value => Scale::Value,
    }
}
