//! `usdtrec record`.

use std::fs::File;
use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use usdtrec_buildid_cache::{Cache, Indexed, elf, process, resolve};
use usdtrec_format::expr::{EventSpec, Expr};
use usdtrec_format::schema::Schemas;
use usdtrec_format::trace::Compression;
use usdtrec_format::{Binary, CapturePlan};
use usdtrec_record::plan::Strings;
use usdtrec_record::{
    Destination, End, Engine, HeldCommand, Options, Outcome, PlannedProbe, Progress, RecordError,
    Request, Selection, Session, Signals, Switch, Target, Wanted, check_privilege, parse_cpus,
    select,
};

use crate::cli::{self, RecordArgs};
use crate::output;
use crate::schemas;
use crate::terminal::{Usage, say};
use crate::units::{parse_duration, parse_size, size};

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let events = events(args)?;
    let mut options = options(args)?;
    check_privilege().map_err(with_advice)?;
    let selection = choose(args, &events, buildid_dir)?;
    for refusal in &selection.refusals {
        say(format_args!("usdtrec: {refusal}"));
    }
    // That a built-in schema is for another version is of interest to who asks for details.
    for told in &selection.disagreements {
        if args.verbose || told.place != Schemas::BUNDLED {
            say(format_args!("usdtrec: {told}"));
        }
    }
    let signals = Signals::catch(options.switch.is_some())?;
    let held = (!args.command.is_empty())
        .then(|| HeldCommand::fork(&args.command, is_pipe(args)))
        .transpose()?;
    options.target = target(args, held.as_ref());
    let session = Session::attach(selection.probes, options).map_err(with_advice)?;
    for (probe, error) in session.refused() {
        say(format_args!(
            "usdtrec: {:#}; {} is left out",
            anyhow::anyhow!("{error}"),
            probe.event()
        ));
    }
    if !args.quiet {
        passed_over(&session, args.verbose);
    }
    if args.verbose {
        explain(&session);
    }
    let planted = planted(&session);
    let started = session.start(destination(args)?, held);
    let recording = started.map_err(|error| match error {
        RecordError::Write(_) => {
            anyhow::Error::from(error).context(args.output.display().to_string())
        }
        error => error.into(),
    })?;
    if !args.quiet {
        // Said when every probe is live: who waits for this line may start what he wants to see.
        say(planted);
    }
    let mut line = ProgressLine::new(args);
    let (outcome, released) = recording.run(&signals, &mut |progress| line.draw(progress));
    line.clear();
    let outcome = outcome.with_context(|| args.output.display().to_string())?;
    if !args.quiet {
        if outcome.end == End::Size {
            say("[ usdtrec record: size limit reached, recording ended ]");
        }
        finished(&outcome, &args.output);
    }
    tell_losses(&outcome);
    drop(released);
    Ok(exit_code(&outcome))
}

/// The events asked for: repeated, comma lists, each with the filter behind it.
fn events(args: &RecordArgs) -> anyhow::Result<Vec<Wanted>> {
    let mut all = Vec::new();
    for (list, filter) in args.event.iter().zip(&args.filters) {
        let filter = filter.as_deref().map(filter_of).transpose()?;
        for part in split_list(list) {
            let EventSpec { pattern, captures } = EventSpec::parse(part).map_err(Usage)?;
            all.push(Wanted {
                pattern,
                filter: filter.clone(),
                captures,
            });
        }
    }
    Ok(all)
}

fn filter_of(text: &str) -> Result<Expr, Usage> {
    Expr::parse(text).map_err(|error| Usage(format!("--filter {text:?}: {error}")))
}

/// Splits at commas outside brackets (`sdt_x:[a,b]*`).
fn split_list(list: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    list.split(move |letter| {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .filter(|part| !part.is_empty())
    .collect()
}

/// Everything but the target, which a command may become.
fn options(args: &RecordArgs) -> anyhow::Result<Options> {
    if is_pipe(args) {
        check_pipe(args)?;
    }
    Ok(Options {
        target: Target::All,
        max_size: args
            .max_size
            .as_deref()
            .map(|text| parse_size("--max-size", text, 1))
            .transpose()?,
        switch: args.switch_output.as_deref().map(switch).transpose()?,
        cpus: args.cpu.as_deref().map(parse_cpus).transpose()?,
        ring_bytes: args.mmap_pages.as_deref().map(ring_bytes).transpose()?,
        compression: match args.compression_level {
            Some(0) => Compression::None,
            level => Compression::Zstd(level.unwrap_or(1).into()),
        },
        duration: args
            .duration
            .as_deref()
            .map(|text| parse_duration("--duration", text))
            .transpose()?,
        engine: engine(args.engine),
        strings: strings(args)?,
        lossless: args.lossless,
        producer: concat!("usdtrec ", env!("CARGO_PKG_VERSION")).to_owned(),
        command_line: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
    })
}

const fn engine(engine: cli::Engine) -> Engine {
    match engine {
        cli::Engine::Auto => Engine::Auto,
        cli::Engine::Bpf => Engine::Bpf,
        cli::Engine::BpfMulti => Engine::BpfMulti,
        cli::Engine::BpfPerf => Engine::BpfPerf,
        cli::Engine::Perf => Engine::Perf,
        cli::Engine::PerfTracefs => Engine::PerfTracefs,
        cli::Engine::PerfPmu => Engine::PerfPmu,
    }
}

/// `--strings`, `--strlen`.
fn strings(args: &RecordArgs) -> Result<Strings, Usage> {
    const MOST: u64 = 4096;
    let limit = match parse_size("--strlen", &args.strlen, 1)? {
        limit @ 1..=MOST => limit as u16,
        _ => {
            return Err(Usage(format!(
                "--strlen: expected 1 to {MOST} bytes, found {:?}",
                args.strlen
            )));
        }
    };
    Ok(match args.strings {
        cli::Strings::Off => Strings::default(),
        cli::Strings::Auto => Strings {
            limit,
            known: false,
        },
        cli::Strings::All => Strings { limit, known: true },
    })
}

/// Whether the trace goes to standard output.
fn is_pipe(args: &RecordArgs) -> bool {
    args.output.as_os_str() == "-"
}

fn check_pipe(args: &RecordArgs) -> Result<(), Usage> {
    if args.switch_output.is_some() {
        return Err(Usage(
            "--switch-output needs files: standard output (-o -) takes one trace".to_owned(),
        ));
    }
    if stdout().is_terminal() {
        return Err(Usage(
            "-o -: standard output is a terminal, which a trace would upset\n  \
             pipe it into a reader: usdtrec record -o - ... | usdtrec script -i -"
                .to_owned(),
        ));
    }
    Ok(())
}

/// `-m`: pages or a size, rounded up to a power of two pages.
fn ring_bytes(text: &str) -> Result<usize, Usage> {
    let page = usdtrec_record::page_size() as u64;
    let bytes = parse_size("-m", text, page)?;
    if bytes == 0 || bytes > 1 << 31 {
        return Err(Usage(format!(
            "-m: expected a ring of 1 page to 2G, found {text:?}"
        )));
    }
    Ok(bytes.max(page).next_power_of_two() as usize)
}

/// `--switch-output`: `signal`, a size or a time.
fn switch(text: &str) -> Result<Switch, Usage> {
    let expected = |_| {
        Usage(format!(
            "--switch-output: expected signal, a size like 10M or a time like 30s, found {text:?}"
        ))
    };
    if text == "signal" {
        return Ok(Switch::Signal);
    }
    // As with perf, a small `m` is minutes and a large one megabytes.
    if text.ends_with(['s', 'm', 'h', 'd']) {
        return parse_duration("--switch-output", text)
            .map(Switch::Time)
            .map_err(expected);
    }
    parse_size("--switch-output", text, 1)
        .map(Switch::Size)
        .map_err(expected)
}

/// Files for the traces: the one named, or that name with .1, .2, … behind it, the oldest going first.
fn destination(args: &RecordArgs) -> anyhow::Result<Destination> {
    if is_pipe(args) {
        let pipe = File::from(stdout().as_fd().try_clone_to_owned()?);
        return Ok(Destination::pipe(pipe));
    }
    let path = args.output.clone();
    if args.switch_output.is_none() {
        return Ok(Destination::new(move || output::create(&path)));
    }
    let keep = args.switch_max_files;
    let mut number = 0_u64;
    Ok(Destination::new(move || {
        number += 1;
        if let Some(oldest) = keep
            .and_then(|keep| number.checked_sub(keep))
            .filter(|oldest| *oldest > 0)
        {
            output::remove(&output::numbered(&path, oldest))?;
        }
        output::create(&output::numbered(&path, number))
    }))
}

fn target(args: &RecordArgs, held: Option<&HeldCommand>) -> Target {
    match held {
        _ if !args.pid.is_empty() => Target::Processes(args.pid.clone()),
        _ if !args.tid.is_empty() => Target::Threads(args.tid.clone()),
        Some(held) if !args.all_cpus => Target::Command(held.pid()),
        _ => Target::All,
    }
}

/// Looks for the probes in the cache and in the binaries of the traced processes and of the command.
fn choose(
    args: &RecordArgs,
    events: &[Wanted],
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Selection> {
    let cache = Cache::open(buildid_dir);
    let mut indexed = Vec::new();
    if events.iter().any(|wanted| wanted.pattern.path().is_none()) {
        indexed = cache
            .as_ref()
            .ok()
            .map(Cache::binaries)
            .transpose()?
            .unwrap_or_default();
        indexed.extend(traced(args).into_iter().map(Indexed::current));
    }
    let stack = parse_size("--stack-size", &args.stack_size, 1)?;
    let stack = u32::try_from(stack).unwrap_or(u32::MAX);
    let selection = select(Request {
        events,
        indexed,
        force: args.force,
        stack,
        schemas: &schemas::in_force(&args.schema)?,
    })?;
    if let Ok(cache) = cache {
        index(&cache, &selection, args.verbose);
    }
    Ok(selection)
}

/// The binaries of the traced processes and of the command, indexed or not. One that cannot be read has no probes.
fn traced(args: &RecordArgs) -> Vec<Binary> {
    let command = args
        .command
        .first()
        .and_then(|program| resolve(Path::new(program)).ok());
    let mut binaries: Vec<Binary> = command
        .and_then(|path| elf::read_binary(&path).ok())
        .into_iter()
        .collect();
    for &pid in args.pid.iter().chain(&args.tid) {
        let mapped = process::binaries(pid)
            .map(|files| files.mapped)
            .unwrap_or_default();
        // The path by which the kernel finds the file from here, also if it is a container's or was deleted.
        binaries.extend(mapped.into_iter().map(|mapped| Binary {
            path: mapped.access,
            ..mapped.scan.binary
        }));
    }
    binaries
}

/// Keeps files named by path in the cache, so that their traces can be read elsewhere. Recording does not depend on it.
fn index(cache: &Cache, selection: &Selection, verbose: bool) {
    for path in &selection.named {
        match cache.add(path) {
            Err(error) if verbose => say(format_args!("usdtrec: not indexed: {error:#}")),
            _ => {}
        }
    }
}

fn with_advice(error: RecordError) -> anyhow::Error {
    let advice = matches!(error, RecordError::Privilege(_));
    let error = anyhow::Error::from(error);
    if !advice {
        return error;
    }
    let command: Vec<_> = std::env::args().collect();
    anyhow::anyhow!(
        "{error}\n  sudo {}\n  or once: sudo setcap cap_bpf,cap_perfmon,cap_ipc_lock,cap_dac_read_search+ep {}",
        command.join(" "),
        command.first().map_or("usdtrec", String::as_str)
    )
}

/// The line that tells what was planted.
fn planted(session: &Session) -> String {
    let probes = session.probes();
    let distinct = |key: fn(&PlannedProbe) -> String| {
        probes
            .iter()
            .map(key)
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    let events = distinct(PlannedProbe::event);
    let files = distinct(|probe| probe.path.display().to_string());
    let sites: usize = probes.iter().map(|probe| probe.sites.len()).sum();
    let (engine, way) = session.engine();
    format!(
        "[ usdtrec record: {} at {} in {}; engine {engine} ({way}); {} ]",
        count(events, "probe"),
        count(sites, "site"),
        count(files, "file"),
        count(session.cpus().len(), "CPU")
    )
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Why a better engine is not used; all that the kernel's verifier said of a program only with `-v`.
fn passed_over(session: &Session, verbose: bool) {
    for error in session.passed_over() {
        let reason = format!("{:#}", anyhow::anyhow!("{error}"));
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let cause = cause.as_deref().unwrap_or_default();
        let shown = match cause.lines().next() {
            Some(first) if !verbose => first,
            _ => cause,
        };
        say(format_args!(
            "usdtrec: not the bpf engine: {reason}: {shown}"
        ));
    }
}

/// `-v`: what is planted and how.
fn explain(session: &Session) {
    say(format_args!(
        "usdtrec: {} of {}",
        session.in_kernel(),
        size(session.ring_bytes() as u64)
    ));
    for probe in session.probes() {
        for site in &probe.sites {
            say(format_args!(
                "usdtrec: {} in {} at offset {:#x}: {}{}",
                probe.event(),
                probe.path.display(),
                site.offset.unwrap_or(0),
                captured(&probe.plan),
                if site.semaphore == 0 {
                    ""
                } else {
                    ", semaphore"
                }
            ));
        }
    }
}

/// What a hit hands over, in words.
fn captured(plan: &CapturePlan) -> String {
    match &plan.raw {
        Some(raw) => format!(
            "{} bytes of values, {}",
            raw.size,
            count(raw.strings().count(), "string")
        ),
        None => format!(
            "{} registers, {} bytes of stack",
            plan.registers.count_ones(),
            plan.stack
        ),
    }
}

/// The last line.
fn finished(outcome: &Outcome, path: &Path) {
    let totals = outcome.totals;
    let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
    let share = match lost {
        0 => String::new(),
        _ => format!(" ({:.2} %)", percent(lost, lost + totals.samples)),
    };
    let per_event = match totals.samples {
        // The head of the file would hide what an event costs.
        0..1000 => String::new(),
        samples => format!(
            " ({:.1} B/event, {:.1} before compression)",
            totals.file_bytes as f64 / samples as f64,
            totals.raw_bytes as f64 / samples as f64
        ),
    };
    say(format_args!(
        "[ usdtrec record: {:.1} s, {} events, {lost} lost{share}, wrote {} {}{per_event} ]",
        outcome.elapsed.as_secs_f64(),
        totals.samples,
        size(totals.file_bytes),
        path.display()
    ));
}

/// Losses are told even with `-q`.
fn tell_losses(outcome: &Outcome) {
    for loss in &outcome.losses {
        say(format_args!(
            "  {} lost {} of {} ({:.2} %): its rate outran the ring; try a larger -m, fewer probes, or --lossless",
            loss.event,
            loss.lost,
            loss.hits,
            percent(loss.lost, loss.hits)
        ));
    }
    if outcome.unaccounted > 0 {
        say(format_args!(
            "usdtrec: the kernel counted {} hits more than it handed over or called lost",
            outcome.unaccounted
        ));
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// As with perf, the command's status is ours.
fn exit_code(outcome: &Outcome) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        // We end the command ourselves when the recording ends first.
        (None, Some(libc::SIGTERM)) => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    };
    outcome
        .command_status
        .map_or(ExitCode::SUCCESS, |status| ExitCode::from(code(status)))
}

/// The line that is redrawn while recording, on a terminal.
struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    fn new(args: &RecordArgs) -> Self {
        let shown = !args.quiet && args.command.is_empty() && stderr().is_terminal();
        let bar = if shown {
            ProgressBar::no_length()
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    fn draw(&mut self, progress: Progress) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = progress.elapsed.max(Duration::from_millis(1)).as_secs_f64();
        let Progress { totals, .. } = progress;
        self.bar.set_message(format!(
            "[ {seconds:.1} s, {} events, {:.0}/s, {} ] Ctrl-C to end",
            totals.samples,
            totals.samples as f64 / seconds,
            size(totals.file_bytes)
        ));
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
