//! `usdtrec report`.

use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use usdtrec_report::report::{
    Question, ReportOptions, Scale, SpanOrder, SpanQuestion, Subject, report,
};

use super::selection;
use crate::cli::{Colour, HistScale, Order, ReportArgs};
use crate::units::parse_duration;
use crate::{progress, terminal};

/// Groups, and slowest spans, that `--span` shows if nothing is said.
const TOP: usize = 10;

/// Runs the verb.
pub(crate) fn run(args: &ReportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let options = ReportOptions {
        question: question(args)?,
        show_samples: args.show_nr_samples,
        human: args.human,
        format: selection::format(args.format),
        colours: colours(args.color),
    };
    let session = selection::open(&args.selection, buildid_dir)?;
    let asked = selection::selection(&args.selection.which);
    let mut out = selection::output()?;
    let notices = progress::shown(&session, || report(&session, &asked, &options, &mut out))?;
    selection::tell(&args.selection.input, &notices);
    if let Some(tail) = session.trace().uncommitted() {
        terminal::warn(&args.selection.input, tail);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether there are colours.
pub(super) fn colours(when: Colour) -> bool {
    match when {
        Colour::Auto => AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        Colour::Always => true,
        Colour::Never => false,
    }
}

/// What is asked.
fn question(args: &ReportArgs) -> anyhow::Result<Question> {
    Ok(if let Some(span) = &args.span {
        Question::Spans(spans(args, span)?)
    } else if let Some(of) = &args.hist {
        Question::Histogram {
            of: subject(args, of)?,
            scale: scale(args.scale),
        }
    } else if let Some(of) = &args.heatmap {
        Question::Heatmap(subject(args, of)?)
    } else if let Some(interval) = &args.rate {
        Question::Rate {
            interval: nanoseconds("--rate", interval)?,
            sort: args.sort.clone(),
        }
    } else if args.sort.is_empty() {
        Question::Summary
    } else {
        Question::Groups {
            sort: args.sort.clone(),
            value: args.value.clone(),
            top: args.top,
        }
    })
}

/// Numbers to look at.
fn subject(args: &ReportArgs, of: &str) -> anyhow::Result<Subject> {
    Ok(match of.strip_prefix("span:") {
        Some(span) => Subject::Span(spans(args, span)?),
        None => Subject::Argument(of.to_owned()),
    })
}

/// What is asked of spans.
fn spans(args: &ReportArgs, span: &str) -> anyhow::Result<SpanQuestion> {
    let min = args.min.as_ref();
    let min = min.map(|text| nanoseconds("--min", text)).transpose()?;
    Ok(SpanQuestion {
        span: span.to_owned(),
        key: args.key.clone(),
        by: args.by.clone(),
        min: min.unwrap_or(0),
        top: args.top.unwrap_or(TOP),
        order: match args.order {
            Order::Count => SpanOrder::Count,
            Order::Total => SpanOrder::Total,
            Order::Mean => SpanOrder::Mean,
            Order::P50 => SpanOrder::P50,
            Order::P90 => SpanOrder::P90,
            Order::P99 => SpanOrder::P99,
            Order::P999 => SpanOrder::P999,
            Order::Max => SpanOrder::Max,
        },
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

fn nanoseconds(option: &str, text: &str) -> anyhow::Result<u64> {
    let duration = parse_duration(option, text)?;
    Ok(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
