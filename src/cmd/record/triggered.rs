//! Messages of `record` about triggers.

use std::path::Path;

use usdtrec_format::counted;
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::scaled::{duration, size};
use usdtrec_record::{Outcome, TriggerEvent, WrittenWindow};
use usdtrec_report::trigger;

use crate::advice;
use crate::terminal::{inform, say};

/// Number of files that a recording has written for triggers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenFiles(usize);

impl WrittenFiles {
    /// Counts the files among events, and prints these.
    pub(super) fn print(&mut self, events: &[TriggerEvent], quiet: bool) {
        for event in events {
            if let TriggerEvent::Written(_) = event {
                self.0 += 1;
            }
            print(event, quiet);
        }
    }

    /// Prints the summary of a recording with a window.
    pub(super) fn print_summary(self, outcome: &Outcome, path: &Path) {
        let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
        let files = match self.0 {
            0 => "no trigger fired: wrote no file".to_owned(),
            number => format!("wrote {} {}.*", counted(number, "file"), shown(path)),
        };
        inform(format_args!(
            "[ usdtrec record: {:.1} s, {} events, {lost} lost; {files} ]",
            outcome.elapsed.as_secs_f64(),
            outcome.totals.samples
        ));
    }
}

/// What is wrong is printed with `quiet`, too.
fn print(event: &TriggerEvent, quiet: bool) {
    match event {
        TriggerEvent::Written(_)
        | TriggerEvent::Noted(_)
        | TriggerEvent::Idle { .. }
        | TriggerEvent::NoRequests(_)
            if quiet => {}
        TriggerEvent::Written(written) => inform(format_args!("usdtrec: {}", line(written))),
        TriggerEvent::Noted(fired) => inform(format_args!(
            "usdtrec: {}: this file is kept, with those before and after it{}",
            trigger::cause(fired),
            trigger::further(fired)
        )),
        TriggerEvent::NotWritten { fired, error } => say(format_args!(
            "usdtrec: {}: no file was written, recording goes on: {}",
            trigger::cause(fired),
            advice::message(&**error)
        )),
        TriggerEvent::Command(fault) => say(format_args!("usdtrec: --trigger-cmd: {fault}")),
        TriggerEvent::NoRequests(error) => say(format_args!(
            "usdtrec: usdtrec dump does not reach this recorder, SIGUSR2 does: {error}"
        )),
        TriggerEvent::Idle { trigger } => say(format_args!(
            "usdtrec: no probe can fire {} yet: it waits for a file with one",
            escape(trigger)
        )),
    }
}

/// What was written, and why.
fn line(written: &WrittenWindow) -> String {
    let WrittenWindow {
        path,
        fired,
        samples,
        bytes,
        window,
        took,
        ..
    } = written;
    format!(
        "wrote {} ({}, {samples} events of {}) in {}: {}{}",
        shown(path),
        size(*bytes as f64),
        duration(window.as_nanos() as f64),
        duration(took.as_nanos() as f64),
        trigger::cause(fired),
        trigger::further(fired)
    )
}
