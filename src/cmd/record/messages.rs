//! What `record` says: what is planted, how it goes on, how it ended.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use usdtrec_format::CapturePlan;
use usdtrec_record::{Outcome, PlannedProbe, Progress, Session};

use crate::cli::CaptureArgs;
use crate::terminal::say;
use crate::units::size;

/// The line in which a verb tells what was planted.
pub(in crate::cmd) fn planted(verb: &str, session: &Session) -> String {
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
        "[ usdtrec {verb}: {} at {} in {}; engine {engine} ({way}); {} ]",
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
pub(super) fn passed_over(session: &Session, verbose: bool) {
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
pub(super) fn explain(session: &Session) {
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
pub(super) fn finished(outcome: &Outcome, path: &Path) {
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
pub(in crate::cmd) fn tell_losses(outcome: &Outcome) {
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

/// The line that is redrawn while recording, on a terminal.
pub(super) struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    pub(super) fn new(args: &CaptureArgs) -> Self {
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

    pub(super) fn draw(&mut self, progress: Progress) {
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

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
