//! `usdtrec import`.

mod babeltrace;
mod bad_line;
mod bpftrace;
mod counts;
mod event;
mod input_format;
mod line;
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

use self::babeltrace::{TimeForm, Timestamps};
use self::bad_line::BadLine;
use self::counts::Counts;
use self::event::ImportedEvent;
use self::input_format::InputFormat;
use self::line::Line;
use self::lines::Lines;
use self::shapes::Shapes;
use self::writing::{InputFacts, Writing};
use crate::cli::ImportArgs;
use crate::terminal::say;
use crate::unfinished_file::UnfinishedFile;

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let name = shown(&args.input).to_string();
    let input = open(&args.input).with_context(|| name.clone())?;
    let format = InputFormat::find(BufReader::new(&input)).with_context(|| name.clone())?;
    let Some(format) = format else {
        bail!(
            "{name}: expected lines of bpftrace -f json ({{\"type\": \"printf\", …}}) or of babeltrace2 \
             ([1700000000.123456789] (+0.000000001) HOST PROVIDER:NAME: {{…}}), found none (see docs/guides/import.md)"
        );
    };
    let learned = learn(&name, &input, format)?;
    learned.counts.print(&name, &format.losses(&learned.counts));
    if learned.counts.events == 0 {
        bail!(
            "{name}: expected lines of {format} with events (see docs/guides/import.md), found {}",
            match learned.counts.bad {
                0 => "none".to_owned(),
                bad => format!("{bad} lines of other forms"),
            }
        );
    }
    if learned.form == Some(TimeForm::Cycles) {
        say(format_args!(
            "usdtrec: {name}: times are cycles of the trace's clock, of which LTTng and usdtrec have one per ns; for other clocks \
             use babeltrace2 --clock-seconds"
        ));
    }
    write(args, &input, format, learned)?;
    Ok(ExitCode::SUCCESS)
}

/// What the first pass learned of the input.
#[derive(Debug, Default)]
struct Learned {
    shapes: Shapes,
    counts: Counts,
    /// The form of times, if there are several.
    form: Option<TimeForm>,
    /// The time of the first event.
    first: Option<u64>,
}

impl Learned {
    fn event(&mut self, event: &ImportedEvent<'_>) -> Result<(), BadLine> {
        if !self.shapes.add(event) {
            return Err(BadLine::TooManyShapes);
        }
        self.first.get_or_insert(event.time);
        self.counts.event(event);
        Ok(())
    }
}

/// Reads the input for the first time.
fn learn(name: &str, input: &File, format: InputFormat) -> anyhow::Result<Learned> {
    let mut learned = Learned::default();
    let mut refused = None;
    let times = read(input, format, |number, line| {
        if refused.is_some() {
            return;
        }
        let checked = match line {
            Ok(Line::Event(event)) => learned.event(&event),
            Ok(other) => {
                learned.counts.other(&other);
                Ok(())
            }
            Err(error) => Err(error),
        };
        match checked {
            Err(error) if error.ends_import() => refused = Some((number, error)),
            Err(error) => learned.counts.bad(name, number, &error),
            Ok(()) => {}
        }
    });
    let times = times.with_context(|| name.to_owned())?;
    if let Some((number, error)) = refused {
        bail!("{name}: line {number}: {error}");
    }
    learned.form = times.and_then(|times| times.form());
    Ok(learned)
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
    format: InputFormat,
    mut take: impl FnMut(u64, Result<Line<'_>, BadLine>),
) -> std::io::Result<Option<Timestamps>> {
    input.seek(SeekFrom::Start(0))?;
    let mut lines = Lines::new(BufReader::new(input));
    let mut parser = format.parser();
    while lines.advance()? {
        let line = lines.line().and_then(|line| parser.parse(line));
        take(lines.number(), line);
    }
    Ok(parser.into_times())
}

/// Writes the trace of the events whose shapes are known.
fn write(
    args: &ImportArgs,
    input: &File,
    format: InputFormat,
    learned: Learned,
) -> anyhow::Result<()> {
    let Learned {
        shapes,
        counts,
        form,
        first,
    } = learned;
    let facts = InputFacts {
        losses: format.losses(&counts),
        wall: first.filter(|time| form == Some(TimeForm::Seconds) && is_wall_time(*time)),
    };
    let path = || shown(&args.output).to_string();
    let mut unfinished = UnfinishedFile::create(&args.output).with_context(path)?;
    let file = unfinished.file().try_clone().with_context(path)?;
    let mut writing = Writing::begin(file, shapes, facts).with_context(path)?;
    let mut failed = Ok(());
    read(input, format, |_, line| {
        if let (Ok(()), Ok(Line::Event(event))) = (&failed, &line) {
            failed = writing.put(event);
        }
    })?;
    failed.with_context(path)?;
    let samples = writing.finish().with_context(path)?;
    let named = unfinished.finish_and_keep_old(&args.output);
    named.with_context(path)?;
    say(format_args!(
        "[ usdtrec import: {samples} events to {} ]",
        path()
    ));
    Ok(())
}

/// Whether seconds are since 1970. A clock without an offset to it counts from the start of the host.
const fn is_wall_time(ns: u64) -> bool {
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    ns > 30 * YEAR
}
