//! `--at` and `--every`: recordings at moments.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use usdtrec_format::escape::shown;
use usdtrec_record::{End, Moment, Options, Signals, Waited};

use super::attach::select;
use super::exit_code::exit_code;
use super::once::{Once, Recorded};
use super::schedule::{Slots, date, stamp};
use crate::cli::{CaptureArgs, RecordArgs};
use crate::old_file::{unused, with_suffix};
use crate::output;
use crate::terminal::say;

/// `--at`: one recording at a moment.
pub(super) fn at(once: Once<'_>, moment: Moment) -> anyhow::Result<ExitCode> {
    let capture = &once.args.capture;
    // Finds errors before waiting. The programs may be others by then.
    select(capture, once.buildid_dir)?;
    let signals = Signals::catch(once.takes_switch())?;
    let wait = -moment.elapsed();
    if !capture.quiet && wait > 0 {
        let begin = Moment::wall_now().saturating_add(wait);
        say(format_args!(
            "usdtrec: recording begins at {}, in {:.3} s",
            date(begin),
            wait as f64 / 1e9
        ));
    }
    loop {
        match moment.wait(&signals)? {
            Waited::Due => break,
            // The moment is another time from now.
            Waited::ClockSet => {}
            Waited::Signal => bail!("interrupted before the recording began"),
        }
    }
    let selected = select(capture, once.buildid_dir)?;
    let once = Once {
        due: Some(moment),
        ..once
    };
    Ok(exit_code(once.record(selected, &signals)?.status))
}

/// `--every`: a recording in each period, until a signal.
pub(super) fn every(once: &Once<'_>, slots: Slots) -> anyhow::Result<ExitCode> {
    let capture = &once.args.capture;
    select(capture, once.buildid_dir)?;
    let signals = Signals::catch(false)?;
    let mut kept = KeptFiles {
        keep: once.args.switch_max_files,
        files: VecDeque::new(),
    };
    let mut due = slots.next(Moment::wall_now());
    if !capture.quiet {
        say(format_args!("usdtrec: recordings begin at {}", date(due)));
    }
    loop {
        match Moment::Wall(due).wait(&signals)? {
            Waited::Signal => return Ok(ExitCode::SUCCESS),
            Waited::ClockSet => {
                due = slots.next(Moment::wall_now());
                continue;
            }
            Waited::Due => {}
        }
        if has_ended(capture) {
            say("usdtrec: all recorded processes have ended");
            return Ok(ExitCode::SUCCESS);
        }
        let end = record(once, slots, due, &signals, &mut kept)?;
        if end == Some(End::Signal) || signals.has_arrived() {
            return Ok(ExitCode::SUCCESS);
        }
        let now = Moment::wall_now();
        let missed = slots.passed(slots.next(due), now);
        if missed > 0 {
            say(format_args!(
                "usdtrec: {missed} recording{} left out: the one of {} ended at {}",
                if missed == 1 { " is" } else { "s are" },
                date(due),
                date(now)
            ));
        }
        due = slots.next(now);
    }
}

/// The recording of a period. An error that another period may not have is printed. Returns why it ended; `None` after an error.
fn record(
    once: &Once<'_>,
    slots: Slots,
    due: i64,
    signals: &Signals,
    kept: &mut KeptFiles,
) -> anyhow::Result<Option<End>> {
    let args = RecordArgs {
        output: unused(with_suffix(&once.args.output, &stamp(due))),
        ..once.args.clone()
    };
    kept.make_room()?;
    let period = Once {
        args: &args,
        options: Options {
            duration: Some(slots.length),
            ..once.options.clone()
        },
        buildid_dir: once.buildid_dir,
        due: Some(Moment::Wall(due)),
    };
    let recorded = select(&args.capture, once.buildid_dir)
        .and_then(|selected| period.record(selected, signals));
    kept.add(&args.output);
    match recorded {
        Ok(Recorded { end, .. }) => Ok(Some(end)),
        Err(error) => {
            say(format_args!("usdtrec: {}: {error:#}", shown(&args.output)));
            Ok(None)
        }
    }
}

/// Whether processes or threads are recorded, and all of them have ended.
fn has_ended(capture: &CaptureArgs) -> bool {
    let ids = || capture.pid.iter().chain(&capture.tid);
    let lives = |id: &u32| Path::new(&format!("/proc/{id}")).exists();
    ids().next().is_some() && !ids().any(lives)
}

/// The newest files of `--switch-max-files`.
struct KeptFiles {
    keep: Option<u64>,
    files: VecDeque<PathBuf>,
}

impl KeptFiles {
    /// Removes the oldest files, so that there is room for one more.
    fn make_room(&mut self) -> anyhow::Result<()> {
        while self
            .keep
            .is_some_and(|keep| self.files.len() as u64 >= keep)
        {
            if let Some(oldest) = self.files.pop_front() {
                output::remove(&oldest)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) {
        if path.exists() {
            self.files.push_back(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_file_of_an_earlier_period_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.20261123T120000Z");
        for expected in [
            "trace.20261123T120000Z",
            "trace.20261123T120000Z.2",
            "trace.20261123T120000Z.3",
        ] {
            let found = unused(path.clone());
            assert_eq!(found, folder.path().join(expected));
            fs::write(found, "a trace").unwrap();
        }
        // A link that leads nowhere is there, too.
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert_eq!(unused(path), folder.path().join("trace.20261123T120000Z.4"));
    }
}
