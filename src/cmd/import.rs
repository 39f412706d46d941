//! `usdtrec import`.

mod bad_line;
mod event;
mod lines;
mod raw;
mod shapes;
mod writing;

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, stdin};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use usdtrec_format::escape::shown;

use self::bad_line::BadLine;
use self::event::ImportedEvent;
use self::lines::{Line, Lines};
use self::shapes::Shapes;
use self::writing::Writing;
use crate::cli::ImportArgs;
use crate::output;
use crate::terminal::say;

/// Number of bad lines that are shown.
const SHOWN: u64 = 10;

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let name = shown(&args.input).to_string();
    let mut input = open(&args.input).with_context(|| name.clone())?;
    let mut shapes = Shapes::default();
    let mut counts = Counts::default();
    read(&input, |number, line| match line {
        Ok(Line::Event(event)) => match shapes.learn(&event) {
            Ok(()) => counts.events += 1,
            Err(error) => counts.bad(&name, number, &error),
        },
        Ok(Line::Lost(lost)) => counts.lost = counts.lost.saturating_add(lost),
        Ok(Line::Other) => {}
        Ok(Line::Aggregate) => counts.aggregates += 1,
        Err(error) => counts.bad(&name, number, &error),
    })
    .with_context(|| name.clone())?;
    counts.print(&name);
    if counts.events == 0 {
        bail!(
            "{name}: expected lines of bpftrace -f json with events (see docs/guides/import.md), found {}",
            match counts.bad {
                0 => "none".to_owned(),
                bad => format!("{bad} lines of other forms"),
            }
        );
    }
    input
        .seek(SeekFrom::Start(0))
        .with_context(|| name.clone())?;
    write(args, &input, shapes, &counts)?;
    Ok(ExitCode::SUCCESS)
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

/// Reads all lines; numbers count from 1.
fn read(input: &File, mut take: impl FnMut(u64, Result<Line<'_>, BadLine>)) -> std::io::Result<()> {
    let mut lines = Lines::new(BufReader::new(input));
    while lines.advance()? {
        take(lines.number(), lines.line());
    }
    Ok(())
}

/// Writes the trace of the events whose shapes are known.
fn write(args: &ImportArgs, input: &File, shapes: Shapes, counts: &Counts) -> anyhow::Result<()> {
    let file = output::create(&args.output)?;
    let path = || shown(&args.output).to_string();
    let mut writing = Writing::begin(file, shapes, counts.lost).with_context(path)?;
    let mut failed = Ok(());
    read(input, |_, line| {
        if let (Ok(()), Ok(Line::Event(event))) = (&failed, &line) {
            failed = writing.put(event);
        }
    })?;
    failed.with_context(path)?;
    let samples = writing.finish().with_context(path)?;
    say(format_args!(
        "[ usdtrec import: {samples} events to {} ]",
        path()
    ));
    Ok(())
}

/// What the lines are.
#[derive(Debug, Default)]
struct Counts {
    events: u64,
    /// Lines that are not of a known form.
    bad: u64,
    /// Maps and histograms.
    aggregates: u64,
    /// Events that bpftrace lost.
    lost: u64,
}

impl Counts {
    fn bad(&mut self, name: &str, number: u64, error: &BadLine) {
        self.bad += 1;
        if self.bad <= SHOWN {
            say(format_args!("usdtrec: {name}: line {number}: {error}"));
        }
    }

    fn print(&self, name: &str) {
        let lines = |count| if count == 1 { "line is" } else { "lines are" };
        if self.bad > 0 {
            let (bad, are) = (self.bad, lines(self.bad));
            say(format_args!("usdtrec: {name}: {bad} {are} left out"));
        }
        if self.aggregates > 0 {
            let (count, are) = (self.aggregates, lines(self.aggregates));
            say(format_args!(
                "usdtrec: {name}: {count} {are} of maps, which have no events"
            ));
        }
        if self.lost > 0 {
            say(format_args!(
                "usdtrec: {name}: bpftrace lost {} events",
                self.lost
            ));
        }
    }
}

impl Shapes {
    /// Learns the shape of an event, or says why it cannot be in a trace.
    fn learn(&mut self, event: &ImportedEvent<'_>) -> Result<(), BadLine> {
        self.add(event).then_some(()).ok_or(BadLine::TooManyShapes)
    }
}
