//! Messages of `record` about triggers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use usdtrec_format::counted;
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::scaled::{duration, size};
use usdtrec_record::{Outcome, ShortenedWindow, TriggerEvent, WrittenWindow};
use usdtrec_report::trigger;

use crate::advice;
use crate::terminal::{inform, say};

/// The files that a recording has written for triggers.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenFiles {
    number: usize,
    /// The newest one.
    last: PathBuf,
    /// Number of files that hold less than the window, and the one that holds the least.
    shortened: usize,
    least: Option<ShortenedWindow>,
}

impl WrittenFiles {
    /// Counts the files among events, and prints these.
    pub(super) fn print(&mut self, events: &[TriggerEvent], quiet: bool) {
        for event in events {
            if let TriggerEvent::Written(written) = event {
                self.count(written);
            }
            print(event, quiet);
        }
    }

    fn count(&mut self, written: &WrittenWindow) {
        self.number += 1;
        self.last.clone_from(&written.path);
        self.shortened += usize::from(written.shortened.is_some());
        let both = self.least.into_iter().chain(written.shortened);
        self.least = both.min_by_key(|window| window.held);
    }

    /// Prints the summary of a recording with a window.
    pub(super) fn print_summary(self, outcome: &Outcome, path: &Path) {
        let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
        let files = self.words(path);
        inform(format_args!(
            "[ usdtrec record: {:.1} s, {} events, {lost} lost; {files} ]",
            outcome.elapsed.as_secs_f64(),
            outcome.totals.samples
        ));
        if let Some(ShortenedWindow { held, asked, bytes }) = self.least {
            let ns = |time: Duration| duration(time.as_nanos() as f64);
            say(format_args!(
                "usdtrec: {} less than the {} of --ring, the shortest {}: the records filled the {} of memory; for more, --ring TIME,SIZE",
                match self.shortened {
                    1 => "1 file holds".to_owned(),
                    number => format!("{number} files hold"),
                },
                ns(asked),
                ns(held),
                size(bytes as f64)
            ));
        }
    }
}

impl WrittenFiles {
    /// What was written, of which `path` is the name that `-o` gives: a file that ends the recording (`--until`) has it, others have the time after it.
    fn words(&self, path: &Path) -> String {
        let is_last_plain = self.last.file_name() == path.file_name();
        let path = shown(path);
        match self.number {
            0 => "no trigger fired: wrote no file".to_owned(),
            1 => format!("wrote 1 file, {}", shown(&self.last)),
            number if is_last_plain => format!("wrote {number} files, {path}.* and {path}"),
            number => format!("wrote {number} files {path}.*"),
        }
    }
}

/// Prints how many triggers had no file, in the cooldown and before.
pub(super) fn print_without_file(outcome: &Outcome) {
    if let more @ 1.. = outcome.without_file {
        say(format_args!(
            "usdtrec: {} fired without a file of {} own",
            counted(more as usize, "further trigger"),
            if more == 1 { "its" } else { "their" }
        ));
    }
}

/// Faults are printed with `quiet`, too.
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
            "usdtrec: {}: no file was written, recording continues: {}",
            trigger::cause(fired),
            advice::message(&**error)
        )),
        TriggerEvent::Command(fault) => say(format_args!("usdtrec: --trigger-cmd: {fault}")),
        TriggerEvent::NoRequests(error) => say(format_args!(
            "usdtrec: usdtrec dump cannot reach this recorder, but SIGUSR2 can: {error}"
        )),
        TriggerEvent::Idle { trigger } => say(format_args!(
            "usdtrec: no probe can fire {} yet: it waits for a file with one",
            escape(trigger)
        )),
        TriggerEvent::Overlap { span, ends } => say(format_args!(
            "usdtrec: warning: {} of {} matched the newest begin of the thread, but an older one has the same number: spans overlap there, so a trigger may have \
             fired for a wrong duration",
            counted(*ends, "end"),
            escape(span)
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
        shortened,
        took,
        ..
    } = written;
    let ns = |time: Duration| duration(time.as_nanos() as f64);
    let asked = shortened.map(|shortened| format!(" instead of {}", ns(shortened.asked)));
    format!(
        "wrote {} ({}, {samples} events of {}{}) in {}: {}{}",
        shown(path),
        size(*bytes as f64),
        ns(*window),
        asked.unwrap_or_default(),
        ns(*took),
        trigger::cause(fired),
        trigger::further(fired)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_ends_a_recording_is_named() {
        let words = |number, last: &str| {
            let written = WrittenFiles {
                number,
                last: last.into(),
                ..WrittenFiles::default()
            };
            written.words(Path::new("u.data"))
        };
        assert_eq!(words(1, "/tmp/u.data"), "wrote 1 file, /tmp/u.data");
        assert_eq!(words(2, "/tmp/u.data.2026"), "wrote 2 files u.data.*");
        assert_eq!(
            words(2, "/tmp/u.data"),
            "wrote 2 files, u.data.* and u.data"
        );
    }
}
