//! `--span` of `stat` and `top`: spans that are aggregated in the kernel.

use usdtrec_record::{MeasuredArgument, SlowSpans};

use crate::cli::{CaptureArgs, SpanStatArgs};
use crate::terminal::Usage;
use crate::units::least_ns;

/// The spans that are aggregated; `None` for none.
///
/// # Errors
/// [`Usage`] if a filter asks for spans and there are none.
pub(super) fn asked(
    args: &SpanStatArgs,
    capture: &CaptureArgs,
) -> anyhow::Result<Option<SlowSpans>> {
    if args.span.is_empty() {
        Usage::ensure(
            capture.span_least == 0,
            "--filter 'span > TIME' needs --span",
        )?;
        return Ok(None);
    }
    Ok(Some(SlowSpans {
        spans: args.span.clone(),
        key: args.key.clone(),
        least: least_ns(args.min.as_ref(), capture.span_least)?,
        is_required: true,
    }))
}

/// What is measured, with the durations of spans if there are any: they come last.
pub(super) fn with_durations(
    mut measured: Vec<MeasuredArgument>,
    spans: Option<&SlowSpans>,
) -> Vec<MeasuredArgument> {
    measured.extend(spans.map(|_| MeasuredArgument::duration()));
    measured
}
