//! What a hit costs here, measured as a recording records it.

use clap::ValueEnum as _;
use usdtrec_record::{HitCosts, Options};

use crate::cli::{Engine, RecordArgs};
use crate::cmd::hit_trials::{HitTrials, TrialOutcome, TriedHits};

/// What is to be measured.
pub(super) struct CostTrials {
    engine: String,
    reads_strings: bool,
    /// The value of `--call-graph`, if callers are recorded.
    callers: Option<String>,
}

impl CostTrials {
    pub(super) fn new(args: &RecordArgs, options: &Options, engine: Engine) -> Self {
        let callers = args.callers.call_graph.as_deref().unwrap_or("auto");
        let engine = engine.to_possible_value();
        Self {
            engine: engine.map_or_else(String::new, |value| value.get_name().to_owned()),
            reads_strings: options.engine.strings.limit > 0,
            callers: options.engine.graph.map(|_| callers.to_owned()),
        }
    }

    /// # Errors
    /// If hits cannot be recorded.
    pub(super) fn measure(&self) -> anyhow::Result<HitCosts> {
        let trials = HitTrials::new()?;
        let cost = |hits, options: &[&str]| {
            let all = [&["--engine", &*self.engine], options].concat();
            match trials.cost(hits, &all)? {
                TrialOutcome::Ns(ns) => Ok(ns),
                TrialOutcome::NotRecorded(reason) => Err(anyhow::Error::msg(reason)),
            }
        };
        let number = cost(&TriedHits::NUMBER, &[])?;
        Ok(HitCosts {
            number,
            strings: match self.reads_strings {
                true => cost(&TriedHits::STRINGS, &[])?,
                false => number,
            },
            callers: match &self.callers {
                Some(callers) => cost(
                    &TriedHits::NUMBER,
                    &["--call-graph", callers, "--no-symbols"],
                )?,
                None => number,
            },
        })
    }
}
