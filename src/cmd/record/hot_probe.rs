//! The remark that a probe takes much of a thread's time, and what a hit costs here, measured as a recording records it.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use usdtrec_format::escape::escape;
use usdtrec_record::{HitCosts, Options, Progress};

use super::budget::{self, CostTrials};
use crate::cli::RecordArgs;
use crate::sdt;
use crate::terminal::inform;

/// What the remark needs. What a hit costs is measured only when there are many.
pub(super) struct HotProbeRemark {
    trials: Option<CostTrials>,
    costs: Arc<OnceLock<Option<HitCosts>>>,
    measuring: Option<JoinHandle<()>>,
    /// Whether a budget could be used, as far as options say.
    has_budget: bool,
}

impl HotProbeRemark {
    /// Has the recording look for a hot probe, unless its hits are within a budget or not known, or nothing is to be said.
    pub(super) fn new(args: &RecordArgs, options: &mut Options) -> Self {
        let engine = &options.engine;
        let is_wanted = !args.capture.quiet
            && engine.budget.is_none()
            && engine.slow_spans.is_none()
            && sdt::PLANTED;
        let trials = is_wanted.then(|| CostTrials::new(args, options, args.capture.engine));
        let costs = Arc::default();
        options.hit_costs = is_wanted.then(|| Arc::clone(&costs));
        Self {
            trials,
            costs,
            measuring: None,
            has_budget: budget::is_possible(args, options),
        }
    }

    /// Has what a hit costs measured, in a thread, when it is needed.
    pub(super) fn measure_if_needed(&mut self, progress: &Progress) {
        if !progress.needs_hit_costs {
            return;
        }
        if let Some(trials) = self.trials.take() {
            let costs = Arc::clone(&self.costs);
            // Without the thread it is not known.
            self.measuring = std::thread::Builder::new()
                .name("costs".to_owned())
                .spawn(move || {
                    let _ = costs.set(trials.measure().ok());
                })
                .ok();
        }
    }

    pub(super) fn print(&self, progress: &Progress) {
        let Some(hot) = &progress.hot_probe else {
            return;
        };
        let takes = budget::taken(&escape(&hot.event), &hot.takes);
        let hint = match self.has_budget && hot.can_pause {
            true => "; with --budget 2% it is detached for a part of the time",
            false => "",
        };
        inform(format_args!("usdtrec: {takes}{hint}"));
    }

    /// Waits for the measurement, whose files are removed then.
    pub(super) fn end(self) {
        if let Some(measuring) = self.measuring {
            // A panic was printed.
            let _ = measuring.join();
        }
    }
}
