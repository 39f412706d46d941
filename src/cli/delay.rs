//! `-D, --delay` of `record`, `trace` and `stat`.

use std::time::Duration;

use clap::Args;

/// When probes are attached.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DelayArgs {
    /// Attach the probes so many milliseconds after CMD has started, or from now on: until then programs have no breakpoints
    ///
    /// For programs that copy their code when they start, to huge pages for instance: with breakpoints in the copy they end by SIGTRAP. Hits in a copy are not recorded. --duration counts from when the probes are attached.
    #[arg(short = 'D', long, value_name = "MSECS", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,
}

impl DelayArgs {
    /// The delay.
    ///
    /// # Errors
    /// The message of a usage error.
    pub(super) fn parsed(&self) -> Result<Option<Duration>, String> {
        const MAX_MSECS: u64 = 86_400_000;
        let Some(text) = self.delay.as_deref() else {
            return Ok(None);
        };
        match text.parse() {
            Ok(msecs @ 1..=MAX_MSECS) => Ok(Some(Duration::from_millis(msecs))),
            _ if text == "-1" => Err(
                "--delay -1, to begin without events, is perf's: nothing could enable them here; give milliseconds, as 500"
                    .to_owned(),
            ),
            _ => Err(format!(
                "--delay: expected milliseconds from 1 to {MAX_MSECS} (a day), found {text:?}"
            )),
        }
    }
}
