//! What `trace` and `top` share: they record into a pipe within the process, from which a thread shows what comes.

use std::fs::File;
use std::io::PipeReader;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_buildid_cache::Cache;
use usdtrec_record::{Destination, Options, Outcome, Released};
use usdtrec_report::{ReportError, Sources, Streamed};

use super::record::{Ready, capture, exit_code, planted, prepare, tell_losses};
use super::selection;
use crate::cli::CaptureArgs;
use crate::terminal::{is_closed_pipe, say};

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
        let mut ready = prepare(self.args, options, self.muted, self.buildid_dir)?;
        ready.signals.watch_output(self.output.try_clone()?)?;
        let sources = Sources {
            buildid_dir: Cache::open(self.buildid_dir)
                .ok()
                .map(|cache| cache.dir().to_owned()),
            ..Sources::default()
        };
        let (destination, pipe) = Destination::live(self.beats).context("cannot make a pipe")?;
        let (shown, recorded) = std::thread::scope(|scope| {
            let shower = scope.spawn(|| show(pipe, &sources));
            let recorded = self.record(ready, destination);
            let shown = shower.join();
            (shown, recorded)
        });
        let shown = shown.map_err(|_| anyhow::anyhow!("what shows the events failed"))?;
        self.end(shown.map_err(anyhow::Error::from), recorded)
    }

    /// Records; when this returns, all is in the pipe, and its end.
    fn record(
        &self,
        ready: Ready,
        destination: Destination,
    ) -> anyhow::Result<(Outcome, Released)> {
        let planted = planted(self.verb, &ready.session);
        let recording = ready.session.start(destination, ready.held)?;
        if !self.args.quiet {
            // Said when every probe is live: who waits for this line may start what he wants to see.
            say(planted);
        }
        let (outcome, released) = recording.run(&ready.signals, &mut |_| {});
        Ok((outcome?, released))
    }

    /// Tells how it went.
    fn end(
        &self,
        shown: anyhow::Result<Streamed>,
        recorded: anyhow::Result<(Outcome, Released)>,
    ) -> anyhow::Result<ExitCode> {
        let (streamed, (outcome, _released)) = match (shown, recorded) {
            (Ok(streamed), Ok(recorded)) => (streamed, recorded),
            // Where showing ends first, recording finds the pipe closed, and that alone is no failure.
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => return Err(error),
            (Err(shown), Err(recorded)) if is_closed_pipe(&recorded) => return Err(shown),
            (Err(_), Err(recorded)) => return Err(recorded),
        };
        selection::tell(Path::new(self.verb), &streamed.notices);
        if !self.args.quiet {
            let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
            say(format_args!(
                "[ usdtrec {}: {:.1} s, {} events, {lost} lost ]",
                self.verb,
                outcome.elapsed.as_secs_f64(),
                streamed.shown
            ));
        }
        tell_losses(&outcome);
        Ok(exit_code(&outcome))
    }
}
