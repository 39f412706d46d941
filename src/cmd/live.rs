//! What `trace` and `top` share: they record into a pipe within the process, from which a thread shows what comes.

use std::fs::File;
use std::io::PipeReader;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;
use usdtrec_record::{Destination, Options, Outcome, RecordError, Recording, Signals};
use usdtrec_report::{ReportError, Sources, Streamed};

use super::record::{
    Ready, Said, capture, exit_code, notice, planted, prepare, tell_end, tell_losses,
};
use super::selection;
use crate::cli::CaptureArgs;
use crate::terminal::{is_closed_pipe, say};

/// How a recording went.
struct Recorded {
    outcome: Outcome,
    /// Which files that appeared were reported.
    said: Said,
    /// How the command ended, if there was one and it did.
    status: Option<ExitStatus>,
}

/// A verb that shows what is captured while it is.
pub(super) struct Live<'a> {
    /// Its name.
    pub(super) verb: &'static str,
    /// What is captured, and how.
    pub(super) args: &'a CaptureArgs,
    /// The build-id cache's directory, if it was named.
    pub(super) buildid_dir: Option<&'a Path>,
    /// Where it writes: all ends when nobody reads that any more.
    pub(super) output: File,
    /// Whether the command's standard output is our standard error.
    pub(super) muted: bool,
    /// Whether time is to be seen passing where there is nothing to show.
    pub(super) beats: bool,
}

impl Live<'_> {
    /// Captures until something ends it, and has `show` show what comes through the pipe.
    pub(super) fn run(
        self,
        show: impl FnOnce(PipeReader, &Sources) -> Result<Streamed, ReportError> + Send,
    ) -> anyhow::Result<ExitCode> {
        let options = Options {
            leave_command: true,
            ..capture(self.args)?
        };
        let duration = options.duration;
        let mut ready = prepare(self.args, options, self.muted, self.buildid_dir)?;
        ready.signals.watch_output(self.output.try_clone()?);
        let sources = Sources {
            buildid_dir: selection::cache_dir(self.buildid_dir),
            ..Sources::default()
        };
        let Ready {
            session,
            held,
            signals,
        } = ready;
        let (destination, pipe) =
            Destination::live(self.beats, &signals, duration).context("cannot make a pipe")?;
        let planted = planted(self.verb, &session);
        let (shown, recorded) = std::thread::scope(|scope| {
            let shower = scope.spawn(|| show(pipe, &sources));
            let started = session.start(destination, held);
            let recorded = self.record(planted, started, &signals);
            self.wait_for_reader(&signals, || shower.is_finished());
            let shown = shower.join();
            (shown, recorded)
        });
        let shown = shown.map_err(|_| anyhow::anyhow!("what shows the events failed"))?;
        self.end(shown.map_err(anyhow::Error::from), recorded)
    }

    /// Records; when this returns, all is in the pipe, and its end, and the probes are gone.
    fn record(
        &self,
        planted: String,
        started: Result<Recording, RecordError>,
        signals: &Signals,
    ) -> anyhow::Result<Recorded> {
        let recording = started?;
        if !self.args.quiet {
            // Said when every probe is live: who waits for this line may start what he wants to see.
            say(planted);
        }
        let mut said = Said::new(self.args.quiet);
        let (outcome, mut ending) = recording.run(signals, &mut |progress| {
            // A screen that is redrawn has no place for it.
            if !self.beats {
                said.say_new(&progress.appeared);
            }
        });
        let mut tell = |told| notice(told, self.args.quiet);
        let status = ending.end_command(signals, &mut tell);
        ending.let_go(signals, &mut tell);
        let outcome = outcome?;
        Ok(Recorded {
            outcome,
            said,
            status,
        })
    }

    /// Waits until what was captured is shown. Another signal ends the program without that: somebody may not read our output.
    fn wait_for_reader(&self, signals: &Signals, is_shown: impl Fn() -> bool) {
        const STEP: Duration = Duration::from_millis(5);
        const SAY_AFTER: Duration = Duration::from_secs(2);
        let begun = Instant::now();
        let mut said = self.args.quiet;
        while !is_shown() {
            if signals.has_arrived() {
                // As a shell gives the status of a process that SIGINT ended.
                std::process::exit(130);
            }
            if !said && begun.elapsed() >= SAY_AFTER {
                say(
                    "usdtrec: the recording has ended; waiting until the rest is read (Ctrl-C ends without it)",
                );
                said = true;
            }
            std::thread::sleep(STEP);
        }
    }

    /// Tells how it went.
    fn end(
        &self,
        shown: anyhow::Result<Streamed>,
        recorded: anyhow::Result<Recorded>,
    ) -> anyhow::Result<ExitCode> {
        let (streamed, recorded) = match (shown, recorded) {
            (Ok(streamed), Ok(recorded)) => (streamed, recorded),
            // Where showing ends first, recording finds the pipe closed, and that alone is no failure.
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => return Err(error),
            (Err(shown), Err(recorded)) if is_closed_pipe(&recorded) => return Err(shown),
            (Err(_), Err(recorded)) => return Err(recorded),
        };
        let Recorded {
            outcome,
            mut said,
            status,
        } = recorded;
        selection::tell(Path::new(self.verb), &streamed.notices);
        if !self.args.quiet {
            tell_end(self.verb, self.args, outcome.end);
            let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
            say(format_args!(
                "[ usdtrec {}: {:.1} s, {} events, {lost} lost ]",
                self.verb,
                outcome.elapsed.as_secs_f64(),
                streamed.shown
            ));
            for reason in &streamed.reasons {
                say(format_args!("usdtrec: {reason}"));
            }
        }
        said.say_all(&outcome.appeared);
        tell_losses(&outcome);
        Ok(exit_code(status))
    }
}
