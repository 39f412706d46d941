//! Conversion of the options of `record`, and of the capture options of all verbs.

use std::fs::File;
use std::io::{IsTerminal, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_buildid_cache::locate;
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_format::escape::shown;
use usdtrec_format::expr::{EventSpec, Expr};
use usdtrec_format::split_patterns;
use usdtrec_format::trace::Compression;
use usdtrec_record::plan::Strings;
use usdtrec_record::{
    CallGraph, Destination, EngineChoice, EngineOptions, EventSelector, Following, GapHold,
    GroupName, NonResident, Options, ProcessChoice, Signals, SlowSpans, Switch, Target,
    TriggerOptions, parse_cpus, was_closed,
};

use super::switch_output::{NumberedFiles, SwitchOutputFiles};
use super::{call_graph, no_follow, ring};
use crate::cli::{self, CaptureArgs, RecordArgs};
use crate::cmd::print::spans_or_all;
use crate::output;
use crate::terminal::Usage;
use crate::units::{least_ns, parse_duration, parse_duration_or_zero, parse_size};

/// Default zstd level, also named in the help. For these records it takes no more CPU time than level 1; files are up to 14 % smaller and
/// decompress 5 to 40 % faster.
const LEVEL: u8 = 3;

/// The events of all `-e` options, each with the filter that follows it.
pub(super) fn events(args: &CaptureArgs) -> anyhow::Result<Vec<EventSelector>> {
    let mut all = Vec::new();
    for (list, filter) in args.event.iter().zip(&args.filters) {
        let filter = filter.as_deref().map(filter_of).transpose()?;
        for part in split_patterns(list) {
            let EventSpec { pattern, captures } =
                EventSpec::parse(part).map_err(|error| Usage(error.to_string()))?;
            all.push(EventSelector {
                pattern,
                filter: filter.clone(),
                list: captures,
            });
        }
    }
    Ok(all)
}

fn filter_of(text: &str) -> Result<Expr, Usage> {
    Expr::parse(text).map_err(|error| Usage(format!("--filter {text:?}: {error}")))
}

/// Converts the options of `record`, except for the target, which may be a command that is not started yet.
pub(super) fn options(args: &RecordArgs) -> anyhow::Result<Options> {
    if is_pipe(args) {
        check_pipe(args)?;
    }
    ring::refuse_others(args)?;
    Usage::ensure(
        args.switch_max_files.is_none() || args.switch_output.is_some(),
        "--switch-max-files needs --switch-output: other recordings have one file",
    )?;
    Ok(Options {
        max_size: args
            .max_size
            .as_deref()
            .map(|text| {
                let bytes = parse_size("--max-size", text, 1)?;
                more_than_nothing("--max-size", text, bytes)
            })
            .transpose()?,
        switch: args.switch_output.as_deref().map(switch).transpose()?,
        triggers: ring::triggers(args)?,
        compression: match args.compression_level {
            Some(0) => Compression::None,
            level => Compression::Zstd(level.unwrap_or(LEVEL).into()),
        },
        ..with_spans(args)?
    })
}

/// The capture options, with the spans of which only slow ones are recorded.
fn with_spans(args: &RecordArgs) -> anyhow::Result<Options> {
    let mut options = capture(&args.capture, call_graph::from_args(args)?)?;
    options.engine.slow_spans = slow_spans(args)?;
    Ok(options)
}

/// `--span`, `--min`.
fn slow_spans(args: &RecordArgs) -> anyhow::Result<Option<SlowSpans>> {
    let least = least_ns(args.min.as_ref(), args.capture.span_least)?;
    if least == 0 {
        let refused =
            "--span and --key need --min: all hits are recorded, and report --span matches them";
        Usage::ensure(args.span.is_empty() && args.key.is_empty(), refused)?;
        return Ok(None);
    }
    Usage::ensure(
        !args.capture.engine.is_perf(),
        "--min needs the bpf engine: spans are matched in the kernel",
    )?;
    Ok(Some(SlowSpans {
        spans: spans_or_all(&args.span, least > 0),
        key: args.key.clone(),
        least,
        is_required: true,
    }))
}

/// Converts the capture options, with defaults for the options that only `record` has.
pub(in crate::cmd) fn capture(
    args: &CaptureArgs,
    graph: Option<CallGraph>,
) -> anyhow::Result<Options> {
    if args.no_inherit && args.pid.is_empty() && args.command.is_empty() {
        return Err(Usage(
            "--no-inherit needs -p PID or a command, whose children are then not recorded"
                .to_owned(),
        )
        .into());
    }
    refuse(args)?;
    no_follow::refuse_others(args, records_named_processes(args))?;
    Ok(Options {
        target: Target::All,
        named: args.pid.clone(),
        inherit: !args.no_inherit,
        max_size: None,
        switch: None,
        triggers: TriggerOptions::default(),
        engine: engine_options(args, graph)?,
        hit_costs: None,
        compression: Compression::None,
        duration: args
            .duration
            .as_deref()
            .map(|text| parse_duration("--duration", text))
            .transpose()?,
        leave_command: false,
        following: Following::default(),
        producer: concat!("usdtrec ", env!("CARGO_PKG_VERSION")).to_owned(),
        command_line: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
    })
}

fn engine_options(args: &CaptureArgs, graph: Option<CallGraph>) -> anyhow::Result<EngineOptions> {
    Ok(EngineOptions {
        choice: engine(args.engine),
        cpus: args.cpu.as_deref().map(parse_cpus).transpose()?,
        ring_bytes: args.mmap_pages.as_deref().map(ring_bytes).transpose()?,
        strings: strings(args)?,
        graph,
        nonresident: nonresident(args.nonresident),
        no_gap: args.no_gap.map(gap_hold),
        processes: process_choice(args),
        thread_context: args.thread_context,
        off_cpu: args.off_cpu,
        least_wait: least_wait(args)?,
        aggregation: None,
        slow_spans: None,
        budget: None,
    })
}

/// Time of the shortest waits that are recorded, ns; `None` without `--off-cpu`.
fn least_wait(args: &CaptureArgs) -> Result<Option<u64>, Usage> {
    const OPTION: &str = "--off-cpu-thresh";
    let text = args.off_cpu_thresh.as_deref().unwrap_or("100us");
    // perf's unit.
    let least = match text.ends_with(|last: char| last.is_ascii_digit()) {
        true => parse_duration_or_zero(OPTION, &format!("{text}ms")),
        false => parse_duration_or_zero(OPTION, text),
    }?;
    let least = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
    Ok(args.off_cpu.then_some(least))
}

/// The processes of `--cgroup`, `--container`, `--unit` and `--exe`.
pub(super) fn process_choice(args: &CaptureArgs) -> ProcessChoice {
    let named = |names: &[String], kind: fn(String) -> GroupName| {
        names.iter().cloned().map(kind).collect::<Vec<_>>()
    };
    ProcessChoice {
        groups: [
            named(&args.cgroup, GroupName::Cgroup),
            named(&args.container, GroupName::Container),
            named(&args.unit, GroupName::Unit),
        ]
        .concat(),
        executables: args.exe.iter().map(|path| located(path)).collect(),
        may_wait: !args.no_wait,
    }
}

/// The path of a file, whose name may be that of a program, as in `-e`. One that is not there is said when it is opened.
fn located(name: &Path) -> PathBuf {
    locate(name).unwrap_or_else(|_| name.to_owned())
}

/// Refuses files of `--exe` that no process executes: scripts, and others that are no programs.
///
/// # Errors
/// Why.
pub(super) fn check_executables(args: &CaptureArgs) -> Result<(), Usage> {
    for path in process_choice(args).executables {
        let unknown = Reader::of_unknown(Patience::Usual);
        if let Err(error @ ElfError::NotElf(_)) = ObjectFile::open_foreign(&path, unknown) {
            return Err(Usage(format!("--exe {}: {error}", shown(&path))));
        }
    }
    Ok(())
}

/// Refuses options that would have no effect with the engine that is asked for, or with each other.
fn refuse(args: &CaptureArgs) -> Result<(), Usage> {
    let given = ChangedDefaults::from_args(args);
    let chooses = !process_choice(args).is_all();
    let is_perf = args.engine.is_perf();
    let reason = match args.engine {
        _ if chooses && !args.all_cpus && !args.command.is_empty() => {
            "--cgroup, --container, --unit and --exe choose among all processes: to record them while CMD runs, add -a"
        }
        _ if is_perf && chooses => "--cgroup, --container, --unit and --exe need the bpf engine",
        _ if is_perf && args.no_gap.is_some() => "--no-gap needs the bpf engine",
        _ if args.no_gap.is_some() && !records_named_processes(args) => {
            "--no-gap needs -p PID or a command, whose processes are held: without one it could hold any process of the host"
        }
        _ if is_perf && args.thread_context => "--thread-context needs the bpf engine",
        _ if is_perf && args.off_cpu => {
            "--off-cpu needs the bpf engine: perf events do not add up how long threads wait"
        }
        _ if is_perf && given.nonresident => "--nonresident needs the bpf engine",
        _ if is_perf && given.all_strings => {
            "--strings all needs the bpf engine: perf events read no strings"
        }
        _ if is_perf && given.strlen => {
            "--strlen needs the bpf engine: perf events read no strings"
        }
        _ => return Ok(()),
    };
    Err(Usage(reason.to_owned()))
}

/// Whether the processes of -p or of the command are recorded.
fn records_named_processes(args: &CaptureArgs) -> bool {
    let has_command = !args.command.is_empty() && !args.all_cpus && args.tid.is_empty();
    !args.pid.is_empty() || has_command
}

/// Whether a recording may begin without probes.
pub(super) fn waits(args: &CaptureArgs, events: &[EventSelector]) -> Result<bool, Usage> {
    let has_paths = events.iter().all(|event| event.pattern.path().is_some());
    let reason = match () {
        () if !args.no_wait || !process_choice(args).groups.is_empty() => None,
        () if args.no_follow => Some("--no-follow waits for no file"),
        () if has_paths => Some("a pattern with a path never waits"),
        () => None,
    };
    if let Some(reason) = reason {
        return Err(Usage(format!("--no-wait has no effect: {reason}")));
    }
    Ok(!args.engine.is_perf() && !args.no_wait && !args.no_follow)
}

/// Which of the options that have a usual value ask for another one.
struct ChangedDefaults {
    all_strings: bool,
    strlen: bool,
    nonresident: bool,
}

impl ChangedDefaults {
    fn from_args(args: &CaptureArgs) -> Self {
        Self {
            all_strings: args.strings == cli::Strings::All,
            strlen: args.strlen != CaptureArgs::STRLEN,
            nonresident: args.nonresident != cli::NonResident::default(),
        }
    }
}

same!(fn engine(cli::Engine) -> EngineChoice: Auto Bpf BpfMulti BpfPerf Perf PerfTracefs PerfPmu);

const fn gap_hold(how: cli::NoGap) -> GapHold {
    match how {
        cli::NoGap::Auto => GapHold::Auto,
        cli::NoGap::Held => GapHold::Required,
    }
}

same!(fn nonresident(cli::NonResident) -> NonResident: Auto Never Always);

/// `--strings`, `--strlen`.
fn strings(args: &CaptureArgs) -> Result<Strings, Usage> {
    const MAX_BYTES: u64 = 4096;
    let limit = match parse_size("--strlen", &args.strlen, 1)? {
        limit @ 1..=MAX_BYTES => limit as u16,
        _ => {
            return Err(Usage(format!(
                "--strlen: expected 1 to {MAX_BYTES} bytes, found {:?}",
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
pub(super) fn is_pipe(args: &RecordArgs) -> bool {
    args.output.as_os_str() == "-"
}

fn check_pipe(args: &RecordArgs) -> Result<(), Usage> {
    Usage::ensure(!was_closed(1), "-o -: standard output is closed")?;
    Usage::ensure(
        args.switch_output.is_none(),
        "--switch-output needs files: standard output (-o -) holds a single trace",
    )?;
    Usage::ensure(
        !stdout().is_terminal(),
        "-o -: refusing to write a binary trace to a terminal\n  \
         pipe it into a reader: usdtrec record -o - ... | usdtrec script -i -",
    )?;
    let output = stdout().as_fd().try_clone_to_owned().map(File::from);
    let found = output.and_then(|output| output.metadata());
    Usage::ensure(
        !found.is_ok_and(|found| found.file_type().is_char_device()),
        "-o -: expected a pipe or a file as standard output, found a device or nothing: no trace would be kept\n  \
         to record without a trace: -o /dev/null",
    )
}

/// `-m`: pages or a size, rounded up to a power of two pages.
fn ring_bytes(text: &str) -> Result<usize, Usage> {
    let page = usdtrec_record::page_size() as u64;
    let bytes = parse_size("-m", text, page)?;
    let expected = format!("-m: expected a ring of 1 page to 2G, found {text:?}");
    Usage::ensure((1..=1 << 31).contains(&bytes), expected)?;
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
    // As in perf, `m` is minutes and `M` is megabytes.
    if text.ends_with(['s', 'm', 'h', 'd']) {
        return parse_duration("--switch-output", text)
            .map(Switch::Time)
            .map_err(expected);
    }
    let bytes = parse_size("--switch-output", text, 1).map_err(expected)?;
    more_than_nothing("--switch-output", text, bytes).map(Switch::Size)
}

/// Refuses a size of 0.
fn more_than_nothing(option: &str, text: &str, bytes: u64) -> Result<u64, Usage> {
    match bytes {
        0 => Err(Usage(format!(
            "{option}: expected a size of more than 0, found {text:?}"
        ))),
        bytes => Ok(bytes),
    }
}

/// Where the trace is written: a pipe, the file `PATH`, a window of which files are made, or with `--switch-output` the files `PATH.1`, `PATH.2`, …, of which the oldest
/// are removed.
pub(super) fn destination(
    args: &RecordArgs,
    signals: &Signals,
    duration: Option<Duration>,
    files: &NumberedFiles,
) -> anyhow::Result<Destination> {
    if is_pipe(args) {
        let pipe = File::from(stdout().as_fd().try_clone_to_owned()?);
        return Ok(Destination::pipe(pipe, signals, duration)?);
    }
    if let Some(limits) = args.ring.ring.as_deref().map(ring::limits).transpose()? {
        return Ok(Destination::window(limits, ring::files(args, files)?));
    }
    let path = args.output.clone();
    if args.switch_output.is_none() {
        if let Some(fifo) = output::fifo(&path)? {
            return Ok(Destination::pipe(fifo, signals, duration)?);
        }
        return Ok(Destination::new(move || output::create(&path)));
    }
    Ok(Destination::new(SwitchOutputFiles::new(args, files)))
}
