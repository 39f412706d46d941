//! `--budget`: its value, and messages.

use clap::ValueEnum as _;
use usdtrec_format::escape::escape;
use usdtrec_record::{
    Budget, BudgetEvent, HitCosts, Options, Outcome, PausePlanned, PausedProbes, ThreadShare,
    check_privilege,
};

use crate::cli::{Engine, RecordArgs};
use crate::cmd::hit_trials::{HitTrials, TrialOutcome, TriedHits};
use crate::sdt;
use crate::terminal::{Usage, inform, say};

/// Number of events that are named.
const NAMED: usize = 4;

/// The budget, with what a hit costs here, which is measured; `None` if there is none.
pub(super) fn measured(args: &RecordArgs, options: &Options) -> anyhow::Result<Option<Budget>> {
    let Some(text) = &args.budget else {
        return Ok(None);
    };
    let BudgetOption { share, is_optional } = asked(text)?;
    refuse(args, options)?;
    check_privilege()?;
    let costs = CostTrials::new(args, options, Engine::BpfMulti).measure();
    match costs {
        Ok(costs) => Ok(Some(Budget { share, costs })),
        Err(error) if is_optional => {
            if !args.capture.quiet {
                let error = format!("{error:#}");
                inform(format_args!(
                    "usdtrec: recording without --budget {text}: {}",
                    escape(&error)
                ));
            }
            Ok(None)
        }
        Err(error) => Err(error.context("--budget: what a hit costs here cannot be measured")),
    }
}

/// Whether `--budget` can be used with the other options.
pub(super) fn is_possible(args: &RecordArgs, options: &Options) -> bool {
    refuse(args, options).is_ok()
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BudgetOption {
    share: f64,
    /// Whether to record without a budget where the kernel allows none.
    is_optional: bool,
}

/// `2%` or `2%,optional`.
fn asked(text: &str) -> Result<BudgetOption, Usage> {
    let (part, is_optional) = match text.strip_suffix(",optional") {
        Some(part) => (part, true),
        None => (text, false),
    };
    let percent = part.strip_suffix('%').and_then(|text| text.parse().ok());
    let percent = percent.filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0);
    let percent = percent.ok_or_else(|| {
        Usage(format!(
            "--budget: expected a part of each thread's time, more than 0% and at most 100%, like 2%, 0.5% or 2%,optional, found {text:?}"
        ))
    })?;
    Ok(BudgetOption {
        share: percent / 100.0,
        is_optional,
    })
}

/// Refuses options that cannot be used with a budget.
fn refuse(args: &RecordArgs, options: &Options) -> Result<(), Usage> {
    use Engine::{Auto, Bpf, BpfMulti};
    let reason = match args.capture.engine {
        Auto | Bpf | BpfMulti => match () {
            () if args.capture.no_follow => {
                "--budget cannot be used with --no-follow: a recorder without capabilities cannot attach probes again"
            }
            () if options.engine.slow_spans.is_some() => {
                "--budget cannot be used with --min: where spans are matched in the kernel, the hits of a thread are not known"
            }
            () if !sdt::PLANTED => {
                "--budget measures the cost of a hit with probes in this program, which has none on this architecture"
            }
            () => return Ok(()),
        },
        _ => {
            "--budget needs the bpf engine with uprobe_multi links: with others, detaching and attaching again takes too long"
        }
    };
    Err(Usage(reason.to_owned()))
}

/// Prints which probes are paused for the first time, and also with `-q` which could not be attached again.
pub(super) fn print_events(events: &[BudgetEvent], args: &RecordArgs) {
    let budget = args.budget.as_deref().unwrap_or_default();
    for event in events {
        match event {
            BudgetEvent::Paused(planned) if !args.capture.quiet => {
                inform(format_args!(
                    "usdtrec: --budget {budget}: {}",
                    line(planned)
                ));
            }
            BudgetEvent::Paused(_) => {}
            BudgetEvent::NotAttached { events, reason } => say(format_args!(
                "usdtrec: --budget {budget}: {} could not be attached again: {}; tried again each minute",
                names(events),
                escape(reason)
            )),
        }
    }
}

fn line(planned: &PausePlanned) -> String {
    let effect = match planned.recorded {
        0.0 => "not recorded any more, because detaching and attaching it once a minute would cost more than a quarter of the budget".to_owned(),
        recorded => format!("recorded about {} of the time", percent(recorded)),
    };
    let takes = taken(&names(&planned.events), &planned.takes);
    format!("{takes}: {effect}")
}

/// What the hits of events take of a thread.
pub(super) fn taken(events: &str, takes: &ThreadShare) -> String {
    let ThreadShare {
        rate,
        thread,
        thread_name,
        share,
    } = takes;
    let name = match &**thread_name {
        "" => String::new(),
        name => format!(" ({})", escape(name)),
    };
    let share = percent(*share);
    format!(
        "{events}: {rate:.0} hits a second take about {share} of the time of thread {thread}{name}"
    )
}

/// Prints which probes were paused, also with `-q`, as losses are; and which were not within the budget.
pub(super) fn print_paused(outcome: &Outcome) {
    for PausedProbes {
        events,
        pauses,
        recorded,
    } in &outcome.paused
    {
        let times = match pauses {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        say(format_args!(
            "  {} paused {times} because of --budget: recorded {} of the time",
            names(events),
            percent(*recorded)
        ));
    }
    let planted = outcome.followed.planted;
    if outcome.has_budget && planted > 0 {
        say(format_args!(
            "usdtrec: --budget has no effect on probes of files that appeared while recording: {}",
            usdtrec_format::counted(planted, "file")
        ));
    }
}

fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent >= 9.95 => format!("{percent:.0} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// The first events of a unit.
fn names(events: &[String]) -> String {
    let names: Vec<String> = events
        .iter()
        .take(NAMED)
        .map(|name| escape(name).to_string())
        .collect();
    let more = events.len().saturating_sub(NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_part_of_the_time() {
        let share = |text| asked(text).map(|asked| (asked.share, asked.is_optional));
        assert_eq!(share("2%").unwrap(), (0.02, false));
        assert_eq!(share("100%,optional").unwrap(), (1.0, true));
        for text in [
            "0%",
            "2",
            "101%",
            "-1%",
            "NaN%",
            "inf%",
            "%",
            "",
            "2 %",
            "2%,",
            ",optional",
        ] {
            let said = share(text).unwrap_err().0;
            assert!(said.starts_with("--budget: expected"), "{said}");
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let events: Vec<String> = (0..6).map(|number| format!("sdt_a:{number}")).collect();
        assert_eq!(
            names(&events),
            "sdt_a:0, sdt_a:1, sdt_a:2, sdt_a:3 and 2 more"
        );
        assert_eq!(names(&events[..1]), "sdt_a:0");
        assert_eq!(percent(0.412), "41 %");
        assert_eq!(percent(0.0493), "4.93 %");
    }
}
