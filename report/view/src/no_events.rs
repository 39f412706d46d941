//! Why probes have no events, in sentences.

use std::path::Path;

use usdtrec_format::escape::{escape, shown};
use usdtrec_trace::events::no_events::NoEventsReason;
use usdtrec_trace::session::event_name::short_name;

use crate::hints::{Hint, HintWords};
use crate::sentences::Sentences;

/// Names, process ids and sentences that are shown one by one.
const MAX_NAMES: usize = 6;

impl Sentences for [NoEventsReason] {
    /// The reasons as sentences, a few of each kind at most.
    fn sentences(&self, hints: HintWords) -> Vec<String> {
        let is_need = |reason: &&NoEventsReason| matches!(reason, NoEventsReason::Needs { .. });
        let (needs, files): (Vec<_>, Vec<_>) = self.iter().partition(is_need);
        let mut sentences = first(&files, "files", hints);
        sentences.append(&mut first(&needs, "switches", hints));
        sentences
    }
}

/// The first few, and how many more there are.
fn first(reasons: &[&NoEventsReason], what: &str, hints: HintWords) -> Vec<String> {
    let shown = reasons.iter().take(MAX_NAMES);
    let mut sentences: Vec<String> = shown.map(|reason| sentence(reason, hints)).collect();
    let more = reasons.len().saturating_sub(MAX_NAMES);
    if more > 0 {
        sentences.push(format!("the same of {more} more {what}"));
    }
    sentences
}

fn sentence(reason: &NoEventsReason, hints: HintWords) -> String {
    match reason {
        NoEventsReason::Unmapped(file) => format!("no recorded process mapped {}", shown(file)),
        NoEventsReason::OtherVersion { file, pids } => other_version(file, pids, hints),
        NoEventsReason::Needs {
            events,
            needs,
            filter,
        } => need(events, needs.as_deref(), filter.as_deref()),
    }
}

fn need(events: &[String], needs: Option<&str>, filter: Option<&str>) -> String {
    let names = events.iter().map(|event| short_name(event));
    let names: Vec<&str> = names.take(MAX_NAMES).collect();
    let (it, need) = match events.len() {
        1 => ("it", "it needs"),
        _ => ("they", "they need"),
    };
    let names = escape(&names.join(", ")).into_owned() + &and_more(events.len());
    let needs = needs.map(|needs| format!("{need} {}", escape(needs)));
    match (filter.map(escape), needs) {
        (Some(filter), Some(needs)) => {
            format!("no events of {names} passed the filter {filter}; to be hit at all, {needs}")
        }
        (Some(filter), None) => {
            format!("no events of {names} passed the filter {filter}, or {it} had no hits")
        }
        (None, needs) => format!("no events of {names}: {}", needs.unwrap_or_default()),
    }
}

fn other_version(file: &Path, pids: &[i32], hints: HintWords) -> String {
    let path = shown(file);
    let named = pids.get(..MAX_NAMES).unwrap_or(pids);
    let how = hints.between("; ", &Hint::Record { pids: named }, &and_more(pids.len()));
    match pids {
        [pid] => {
            format!("process {pid} runs another version of {path} than was recorded{how}")
        }
        pids => format!(
            "{} processes run another version of {path} than was recorded{how}",
            pids.len()
        ),
    }
}

/// What follows those of so many that are shown.
fn and_more(all: usize) -> String {
    match all.saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}
