//! Messages of `record`, `trace`, `top` and `stat`: the attached probes, the progress, the summary and the losses.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::scaled::size;
use usdtrec_format::trace::{Shortfall, ShortfallKind};
use usdtrec_format::{CapturePlan, counted};
use usdtrec_record::{
    COUNTERS, CallGraph, CutCause, CutStacks, End, EndedProcess, FollowedFiles, GroupRemark,
    Notice, Outcome, PlannedProbe, PlannedSite, ProbeHits, Progress, Session, missing_keeper,
};

use super::choose::print_loaded;
use super::options::process_choice;
use crate::cli::CaptureArgs;
use crate::terminal::{inform, say};
use crate::{advice, service};

/// The first line of a recording: the attached probes and the engine.
pub(in crate::cmd) fn attached_line(verb: &str, session: &Session) -> String {
    let probes = session.probes();
    let distinct = |key: fn(&PlannedProbe) -> String| {
        probes
            .iter()
            .map(|probe| key(probe))
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    let events = distinct(PlannedProbe::event);
    let files = distinct(|probe| format!("{:?}", probe.path));
    let sites: usize = probes.iter().map(|probe| probe.sites.len()).sum();
    let attached = session.engine();
    let used = attached.used();
    let (engine, attach_method) = (used.name(), used.attach_method());
    let why = session.not_better().map(|why| format!("; {why}"));
    let why = why.unwrap_or_default();
    let exactness = attached.inexact().map(|why| format!("; not exact: {why}"));
    let exactness = exactness.unwrap_or_default();
    let scope = if attached.spares_strangers() {
        "; attached to the recorded processes and their children only"
    } else if attached.is_in_namespace() {
        "; processes of this pid namespace only"
    } else {
        ""
    };
    format!(
        "[ usdtrec {verb}: {} at {} in {}; engine {engine} ({attach_method}{why}); {}{scope}{exactness} ]",
        counted(events, "probe"),
        counted(sites, "site"),
        counted(files, "file"),
        counted(session.cpus().len(), "CPU")
    )
}

/// Says that all probes are enabled: to a service manager, and, unless `quiet`, on stderr, where scripts wait for the line before they start their
/// workload.
pub(in crate::cmd) fn print_attached(line: &str, args: &CaptureArgs) {
    if !args.quiet {
        if args.no_follow {
            let user = match rustix::process::geteuid().is_root() {
                true => "; still root, without them",
                false => "",
            };
            inform(format_args!(
                "usdtrec: dropped all capabilities: files that are mapped from now on are not recorded{user}"
            ));
        }
        inform(line);
    }
    service::ready(line);
}

/// With `-v`: prints why the bpf engine was not used, with the kernel verifier's full log.
pub(super) fn print_refused_engines(session: &Session) {
    if let Some(error) = session.passed_over() {
        let error = advice::message(error);
        say(format_args!("usdtrec: bpf engine not used: {error}"));
    }
}

/// Prints that processes are recorded, too, which those of `-p` had started before.
pub(super) fn print_children(args: &CaptureArgs, children: &[u32]) {
    let of = match &*args.pid {
        [pid] => pid.to_string(),
        _ => "them".to_owned(),
    };
    let are = match children.len() {
        0 => return,
        1 => format!("1 child of {of} is"),
        number => format!("{number} children of {of} are"),
    };
    say(format_args!(
        "usdtrec: {are} recorded, too (-i excludes them)"
    ));
}

/// Prints that rings are smaller than they should be.
pub(super) fn print_smaller_rings(session: &Session) {
    let engine = session.engine();
    if let Some(wanted) = engine.unavailable_ring_bytes() {
        say(format_args!(
            "usdtrec: rings of {} instead of {} for each CPU: the kernel has no memory for larger ones (a limit of the memory cgroup?)",
            size(engine.ring_bytes() as f64),
            size(wanted as f64)
        ));
    }
}

/// With `-v`: prints each site and what is captured there.
pub(super) fn print_sites(session: &Session) {
    let engine = session.engine();
    say(format_args!(
        "usdtrec: {}, one ring of {} for each CPU",
        engine.in_kernel(),
        size(engine.ring_bytes() as f64)
    ));
    for skipped in engine.skipped() {
        say(format_args!("usdtrec: {skipped}"));
    }
    if let Some(error) = missing_keeper() {
        say(format_args!(
            "usdtrec: io_uring is not available: if the recorder and all its helpers are killed while they detach, breakpoints can stay in programs: {error}"
        ));
    }
    for probe in session.probes() {
        for PlannedSite { site, .. } in &probe.sites {
            say(format_args!(
                "usdtrec: {} in {} at offset {:#x}: {}{}",
                probe.event(),
                shown(&probe.path),
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

/// How a site is captured.
fn captured(plan: &CapturePlan) -> String {
    match &plan.raw {
        Some(raw) => format!(
            "{} bytes of values, {}",
            raw.size,
            counted(raw.strings().count(), "string")
        ),
        None => format!(
            "{} registers, {} bytes of stack",
            plan.registers.count_ones(),
            plan.stack
        ),
    }
}

/// Prints why the recording ended, unless the user or the command ended it.
pub(in crate::cmd) fn print_end_reason(verb: &str, args: &CaptureArgs, outcome: &Outcome) {
    let why = match (outcome.end, &*args.pid, &*args.tid) {
        (End::Size, ..) => "size limit reached, recording ended".to_owned(),
        (End::Triggered, ..) => "--until: a trigger fired, recording ended".to_owned(),
        (End::Gone, [pid], _) => format!("process {pid} and what it started have ended"),
        (End::Gone, [_, _, ..], _) => "the processes and what they started have ended".to_owned(),
        (End::Gone, [], [tid]) => format!("thread {tid} has ended"),
        (End::Gone, [], [_, _, ..]) => "the threads have ended".to_owned(),
        _ => return,
    };
    let statuses = statuses(&outcome.ended);
    inform(format_args!("[ usdtrec {verb}: {why}{statuses} ]"));
}

/// How processes ended, as far as is known; of many, the first few.
fn statuses(ended: &[EndedProcess]) -> String {
    const NAMED: usize = 6;
    let mut words = String::new();
    let known = ended
        .iter()
        .filter_map(|process| Some((process.pid, process.status?)));
    for (number, (pid, status)) in known.take(NAMED).enumerate() {
        words.push_str(if number == 0 { "; " } else { ", " });
        // std knows the names of signals.
        let text = status.to_string();
        words.push_str(&match (status.code(), text.strip_prefix("signal: ")) {
            (Some(code), _) => format!("{pid} exited with status {code}"),
            (None, Some(signal)) => format!("{pid} was killed by signal {signal}"),
            (None, None) => format!("{pid}: {text}"),
        });
    }
    words
}

/// Prints which of the chosen control groups are missing still, and who runs a chosen file without executing it, if that explains why there are no events.
pub(in crate::cmd) fn print_missing_groups(args: &CaptureArgs, outcome: &Outcome) {
    if outcome.totals.samples > 0 {
        return;
    }
    let choice = process_choice(args);
    for remark in choice.group_remarks().unwrap_or_default() {
        if let GroupRemark::Missing(group) = remark {
            say(format_args!("usdtrec: {} at the end", group.absence()));
        }
    }
    print_loaded(&choice.executables);
}

/// Prints the summary: duration, events, losses, file size.
pub(super) fn print_summary(outcome: &Outcome, path: &Path) {
    let totals = outcome.totals;
    let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
    let share = match lost {
        0 => String::new(),
        _ => format!(" ({:.2} %)", percent(lost, lost + totals.samples)),
    };
    let waits = match outcome.engine.waits {
        0 => String::new(),
        waits => format!(", {}", counted(waits, "wait")),
    };
    let per_event = match totals.samples + outcome.engine.waits {
        // The file's header would dominate the quotient.
        0..1000 => String::new(),
        samples => format!(
            " ({:.1} B/event, {:.1} before compression)",
            totals.file_bytes as f64 / samples as f64,
            totals.raw_bytes as f64 / samples as f64
        ),
    };
    let exactness = if outcome.cpus_uncounted {
        "; not exact: CPUs went off line or came on line"
    } else {
        ""
    };
    inform(format_args!(
        "[ usdtrec record: {:.1} s, {} events{waits}, {lost} lost{share}, wrote {} {}{per_event}{exactness} ]",
        outcome.elapsed.as_secs_f64(),
        totals.samples,
        size(totals.file_bytes as f64),
        shown(path)
    ));
}

/// With `-v`: prints why probes were attached in all processes of the files while recording.
pub(in crate::cmd) fn print_scope(outcome: &Outcome) {
    if let Some(reason) = &outcome.engine.planted_everywhere {
        say(format_args!(
            "usdtrec: the probes were attached in all processes of the files while recording: {reason}"
        ));
    }
}

/// Why hits are lost, and what to do.
const FULL_RING: &str =
    "the ring was full; try a larger -m, or fewer probes; stat counts hits without rings";

/// A line for each probe that lost hits; one that is in several files is one.
fn losses_by_probe(losses: &[ProbeHits]) -> Vec<String> {
    let mut of_probes: Vec<(ProbeHits, usize)> = Vec::new();
    for loss in losses {
        match of_probes
            .iter_mut()
            .find(|(known, _)| known.event == loss.event)
        {
            Some((known, files)) => {
                known.lost += loss.lost;
                known.hits += loss.hits;
                *files += 1;
            }
            None => of_probes.push((loss.clone(), 1)),
        }
    }
    let line = |(loss, files): &(ProbeHits, usize)| {
        let files = match files {
            1 => String::new(),
            files => format!(" in {files} files"),
        };
        let ProbeHits { event, lost, hits } = loss;
        let share = percent(*lost, *hits);
        format!("{event} lost {lost} of {hits} hits ({share:.2} %){files}")
    };
    of_probes.iter().map(line).collect()
}

/// Prints the losses, also with `-q`.
pub(in crate::cmd) fn print_losses(outcome: &Outcome) {
    // What is counted in the kernel is lost to filters alone, which is said below.
    let has_rings = outcome.counted.is_none();
    let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
    let counters = COUNTERS.iter().filter_map(|counter| {
        let hits = outcome.engine.counts.of(counter.kind);
        counter.why_lost.filter(|_| hits > 0).map(|why| (why, hits))
    });
    let (mut why, known): (Vec<&str>, Vec<u64>) = counters.unzip();
    if known.iter().sum::<u64>() < lost || why.is_empty() {
        why.push(FULL_RING);
    }
    let why = why.join(", or ");
    for line in losses_by_probe(&outcome.losses)
        .iter()
        .filter(|_| has_rings)
    {
        say(format_args!("  {line} because {why}"));
    }
    if !outcome.changed_cpus.is_empty() {
        say(format_args!(
            "usdtrec: CPUs {:?} went off line or came on line while recording: names and mappings of programs that started there meanwhile may be \
             missing from the trace{}",
            outcome.changed_cpus,
            if outcome.cpus_uncounted {
                "; hits there may be missing, too, and are not counted as lost (the bpf engine records them)"
            } else {
                ""
            }
        ));
    }
    if outcome.engine.without_stack > 0 {
        say(format_args!(
            "usdtrec: {} of {} events have no stack, because of --stack-rate",
            outcome.engine.without_stack, outcome.totals.samples
        ));
    }
    print_cut_stacks(&outcome.cut_stacks);
    if outcome.unaccounted > 0 {
        say(format_args!(
            "usdtrec: the kernel counted {} hits that are neither in the trace nor counted as lost",
            outcome.unaccounted
        ));
    }
}

/// Prints at which probes stacks are cut because too little was copied, and what to do.
fn print_cut_stacks(cut_stacks: &[CutStacks]) {
    /// Probes that are named.
    const NAMED: usize = 3;
    let (cut, stacks) = cut_stacks.iter().fold((0, 0), |(cut, stacks), event| {
        (cut + event.cut, stacks + event.stacks)
    });
    if cut == 0 {
        return;
    }
    let named = cut_stacks.iter().take(NAMED).map(|event| {
        let CutStacks {
            event, cut, stacks, ..
        } = event;
        format!("{event} {cut} of {stacks}")
    });
    let mut probes = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = cut_stacks.len().checked_sub(NAMED).filter(|more| *more > 0) {
        probes += &format!(", and {more} more");
    }
    let Some(cause) = cut_stacks.iter().map(|event| event.cause).max() else {
        return;
    };
    let remedy = match cause {
        CutCause::AskedFor(CallGraph::MAX_BYTES..) => "--call-graph fp, which copies none",
        CutCause::AskedFor(0x4000..) | CutCause::Chosen(0x4000..) => "--call-graph dwarf,32K",
        CutCause::AskedFor(_) => "--call-graph dwarf,16K",
        // The stacks before were smaller, or the ring was crowded.
        CutCause::Chosen(_) => "--call-graph dwarf,16K, with a larger -m if hits are lost",
    };
    say(format_args!(
        "usdtrec: {cut} of {stacks} stacks ({:.2} %) are cut, because too little was copied: {probes}; try {remedy}",
        percent(cut, stacks)
    ));
}

/// Reports of what happens while recording, each printed once.
pub(in crate::cmd) struct RunningReports {
    quiet: bool,
    /// Number of changes of files that are written.
    changes: usize,
    /// Number of guard processes that were killed.
    deaths: usize,
    /// Number of shortfalls.
    shortfalls: usize,
}

impl RunningReports {
    pub(in crate::cmd) const fn new(quiet: bool) -> Self {
        Self {
            quiet,
            changes: 0,
            deaths: 0,
            shortfalls: 0,
        }
    }

    /// Whether there is something that is not reported yet.
    pub(in crate::cmd) fn has_new(&self, progress: &Progress) -> bool {
        progress.changes.len() > self.changes
            || progress.guard_deaths.len() > self.deaths
            || progress.shortfalls.len() > self.shortfalls
    }

    /// Prints what is not reported yet.
    pub(in crate::cmd) fn print_new(&mut self, progress: &Progress) {
        for change in progress.changes.iter().skip(self.changes) {
            say(format_args!("usdtrec: {change}"));
        }
        for death in progress.guard_deaths.iter().skip(self.deaths) {
            if death.failure.is_some() || !self.quiet {
                say(format_args!("usdtrec: {}", advice::guard_death(death)));
            }
        }
        self.changes = progress.changes.len();
        self.deaths = progress.guard_deaths.len();
        self.print_shortfalls(&progress.shortfalls);
    }

    /// Printed with `-q`, too, as losses are.
    fn print_shortfalls(&mut self, shortfalls: &[Shortfall]) {
        let new = shortfalls.iter().skip(self.shortfalls);
        // Counts of spans are printed at the end.
        for shortfall in new.filter(|shortfall| shortfall.kind != ShortfallKind::ShortSpans) {
            say(format_args!("usdtrec: {}", advice::shortfall(shortfall)));
        }
        self.shortfalls = shortfalls.len();
    }

    /// At the end: prints what is not reported yet, the shortfalls of which more processes were found meanwhile, and a summary line of
    /// the files that appeared.
    pub(in crate::cmd) fn print_all(&mut self, outcome: &Outcome) {
        let printed = outcome.shortfalls.iter().take(self.shortfalls);
        for shortfall in printed.filter(|shortfall| shortfall.processes > 1) {
            say(format_args!("usdtrec: {}", advice::shortfall(shortfall)));
        }
        self.print_shortfalls(&outcome.shortfalls);
        if let Some(files) = followed(outcome.followed).filter(|_| !self.quiet) {
            say(format_args!("usdtrec: {files}"));
        }
    }
}

/// Prints what was counted of spans of which only slow ones were recorded. Those that could not be kept are printed with `quiet`, too.
pub(in crate::cmd) fn print_spans(outcome: &Outcome, args: &CaptureArgs) {
    let Some(spans) = outcome.engine.spans else {
        return;
    };
    if !args.quiet {
        let excluded = match args.filters.iter().any(Option::is_some) {
            true => ", or excluded by --filter",
            false => "",
        };
        say(format_args!(
            "usdtrec: {} too short to be recorded{excluded}; {} without a begin",
            counted(spans.short, "span"),
            counted(spans.unmatched, "end")
        ));
    }
    let kept = [
        (spans.full, "because too many were open at once"),
        (
            spans.deep,
            "because more than 16 of their thread were open at once",
        ),
    ];
    for (number, why) in kept.iter().filter(|(number, _)| *number > 0) {
        let spans = counted(*number, "span");
        say(format_args!("usdtrec: {spans} not matched, {why}"));
    }
    print_older(None, spans.older);
}

/// Says that ends are equal to an older begin of their thread than the newest, which they took: so many of a span, or of all.
pub(in crate::cmd) fn print_older(span: Option<&str>, older: u64) {
    if older > 0 {
        let of = span.map(|name| format!(" of {}", escape(name)));
        say(format_args!(
            "usdtrec: warning: {}{} matched the newest begin of the thread, but an older one has the same number: spans overlap there; match them by the \
             argument that identifies them: --key tid,ARG",
            counted(older, "end"),
            of.unwrap_or_default()
        ));
    }
}

/// How many files with selected probes appeared while recording, and were attached to or not; `None` if none did. Those that were not read are shortfalls.
fn followed(files: FollowedFiles) -> Option<String> {
    let FollowedFiles { planted, refused } = files;
    let counts = [
        (planted, "", "followed: "),
        (refused, " with selected probes", "not followed: "),
    ];
    let counts = counts.into_iter().filter(|(number, ..)| *number > 0);
    let words: Vec<String> = counts
        .map(|(number, which, what)| format!("{what}{}{which}", counted(number, "file")))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// The progress line, redrawn on a terminal while recording.
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

    /// Calls `print` with the line cleared, and draws the line again.
    pub(super) fn interrupt(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn draw(&mut self, progress: &Progress) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = progress.elapsed.max(Duration::from_millis(1)).as_secs_f64();
        let totals = progress.totals;
        self.bar.set_message(format!(
            "[ {seconds:.1} s, {} events, {:.0}/s, {} ] Ctrl-C to end",
            totals.samples,
            totals.samples as f64 / seconds,
            size(totals.file_bytes as f64)
        ));
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints a notice about the end of a recording. With `quiet`, only what is left undone when the process exits is printed.
pub(in crate::cmd) fn print_notice(notice: Notice, quiet: bool) {
    if !quiet || notice.is_final() {
        say(format_args!("usdtrec: {}", advice::notice(&notice)));
    }
}
