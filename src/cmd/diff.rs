//! `usdtrec diff`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use usdtrec_format::escape::escape;
use usdtrec_format::{LeastParts, counted};
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::script::SpanRowQuestion;

use super::print;
use super::report::colours;
use super::selection::{self, Extent};
use crate::advice::HINTS;
use crate::cli::{DiffArgs, PagerArgs};
use crate::terminal::{Usage, fail, is_closed_pipe, say};
use crate::text_room;
use crate::units::least_ns;

/// The exit status of errors where 1 means that something differs, as of diff(1) and cmp(1).
const TROUBLE: u8 = 2;

/// Runs the verb.
pub(crate) fn run(args: &DiffArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let outcome = compare(args, buildid_dir);
    match (outcome, args.fail_above) {
        (Err(error), Some(_)) => {
            fail(&error);
            Ok(ExitCode::from(TROUBLE))
        }
        (outcome, _) => outcome,
    }
}

fn compare(args: &DiffArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    print::refuse_parts(&args.which, "diff")?;
    let options = DiffOptions {
        spans: SpanRowQuestion {
            spans: args.span.clone(),
            key: args.key.clone(),
            least: least_ns(args.min.as_ref(), args.which.span_least)?,
            least_parts: LeastParts::NONE,
        },
        by: args.by.clone(),
        min: args.percent_limit,
        all: args.all,
        format: selection::format(args.format),
        colours: colours(args.color),
        hints: HINTS,
        columns: text_room::columns(args.width.width),
    };
    let inline = args.inline;
    Usage::ensure(
        !inline.no_inline || args.by.iter().any(|key| selection::has_functions(key)),
        "--no-inline has no effect on diff without stacks: use it with --by stack, caller or sym",
    )?;
    let a = selection::open_file(&args.a, &args.which, inline, Extent::Whole, buildid_dir)?;
    let b = selection::open_file(&args.b, &args.which, inline, Extent::Whole, buildid_dir)?;
    let asked = selection::selection(&args.which);
    let mut text = Vec::new();
    let comparison = diff::print(&a, &b, &asked, &options, &mut text)?;
    // Leaving a pager ends the process with success, whatever differs.
    let pager = PagerArgs {
        no_pager: args.pager.no_pager || args.fail_above.is_some(),
    };
    let mut out = selection::paged_output(pager)?;
    let written = out.write_all(&text).and_then(|()| out.flush());
    // A reader that has seen enough does not change what was found.
    let error = written.err().map(anyhow::Error::from);
    if let Some(error) = error.filter(|error| !is_closed_pipe(error)) {
        return Err(error);
    }
    out.finish();
    for (session, side) in [(&a, &comparison.a), (&b, &comparison.b)] {
        selection::print_faults(session, &side.notices);
    }
    let Some(percent) = args.fail_above else {
        return Ok(ExitCode::SUCCESS);
    };
    let beyond = comparison.beyond(percent);
    match beyond
        .context("nothing can be compared: --fail-above cannot say whether anything differs")?
    {
        0 => {
            let names = comparison.spans_of_one();
            anyhow::ensure!(
                names.is_empty(),
                "only one of both traces has spans {}: --fail-above cannot say whether they differ",
                escape(&names.join(", "))
            );
            Ok(ExitCode::SUCCESS)
        }
        beyond => {
            let figures = counted(beyond, "figure");
            say(format_args!(
                "usdtrec: {figures} beyond noise by more than {percent}%"
            ));
            Ok(ExitCode::FAILURE)
        }
    }
}
