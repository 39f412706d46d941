//! `usdtrec import`: lines of `bpftrace -f json`.

mod bounded_lines;
mod bpftrace;
mod counts;
mod event;
mod raw;
mod shapes;
mod trace_maker;

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, stdin};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use usdtrec_format::escape::shown;

use self::bounded_lines::BoundedLines;
use self::counts::Counts;
use self::event::{BadLine, ParsedLine};
use self::shapes::Shapes;
use self::trace_maker::TraceMaker;
use crate::cli::ImportArgs;
use crate::terminal::inform;
use crate::unfinished_file::UnfinishedFile;

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let name = shown(&args.input).to_string();
    let input = open(&args.input).with_context(|| name.clone())?;
    let learned = learn(&name, &input).with_context(|| name.clone())?;
    learned.counts.print(&name);
    if learned.counts.events == 0 {
        bail!(
            "{name}: expected lines of bpftrace -f json with events (see docs/guides/import.md), found {}",
            match learned.counts.bad {
                0 => "none".to_owned(),
                bad => format!("{bad} lines of other forms"),
            }
        );
    }
    write(args, &input, learned)?;
    Ok(ExitCode::SUCCESS)
}

/// Facts about the input from the first pass.
#[derive(Debug, Default)]
struct Learned {
    shapes: Shapes,
    counts: Counts,
}

/// Reads the input for the first time.
fn learn(name: &str, input: &File) -> std::io::Result<Learned> {
    let Learned {
        mut shapes,
        mut counts,
    } = Learned::default();
    read(input, |number, line| match line {
        Ok(ParsedLine::Event(event)) if shapes.add(&event) => counts.events += 1,
        Ok(ParsedLine::Event(_)) => counts.bad(name, number, &BadLine::TooManyShapes),
        Ok(other) => counts.other(&other),
        Err(error) => counts.bad(name, number, &error),
    })?;
    Ok(Learned { shapes, counts })
}

/// Opens the input, or copies standard input into a file without a name, because it is read twice.
fn open(path: &Path) -> anyhow::Result<File> {
    if path.as_os_str() != "-" {
        let file = File::open(path)?;
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        bail!("expected a regular file, or - for standard input");
    }
    let mut copy = tempfile::tempfile()?;
    std::io::copy(&mut stdin().lock(), &mut copy)?;
    copy.seek(SeekFrom::Start(0))?;
    Ok(copy)
}

/// Reads all lines from the beginning; numbers count from 1.
fn read(
    mut input: &File,
    mut take: impl FnMut(u64, Result<ParsedLine<'_>, BadLine>),
) -> std::io::Result<()> {
    input.seek(SeekFrom::Start(0))?;
    let mut lines = BoundedLines::new(BufReader::new(input));
    let mut text = String::new();
    while lines.advance()? {
        let line = lines.line();
        let line = line.and_then(|line| bpftrace::parse(line, &mut text));
        take(lines.number(), line);
    }
    Ok(())
}

/// Writes the trace of the events whose shapes are known.
fn write(args: &ImportArgs, input: &File, learned: Learned) -> anyhow::Result<()> {
    let Learned { shapes, counts } = learned;
    let path = || shown(&args.output).to_string();
    let mut unfinished = UnfinishedFile::create_trace(&args.output).with_context(path)?;
    let file = unfinished.file().try_clone().with_context(path)?;
    let mut writing = TraceMaker::begin(file, shapes, counts.losses()).with_context(path)?;
    let mut failed = Ok(());
    read(input, |_, line| {
        if let (Ok(()), Ok(ParsedLine::Event(event))) = (&failed, &line) {
            failed = writing.put(event);
        }
    })?;
    failed.with_context(path)?;
    let samples = writing.finish().with_context(path)?;
    let named = unfinished.finish_and_keep_old(&args.output);
    named.with_context(path)?;
    inform(format_args!(
        "[ usdtrec import: {samples} events to {} ]",
        path()
    ));
    Ok(())
}
