//! Why probes have no events: what their schemas say that they need, and who had their files mapped.

use std::collections::{BTreeMap, BTreeSet};

use usdtrec_format::escape::{escape, shown};
use usdtrec_format::{FileDefinition, ProbeDefinition};

use crate::trace::process::mappers::MappersOfFile;
use crate::trace::session::Session;

/// Names, process ids and sentences that are shown one by one.
const SHOWN: usize = 6;

/// What is known of why probes have no events, in sentences, a few at most. `silent` says of an event's name whether it has none.
///
/// Only traces with probe definitions (ours) say anything.
#[must_use]
pub fn reasons(session: &Session, silent: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(definitions) = &session.info().definitions else {
        return Vec::new();
    };
    let probes = definitions.probes.iter();
    let (silent, heard): (Vec<_>, Vec<_>) = probes.partition(|probe| silent(&probe.event));
    let heard: BTreeSet<usize> = heard.iter().map(|probe| probe.file).collect();
    let files: BTreeSet<usize> = definitions.probes.iter().map(|probe| probe.file).collect();
    let files = files
        .into_iter()
        .filter_map(|at| Some((at, definitions.files.get(at)?)));
    let sentences = files.filter_map(|(at, file)| {
        let mappers = session.mappers().of_file(at);
        match heard.contains(&at) {
            true => others(file, &mappers),
            false => of_file(file, &mappers),
        }
    });
    let mut sentences: Vec<String> = sentences.collect();
    shorten(&mut sentences, "files");
    let mut needs = of_needs(&silent);
    shorten(&mut needs, "switches");
    sentences.append(&mut needs);
    sentences
}

/// Leaves the first few, and says how many more there are.
fn shorten(sentences: &mut Vec<String>, what: &str) {
    let more = sentences.len().saturating_sub(SHOWN);
    sentences.truncate(SHOWN);
    if more > 0 {
        sentences.push(format!("the same of {more} more {what}"));
    }
}

/// Why a probe may have no events, as its definition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause<'d> {
    needs: Option<&'d str>,
    filter: Option<&'d str>,
}

/// One sentence for each thing that is needed, and each filter.
fn of_needs(silent: &[&ProbeDefinition]) -> Vec<String> {
    let mut events: BTreeMap<Cause<'_>, BTreeSet<&str>> = BTreeMap::new();
    for probe in silent {
        let cause = Cause {
            needs: probe.needs.as_deref(),
            filter: probe.filter.as_deref(),
        };
        if cause.needs.is_some() || cause.filter.is_some() {
            events.entry(cause).or_default().insert(&probe.event);
        }
    }
    let sentence = |(cause, events): (Cause<'_>, BTreeSet<&str>)| {
        let names = events.iter().map(|event| short(event));
        let names: Vec<&str> = names.take(SHOWN).collect();
        let more = match events.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (it, need) = match events.len() {
            1 => ("it", "it needs"),
            _ => ("they", "they need"),
        };
        let names = escape(&names.join(", ")).into_owned() + &more;
        let needs = cause.needs.map(|needs| format!("{need} {}", escape(needs)));
        match (cause.filter.map(escape), needs) {
            (Some(filter), Some(needs)) => {
                format!(
                    "no events of {names} passed the filter {filter}; to be hit at all, {needs}"
                )
            }
            (Some(filter), None) => {
                format!("no events of {names} passed the filter {filter}, or {it} had no hits")
            }
            (None, needs) => format!("no events of {names}: {}", needs.unwrap_or_default()),
        }
    };
    events.into_iter().map(sentence).collect()
}

fn short(event: &str) -> &str {
    event.strip_prefix("sdt_").unwrap_or(event)
}

/// Who had a file mapped none of whose probes was hit. `None` if that explains nothing or is not known.
fn of_file(file: &FileDefinition, mappers: &MappersOfFile) -> Option<String> {
    // A path within /proc names one process's view of a file, which its mappings call otherwise.
    if file.path.starts_with("/proc") || mappers.same {
        return None;
    }
    let other = mappers.others();
    Some(match other.len() {
        0 => format!("no recorded process mapped {}", shown(&file.path)),
        _ => of_others(file, &other),
    })
}

/// Who had another version of a file mapped that was hit. Only what build-ids tell: of a file without one, the processes that were hit
/// may be those that run what was deleted meanwhile.
fn others(file: &FileDefinition, mappers: &MappersOfFile) -> Option<String> {
    let other = mappers.others_by_build_id();
    (!other.is_empty()).then(|| of_others(file, &other))
}

fn of_others(file: &FileDefinition, other: &BTreeSet<i32>) -> String {
    let path = shown(&file.path);
    let shown: Vec<String> = other.iter().take(SHOWN).map(i32::to_string).collect();
    let list = shown.join(",");
    let more = match other.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match other.len() {
        1 => format!(
            "process {list} runs another version of {path} than was recorded; record it with: -p {list}"
        ),
        count => format!(
            "{count} processes run another version of {path} than was recorded; record them with: -p {list}{more}"
        ),
    }
}
