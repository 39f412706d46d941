//! `usdtrec flame`.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::flame::{self, FlameFormat, FlameOptions};
use usdtrec_report::question::{SpanQuestion, StackWeight};

use super::print;
use super::selection::{self, Extent};
use crate::cli::{FlameArgs, stack_kind};
use crate::unfinished_file::UnfinishedFile;
use crate::units::least_ns;

/// Runs the verb.
pub(crate) fn run(args: &FlameArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let with = &args.selection.with;
    let least = least_ns(args.min.as_ref(), args.selection.which.span_least)?;
    print::refuse_parts(&args.selection.which, "stacks")?;
    if args.span.is_empty() && least == 0 {
        print::refuse_key(&args.key)?;
    }
    if let [a, b] = &*args.diff {
        return diff(args, a, b, buildid_dir);
    }
    let texts = [&args.value, &args.selection.which.filter];
    let texts = texts.into_iter().flatten().map(String::as_str);
    selection::refuse_unused_with(with, texts, "flame graphs")?;
    let options = FlameOptions {
        weight: weight(args, least),
        of: stack_kind(args.stacks),
        format: format(&args.output)?,
    };
    let extent = Extent::for_spans(matches!(options.weight, StackWeight::Spans(_)));
    let session = selection::open(&args.selection, extent, buildid_dir)?;
    selection::refuse_input(&session, &args.output)?;
    let asked = selection::selection(&args.selection.which);
    let mut picture = Vec::new();
    let notices = flame::print(&session, &asked, &options, &mut picture)?;
    write(&args.output, &picture)?;
    selection::print_faults(&session, &notices);
    Ok(ExitCode::SUCCESS)
}

/// Draws what differs between two traces.
fn diff(
    args: &FlameArgs,
    a: &Path,
    b: &Path,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let options = FlameOptions {
        of: stack_kind(args.stacks),
        format: format(&args.output)?,
        ..FlameOptions::default()
    };
    let which = &args.selection.which;
    let inline = args.selection.inline;
    let a = selection::open_file(a, which, inline, Extent::Part, buildid_dir)?;
    let b = selection::open_file(b, which, inline, Extent::Part, buildid_dir)?;
    for session in [&a, &b] {
        selection::refuse_input(session, &args.output)?;
    }
    let mut picture = Vec::new();
    let asked = selection::selection(which);
    let notices = flame::print_diff(&a, &b, &asked, &options, &mut picture)?;
    write(&args.output, &picture)?;
    for (session, notices) in [a, b].iter().zip(&notices) {
        selection::print_faults(session, notices);
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the picture. An error leaves what was there before.
fn write(path: &Path, picture: &[u8]) -> anyhow::Result<()> {
    let written = || -> io::Result<()> {
        let mut file = UnfinishedFile::create(path)?;
        file.file().write_all(picture)?;
        file.finish(path)
    };
    written().with_context(|| format!("cannot write {}", shown(path)))
}

/// The format that a file's name says.
fn format(path: &Path) -> anyhow::Result<FlameFormat> {
    match path.extension().and_then(OsStr::to_str) {
        Some("svg") => Ok(FlameFormat::Svg),
        Some("html") => Ok(FlameFormat::Html),
        _ => anyhow::bail!(
            "{}: expected a name that ends with .svg or .html",
            shown(path)
        ),
    }
}

/// Converts the options that say what stacks weigh. `least` is the duration of the shortest spans, ns.
fn weight(args: &FlameArgs, least: u64) -> StackWeight {
    let spans = print::spans_or_all(&args.span, least > 0);
    if !spans.is_empty() {
        return StackWeight::Spans(SpanQuestion {
            spans,
            key: args.key.clone(),
            min: least,
            ..SpanQuestion::default()
        });
    }
    let value = args.value.clone();
    value.map_or(StackWeight::Hits, StackWeight::Sum)
}
