//! Conversion of the output options of `script` and `trace`.

use usdtrec_format::LeastParts;
use usdtrec_report::Format;
use usdtrec_report::script::{
    Field, FieldChoice, Fields, ScriptOptions, SpanRowQuestion, Template, TimeOrigin,
};

use super::selection;
use crate::cli::{
    ALL_SPANS, OutputFormat, PrintArgs, ScriptFormat, SpanArgs, Times, WhichArgs, WithArgs,
};
use crate::terminal::{self, Usage};
use crate::units::least_ns;

/// The spans that are named, or all of them if none is and slow ones are asked for.
pub(super) fn spans_or_all(named: &[String], are_slow: bool) -> Vec<String> {
    match named.is_empty() && are_slow {
        true => vec![ALL_SPANS.to_owned()],
        false => named.to_vec(),
    }
}

/// Converts the output options.
///
/// # Errors
/// [`Usage`] if options contradict each other.
pub(super) fn options(args: &PrintArgs) -> Result<ScriptOptions, Usage> {
    refuse(args)?;
    let fields = fields(args);
    let shown = fields.apply(Fields::TRACEPOINT);
    let is_text = matches!(args.format, ScriptFormat::Known(OutputFormat::Text));
    Usage::ensure(
        !is_text || !shown.has(Field::Symoff) || shown.has(Field::Sym),
        "-F symoff needs sym, after which it is printed: add sym",
    )?;
    Ok(ScriptOptions {
        fields,
        times: match (args.has(Times::Reltime), args.has(Times::Deltatime)) {
            (true, _) => TimeOrigin::First,
            (_, true) => TimeOrigin::Previous,
            _ => TimeOrigin::Clock,
        },
        nanoseconds: args.has(Times::Ns),
        format: match args.format {
            ScriptFormat::Known(format) => selection::format(format),
            ScriptFormat::Template(_) => Format::Text,
        },
        template: template(args)?,
        ..ScriptOptions::default()
    })
}

/// Refuses arguments of other events that are neither printed nor selected by.
pub(super) fn refuse_unused_with(
    with: &WithArgs,
    filter: Option<&str>,
    args: &PrintArgs,
) -> Result<(), Usage> {
    match &args.format {
        ScriptFormat::Template(template) if !template.shows_all_arguments() => {
            let texts = template.arguments().chain(filter);
            selection::refuse_unused_with(with, texts, "a template")
        }
        ScriptFormat::Template(_) => Ok(()),
        ScriptFormat::Known(_) if fields(args).apply(Fields::DATA).has(Field::Args) => Ok(()),
        ScriptFormat::Known(_) => {
            selection::refuse_unused_with(with, filter.into_iter(), "lines without args")
        }
    }
}

/// The spans that are printed instead of events; `None` for events. `of_filter` is the duration of the shortest ones that a filter asks for, ns, and
/// `least_parts` what it asks for of the parts of their time.
///
/// # Errors
/// [`Usage`] if an option does not go with spans, or needs them.
pub(super) fn spans(
    args: &SpanArgs,
    of_filter: u64,
    least_parts: LeastParts,
    print: &PrintArgs,
) -> anyhow::Result<Option<SpanRowQuestion>> {
    let least = least_ns(args.min.as_ref(), of_filter)?;
    let are_slow = least > 0 || least_parts.first().is_some();
    if args.span.is_empty() && !are_slow {
        refuse_key(&args.key)?;
        return Ok(None);
    }
    let is_text = matches!(
        print.format,
        ScriptFormat::Known(OutputFormat::Text) | ScriptFormat::Template(_)
    );
    Usage::ensure(
        is_text || print.times.is_empty(),
        "--times has no effect on spans as JSON and CSV, which have the times of begin and end",
    )?;
    Ok(Some(SpanRowQuestion {
        spans: spans_or_all(&args.span, are_slow),
        key: args.key.clone(),
        least,
        least_parts,
    }))
}

/// Refuses a filter for parts of the time of spans where it has no effect.
pub(super) fn refuse_parts(which: &WhichArgs, what: &str) -> Result<(), Usage> {
    match which.span_parts.first() {
        Some(part) => Err(Usage(format!(
            "--filter 'span.{} > TIME' has no effect on {what}: use it with report --span, script, and export of events and spans",
            part.spec().name
        ))),
        None => Ok(()),
    }
}

/// Refuses `--key` where there are no spans.
pub(super) fn refuse_key(key: &[String]) -> Result<(), Usage> {
    let refused = "--key has no effect without --span: it says how spans are matched";
    Usage::ensure(key.is_empty(), refused)
}

/// Refuses options that would have no effect, and times since two moments.
fn refuse(args: &PrintArgs) -> Result<(), Usage> {
    let since = args.has(Times::Reltime) || args.has(Times::Deltatime);
    let origins = [
        (Times::Clock, "clock"),
        (Times::Reltime, "reltime"),
        (Times::Deltatime, "deltatime"),
    ];
    let mut origins = origins.iter().filter(|(item, _)| args.has(*item));
    if let (Some((_, one)), Some((_, other))) = (origins.next(), origins.next()) {
        return Err(Usage(format!(
            "--times: {one} and {other} contradict each other: use only one of clock, reltime and deltatime"
        )));
    }
    let reason = match &args.format {
        ScriptFormat::Template(template) if since && !template.shows_time() => {
            "--times reltime and deltatime change {time}, which the template does not use: use {reltime} or {deltatime} in the template"
        }
        _ => return Ok(()),
    };
    Err(Usage(reason.to_owned()))
}

/// The template, if `--format` is one. It determines the fields, so that -F is refused.
fn template(args: &PrintArgs) -> Result<Option<Template>, Usage> {
    match &args.format {
        ScriptFormat::Known(_) => Ok(None),
        ScriptFormat::Template(_) if !args.fields.is_empty() => Err(Usage(
            "a template for --format determines the fields: add them to the template ({tod}) instead of -F"
                .to_owned(),
        )),
        ScriptFormat::Template(template) => Ok(Some(template.clone())),
    }
}

/// Combines all `-F` options in order. A plain list replaces what comes before it; `+` and `-` change it.
fn fields(args: &PrintArgs) -> FieldChoice {
    if args.fields.iter().skip(1).any(FieldChoice::is_list) {
        terminal::say("usdtrec: -F is given several times; the last list of fields is used");
    }
    let choices = args.fields.iter().cloned();
    choices.reduce(FieldChoice::then).unwrap_or_default()
}
