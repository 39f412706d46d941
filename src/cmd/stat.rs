//! `usdtrec stat`.

mod group_key;
mod intervals;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use usdtrec_format::expr::EventSpec;
use usdtrec_format::split_patterns;
use usdtrec_record::{AggregateKey, Aggregation, HitTotals};
use usdtrec_report::script::process_field_named;
use usdtrec_report::stat::{self, StatView};

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
    let by: Vec<AggregateKey> = args
        .by
        .iter()
        .map(|key| aggregate_key(key))
        .collect::<Result<_, _>>()?;
    let has_keys = !by.is_empty();
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
    let mut view = StatView::new(selection::format(format), colours, args.by.clone());
    let mut intervals = Intervals::default();
    let output = out.try_clone()?;
    let mut show = |counted: &HitTotals| {
        let table = view.show(&intervals.next(counted, has_keys));
        out.write_all(table.as_bytes())
    };
    let verb = Live {
        verb: "stat",
        args: &args.capture,
        buildid_dir,
        output,
        muted: args.output.is_none(),
        heartbeat: false,
        prints_arguments: has_keys,
        graph: None,
        slow_spans: None,
        aggregated: Some(Aggregated {
            aggregation: Aggregation { interval, by },
            show: &mut show,
        }),
    };
    verb.run(|pipe, sources| stat::read(pipe, Path::new("stat"), sources))
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

/// A key of `--by`.
fn aggregate_key(name: &str) -> Result<AggregateKey, Usage> {
    /// Other keys of `report --by`, besides fields about the process.
    const OF_REPORT: [&str; 6] = ["cpu", "dso", "sym", "srcline", "caller", "stack"];
    let is_other =
        OF_REPORT.contains(&name) || name.contains(':') || process_field_named(name).is_some();
    Ok(match name {
        "comm" => AggregateKey::Comm,
        "pid" => AggregateKey::Pid,
        "tid" => AggregateKey::Tid,
        "uid" => AggregateKey::Uid,
        _ if is_other => {
            return Err(Usage(format!(
                "--by {name}: stat counts by comm, pid, tid, uid and arguments; to count by this, record, and use report --sort {name}"
            )));
        }
        _ => AggregateKey::Argument(name.to_owned()),
    })
}

/// Refuses options that have no effect on counts.
fn refuse(stat: &StatArgs) -> Result<(), Usage> {
    let args = &stat.capture;
    refuse_options_of_arguments("stat", args, !stat.by.is_empty())?;
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
        listed.is_none() || !stat.by.is_empty(),
        "stat without --by shows no arguments: an argument list of -e has no effect",
    )
}
