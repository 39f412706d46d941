//! The head of a report: what was recorded where, when and how.

use usdtrec_analysis::clock_facts::ClockFacts;
use usdtrec_analysis::origin::Origin;
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
pub(crate) fn rfc3339(wall_ns: i128) -> Option<String> {
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
