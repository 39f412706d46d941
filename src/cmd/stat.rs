//! `usdtrec stat`.

mod by;
mod group_key;
mod intervals;
mod numbers;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use usdtrec_format::expr::EventSpec;
use usdtrec_format::split_patterns;
use usdtrec_record::{Aggregation, HitTotals, MeasuredArgument};
use usdtrec_report::stat::{self, StatArgument, StatView};

use self::by::StatBy;
use self::intervals::Intervals;
use super::live::{Aggregated, Live};
use super::record::refuse_options_of_arguments;
use super::selection;
use crate::cli::{Engine, OutputFormat, StatArgs};
use crate::output;
use crate::terminal::Usage;
use crate::units::parse_duration;

/// Runs the verb.
pub(crate) fn run(args: &StatArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    refuse(args)?;
    let keys = args.by.iter().map(|key| StatBy::named(key));
    let keys: Vec<StatBy> = keys.collect::<Result<_, _>>()?;
    let by = keys.iter().map(|key| key.key.clone()).collect();
    let measured = measured(args);
    let interval = args.interval.as_deref().map(interval).transpose()?;
    let mut out = match &args.output {
        Some(path) => output::create(path)?,
        None => selection::output()?,
    };
    let colours = args.output.is_none() && AutoStream::choice(&out) != ColorChoice::Never;
    let format = match args.field_separator {
        Some(_) => OutputFormat::Csv,
        None => args.format,
    };
    let shown = measured.iter().map(|argument| StatArgument {
        name: argument.name.clone(),
        has_histogram: argument.has_histogram,
    });
    let format = selection::format(format);
    let mut view = StatView::new(format, colours, args.by.clone(), shown.collect());
    let mut intervals = Intervals::new(keys, measured.clone());
    let output = out.try_clone()?;
    let mut show = |counted: &HitTotals| {
        let table = view.show(&intervals.next(counted));
        out.write_all(table.as_bytes())
    };
    let verb = Live {
        verb: "stat",
        args: &args.capture,
        buildid_dir,
        output,
        muted: args.output.is_none(),
        heartbeat: false,
        prints_arguments: shows_arguments(args),
        graph: None,
        slow_spans: None,
        aggregated: Some(Aggregated {
            aggregation: Aggregation {
                interval,
                by,
                measured,
            },
            show: &mut show,
        }),
    };
    verb.run(|pipe, sources| stat::read(pipe, Path::new("stat"), sources))
}

/// The arguments of `--value` and `--hist`, each once.
fn measured(args: &StatArgs) -> Vec<MeasuredArgument> {
    let mut measured: Vec<MeasuredArgument> = Vec::new();
    for name in args.value.iter().chain(&args.hist) {
        if !measured.iter().any(|known| known.name == *name) {
            measured.push(MeasuredArgument {
                name: name.clone(),
                has_histogram: args.hist.contains(name),
            });
        }
    }
    measured
}

/// Whether arguments are keys, or are measured.
const fn shows_arguments(args: &StatArgs) -> bool {
    !(args.by.is_empty() && args.value.is_empty() && args.hist.is_empty())
}

/// `--interval`; a number without a unit is milliseconds.
fn interval(text: &str) -> Result<Duration, Usage> {
    const LEAST: Duration = Duration::from_millis(10);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = match is_number {
        true => parse_duration("--interval", &format!("{text}ms"))?,
        false => parse_duration("--interval", text)?,
    };
    Usage::ensure(time >= LEAST, "--interval: expected at least 10ms")?;
    Ok(time)
}

/// Refuses options that have no effect on counts.
fn refuse(stat: &StatArgs) -> Result<(), Usage> {
    let args = &stat.capture;
    refuse_options_of_arguments("stat", args, shows_arguments(stat))?;
    let is_perf = matches!(
        args.engine,
        Engine::Perf | Engine::PerfPmu | Engine::PerfTracefs
    );
    Usage::ensure(
        !is_perf,
        "stat needs the bpf engine: perf events copy each hit out",
    )?;
    Usage::ensure(
        args.mmap_pages.is_none(),
        "-m has no effect on stat: hits are not written to rings",
    )?;
    Usage::ensure(
        !args.lossless,
        "--lossless has no effect on stat: no ring can be full",
    )?;
    let specs = args.event.iter().flat_map(|list| split_patterns(list));
    let has_list = |part: &str| EventSpec::parse(part).is_ok_and(|spec| spec.captures.is_some());
    let listed = specs.into_iter().find(|part| has_list(part));
    Usage::ensure(
        listed.is_none() || shows_arguments(stat),
        "stat without --by, --value and --hist shows no arguments: an argument list of -e has no effect",
    )
}
