//! The head of a report: what was recorded where, when and how.

use serde_json::{Value as Json, json};
use usdtrec_analysis::clock_facts::ClockFacts;
use usdtrec_analysis::origin::{Origin, TriggerFacts};
use usdtrec_format::counted;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::loss_ledger::LossLedger;
use usdtrec_trace::wall_times::ClockStep;

use crate::columns::folded_from;
use crate::joined_files;
use crate::losses::words;
use crate::numbers;
use crate::theme::Theme;

/// A line of the head, with `# ` in front, as lines that have room.
pub(crate) fn folded_line(line: &str, theme: Theme) -> String {
    let mut lines = String::new();
    folded_from("# ", line, "#   ", theme, &mut lines);
    lines.trim_end().to_owned()
}

/// Appends the lines that the answer to a question begins with; `remarks` say how the question is understood.
pub(crate) fn put(origin: &Origin, remarks: &[String], theme: Theme, out: &mut String) {
    for line in lines(origin) {
        theme.put_remark(&folded_line(&line, theme), out);
    }
    if origin.lost > 0 {
        let line = format!("# {} events were lost, which are not in here", origin.lost);
        theme.put_alarm(&line, out);
    }
    for remark in remarks {
        theme.put_remark(&folded_line(&escape(remark), theme), out);
    }
}

/// `2026-11-20 22:14:03 UTC`.
fn date(origin: &Origin) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(i128::from(origin.wall_ns?)).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// `2026-11-20T22:14:03.123456789Z`.
pub(crate) fn date_for_machines(origin: &Origin) -> Option<String> {
    rfc3339(i128::from(origin.wall_ns?))
}

/// The same of a time of `CLOCK_REALTIME`, ns since 1970.
fn rfc3339(wall_ns: i128) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(wall_ns).ok()?;
    Some(time.to_string())
}

/// How many events there are, in which time, and how many were lost. Without the times of a recording, the time is that `from first to last`.
pub fn totals(events: u64, duration: u64, recorded: bool, losses: &LossLedger) -> String {
    format!(
        "{} in {}{}, {}",
        counted(events, "event"),
        numbers::duration(duration as f64),
        if recorded { "" } else { " from first to last" },
        words(losses)
    )
}

/// Two lines about the recording: host, machine, kernel, date and engine; the command.
pub fn lines(origin: &Origin) -> Vec<String> {
    let kernel = match &*origin.kernel {
        "" => String::new(),
        release => format!("Linux {release}"),
    };
    let host = match &*origin.host {
        "" => String::new(),
        name => format!("host {name}"),
    };
    let engine = match &origin.engine {
        Some(engine) => format!("engine {engine}"),
        None if origin.producer.is_empty() => String::new(),
        None => format!("recorded by perf {}", origin.producer),
    };
    let date = date(origin).unwrap_or_default();
    let parts = [host, origin.machine.clone(), kernel, date, engine];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(escape(&parts.join(", ")).into_owned());
    }
    if !origin.command.is_empty() {
        lines.push(escape(&origin.command.join(" ")).into_owned());
    }
    lines.extend(joined_files::line(&origin.files));
    if let Some(clock) = &origin.clock {
        lines.extend(clock_line(clock));
    }
    lines
}

/// A line about a wall clock that was set while recording.
fn clock_line(clock: &ClockFacts) -> Option<String> {
    let sum: i128 = clock.steps.iter().map(ClockStep::by_ns).sum();
    let times = match clock.steps.len() {
        0 => return None,
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let seconds = sum as f64 / 1e9;
    Some(format!(
        "the wall clock was set {times} while recording, by {seconds:+.3} s: times of day are right on both sides"
    ))
}

/// Adds the members of JSON that say where, when and how a trace was recorded.
pub(crate) fn add_json(origin: &Origin, object: &mut Json) {
    object["file"] = json!(origin.file);
    object["host"] = json!(origin.host);
    object["machine"] = json!(origin.machine);
    object["kernel"] = json!(origin.kernel);
    object["engine"] = json!(origin.engine);
    object["producer"] = json!(origin.producer);
    object["command"] = json!(origin.command);
    object["start"] = json!(date_for_machines(origin));
    object["clock"] = json!(origin.clock.as_ref().map(json_clock));
    if let Some(trigger) = &origin.trigger {
        object["trigger"] = json_trigger(trigger);
    }
    let mut files = origin.files.iter().peekable();
    if files.peek().is_some() {
        let paths = files.map(|file| file.path.display().to_string());
        object["files"] = paths.collect();
    }
    let mut gaps = origin.files.gaps().peekable();
    if gaps.peek().is_some() {
        let gaps = gaps.map(|gap| json!({"from_ns": gap.first, "to_ns": gap.last}));
        object["gaps"] = gaps.collect();
    }
}

/// What had a recorder write a file. What is not known is `null`.
fn json_trigger(TriggerFacts { fired, wall_ns }: &TriggerFacts) -> Json {
    let text = |text: &str| json!(Some(text).filter(|text| !text.is_empty()));
    let id = |id: i32| json!(Some(id).filter(|id| *id != 0));
    json!({
        "kind": fired.kind,
        "condition": text(&fired.condition),
        "time_ns": fired.time_ns,
        "time": wall_ns.and_then(rfc3339),
        "event": text(&fired.event),
        "pid": id(fired.pid),
        "tid": id(fired.tid),
        "span": text(&fired.span),
        "duration_ns": fired.duration_ns,
        "more": fired.more,
    })
}

/// How exact times of day are.
fn json_clock(clock: &ClockFacts) -> Json {
    let synchronized = clock.quality.filter(|quality| quality.is_synchronized);
    let nanoseconds = |microseconds: u32| u64::from(microseconds) * 1000;
    let steps = clock.steps.iter().map(|step| {
        json!({
            "from_ns": step.before.clock_ns,
            "to_ns": step.after.clock_ns,
            "by_ns": i64::try_from(step.by_ns()).ok(),
        })
    });
    json!({
        "readings": clock.readings,
        "error_ns": clock.error_ns,
        "steps": steps.collect::<Json>(),
        "synchronized": clock.quality.map(|quality| quality.is_synchronized),
        "utc_error_ns": synchronized.map(|quality| nanoseconds(quality.estimated_us)),
        "utc_max_error_ns": synchronized.map(|quality| nanoseconds(quality.maximum_us)),
    })
}
