//! `usdtrec list`.

mod describe;
mod json;
mod listing;
mod running;
mod text;

#[cfg(feature = "record")]
use std::io;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use usdtrec_buildid_cache::IndexedProbe;
use usdtrec_buildid_cache::elf::FileState;
use usdtrec_format::Pattern;
use usdtrec_format::escape::shown;

#[cfg(feature = "record")]
pub(super) use self::listing::warn_about_unread;
use self::listing::{Listing, choose};
#[cfg(feature = "record")]
pub(super) use self::running::{Matching, container_of_process, matching};
use super::selection;
#[cfg(feature = "record")]
use crate::cli::PagerArgs;
use crate::cli::{ListArgs, ListFormat};
use crate::terminal::say;
use crate::text_room::{self, Fold};
use crate::{schemas, shell};

/// Runs the verb.
pub(crate) fn run(args: &ListArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let patterns = patterns(&args.patterns)?;
    let dir = selection::cache_dir(buildid_dir);
    let mut listing = Listing::default();
    listing.gather(args, buildid_dir)?;
    listing.read_named(&patterns)?;
    if let Some(running) = listing.running.as_ref().filter(|_| !args.verbose) {
        let files = running::matching(running, patterns.iter())?;
        running::print(args, &files)?;
        return Ok(listing.print_nothing(args, files.is_empty()));
    }
    let found = choose(&listing.binaries, &patterns)?;
    let mut out = BufWriter::new(selection::paged_output(args.pager)?);
    match args.format {
        ListFormat::Json if args.verbose => {
            let schemas = schemas::in_force(&args.schema)?;
            json::print(
                &mut out,
                &found,
                Some(&describe::describe(
                    &found,
                    &listing,
                    &schemas,
                    dir.as_deref(),
                )),
            )?
        }
        ListFormat::Json => json::print(&mut out, &found, None)?,
        ListFormat::Text if args.verbose => {
            let schemas = schemas::in_force(&args.schema)?;
            let described = describe::describe(&found, &listing, &schemas, dir.as_deref());
            let mut folded = Fold::new(&mut out, text_room::fold_columns(args.width.width));
            text::explain(&mut folded, &found, &described)?;
            folded.flush()?;
        }
        ListFormat::Text => text::print(&mut out, &found)?,
    }
    out.flush()?;
    drop(out);
    if args.format == ListFormat::Text && !args.verbose {
        warn_about_changed(&found);
    }
    Ok(listing.print_nothing(args, found.is_empty()))
}

/// `usdtrec` without a verb: what runs here and has probes, and what to type next.
#[cfg(feature = "record")]
pub(crate) fn run_without_verb() -> anyhow::Result<ExitCode> {
    let args = ListArgs {
        all: true,
        pager: PagerArgs { no_pager: true },
        ..ListArgs::default()
    };
    let mut listing = Listing::default();
    listing.gather(&args, None)?;
    let running = listing.running.unwrap_or_default();
    let files = running::matching(&running, std::iter::empty())?;
    running::print(&args, &files)?;
    print_next_commands(&files)?;
    Ok(ExitCode::SUCCESS)
}

/// Parses patterns as `perf list` does: without a colon or a glob, a pattern matches any part of a name; `sdt` matches every probe.
pub(in crate::cmd) fn patterns(texts: &[String]) -> anyhow::Result<Vec<Pattern>> {
    let texts = texts.iter().map(|text| match text.as_str() {
        "sdt" => "*".to_owned(),
        text if text.contains([':', '*', '?', '[', '@']) => text.to_owned(),
        text => format!("*{}*", text.strip_prefix("sdt_").unwrap_or(text)),
    });
    texts.map(|text| Ok(Pattern::parse(&text)?)).collect()
}

/// Warns about the files that are not listed because they changed since they were indexed.
fn warn_about_changed(found: &[IndexedProbe<'_>]) {
    let mut seen: Vec<&Path> = Vec::new();
    let indexed = found.iter().map(|found| found.indexed);
    for indexed in indexed.filter(|indexed| !indexed.is_current()) {
        let path = indexed.binary.path.as_path();
        if seen.contains(&path) {
            continue;
        }
        seen.push(path);
        let (shown, word) = (shown(path), shell::path(path));
        match indexed.state {
            FileState::Gone => say(format_args!(
                "usdtrec: skipped {shown}: gone since it was indexed; to remove its entry: usdtrec buildid-cache --purge {word}"
            )),
            _ => say(format_args!(
                "usdtrec: skipped {shown}: changed since it was indexed; to index it again: usdtrec buildid-cache --update {word}"
            )),
        }
    }
}

/// Prints a command that records the file that most processes run, and where the other commands are.
#[cfg(feature = "record")]
fn print_next_commands(files: &[Matching<'_>]) -> io::Result<()> {
    let mut out = text_room::stdout();
    let program = match rustix::process::geteuid().is_root() {
        true => "usdtrec".to_owned(),
        false => shell::sudo(),
    };
    match busiest(files) {
        Some(file) => {
            let what = file.for_record();
            writeln!(out, "\nTo record what runs, for example:")?;
            writeln!(out, "  {program} record {what} --duration 10s")?;
            writeln!(out, "  usdtrec report")?;
        }
        None => {
            writeln!(
                out,
                "No process that you may see runs code with USDT probes. To record a program:"
            )?;
            writeln!(out, "  {program} record -e '*:*@./PROGRAM' -- ./PROGRAM")?;
            writeln!(out, "  usdtrec report")?;
        }
    }
    writeln!(
        out,
        "To see it on probes of its own: {program} demo. All commands: usdtrec --help"
    )?;
    out.flush()
}

/// The file that most processes run, of those that are still at their paths if there are any.
#[cfg(feature = "record")]
fn busiest<'f>(files: &'f [Matching<'f>]) -> Option<&'f Matching<'f>> {
    let rank = |file: &&Matching<'_>| (!file.is_deleted(), file.running.processes.len());
    files.iter().max_by_key(rank)
}
