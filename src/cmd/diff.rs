//! `usdtrec diff`.

use std::path::Path;
use std::process::ExitCode;

use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::script::SpanRowQuestion;

use super::report::{colours, has_functions, plain_numbers};
use super::selection::{self, Extent};
use crate::advice::HINTS;
use crate::cli::{DiffArgs, OutputFormat};
use crate::terminal::Usage;
use crate::text_room;
use crate::units::least_ns;

/// Runs the verb.
pub(crate) fn run(args: &DiffArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    plain_numbers(args.human, args.format)?;
    anyhow::ensure!(
        !args.all || args.format == OutputFormat::Text,
        "--all has no effect on JSON and CSV, which always include changes within noise"
    );
    let options = DiffOptions {
        spans: SpanRowQuestion {
            spans: args.span.clone(),
            key: args.key.clone(),
            least: least_ns(args.min.as_ref(), args.which.span_least)?,
        },
        by: args.by.clone(),
        min: args.percent_limit,
        all: args.all,
        human: args.human,
        format: selection::format(args.format),
        colours: colours(args.color),
        hints: HINTS,
        columns: text_room::columns(args.width.width),
    };
    Usage::ensure(
        args.width.width.is_none() || args.format == OutputFormat::Text,
        "--width has no effect on JSON and CSV",
    )?;
    let inline = args.inline;
    Usage::ensure(
        !inline.no_inline || args.by.iter().any(|key| has_functions(key)),
        "--no-inline has no effect on diff without stacks: use it with --by stack, caller or sym",
    )?;
    let a = selection::open_file(&args.a, &args.which, inline, Extent::Whole, buildid_dir)?;
    let b = selection::open_file(&args.b, &args.which, inline, Extent::Whole, buildid_dir)?;
    let asked = selection::selection(&args.which);
    let mut out = selection::paged_output(args.pager)?;
    let notices = diff::print(&a, &b, &asked, &options, &mut out)?;
    out.finish();
    for (session, notices) in [a, b].iter().zip(&notices) {
        selection::print_faults(session, notices);
    }
    Ok(ExitCode::SUCCESS)
}
