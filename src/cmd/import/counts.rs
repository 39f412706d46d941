//! Counts of lines.

use super::bad_line::BadLine;
use super::event::ImportedEvent;
use super::line::Line;
use crate::terminal::say;

/// Number of bad lines that are shown.
const SHOWN: u64 = 10;

/// What the lines are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) events: u64,
    /// Lines that are not of a known form.
    pub(super) bad: u64,
    /// Maps and histograms.
    aggregates: u64,
    /// Events that were lost.
    pub(super) lost: u64,
    /// Whether more were lost than is known.
    pub(super) lost_some: bool,
    /// Events without a process, a thread, a CPU and a name of the thread.
    no_pid: u64,
    no_tid: u64,
    no_cpu: u64,
    no_comm: u64,
}

impl Counts {
    pub(super) fn event(&mut self, event: &ImportedEvent<'_>) {
        self.events += 1;
        self.no_pid += u64::from(event.pid.is_none());
        self.no_tid += u64::from(event.tid.is_none());
        self.no_cpu += u64::from(event.cpu.is_none());
        self.no_comm += u64::from(event.comm.is_none());
    }

    /// Counts a line without an event.
    pub(super) fn other(&mut self, line: &Line<'_>) {
        match line {
            Line::Lost(lost) => self.lost = self.lost.saturating_add(*lost),
            Line::LostSome => self.lost_some = true,
            Line::Aggregate => self.aggregates += 1,
            Line::Event(_) | Line::Other => {}
        }
    }

    pub(super) fn bad(&mut self, name: &str, number: u64, error: &BadLine) {
        self.bad += 1;
        if self.bad <= SHOWN {
            say(format_args!("usdtrec: {name}: line {number}: {error}"));
        }
    }

    /// Prints what is not an event, and what is not known; `losses` says what was lost.
    pub(super) fn print(&self, name: &str, losses: &str) {
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
        if self.lost > 0 || self.lost_some {
            say(format_args!("usdtrec: {name}: {losses}"));
        }
        self.print_unknown(name);
    }

    /// Says what is not known of events.
    fn print_unknown(&self, name: &str) {
        let mut is_any = false;
        for (count, field, shown) in [
            (self.no_pid, "vpid", "their process is -1"),
            (self.no_tid, "vtid", "their thread is -1"),
            (self.no_comm, "procname", "their thread has no name"),
            (self.no_cpu, "cpu_id", "their CPU is not known"),
        ] {
            if count > 0 {
                is_any |= field != "cpu_id";
                say(format_args!(
                    "usdtrec: {name}: events without {field}: {count}; {shown}"
                ));
            }
        }
        if is_any {
            say(format_args!(
                "usdtrec: LTTng records them after lttng add-context --userspace --type=vpid --type=vtid --type=procname"
            ));
        }
    }
}
