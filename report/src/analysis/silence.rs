//! Why probes have no events: what their schemas say that they need, and who had their files mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use usdtrec_format::{FileDefinition, ProbeDefinition};

use crate::trace::process::mappers::MappersOfFile;
use crate::trace::session::Session;

/// Why probes have no events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Silence {
    /// No recorded process mapped a file.
    Unmapped(PathBuf),
    /// Processes run another version of a file than was recorded.
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The processes, in ascending order.
        pids: Vec<i32>,
    },
    /// Probes need something to be hit at all, or a filter let none of their hits through.
    Needs {
        /// Names of the probes' events, in order.
        events: Vec<String>,
        /// What a schema says that they need.
        needs: Option<String>,
        /// The filter.
        filter: Option<String>,
    },
}

/// What is known of why probes have no events: first what is known of files. `silent` says of an event's name whether it has none.
///
/// Only traces with probe definitions (ours) say anything.
pub(crate) fn reasons(session: &Session, silent: impl Fn(&str) -> bool) -> Vec<Silence> {
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
    let of_files = files.filter_map(|(at, file)| {
        let mappers = session.mappers().of_file(at);
        match heard.contains(&at) {
            true => others(file, &mappers),
            false => of_file(file, &mappers),
        }
    });
    of_files.chain(of_needs(&silent)).collect()
}

/// Why a probe may have no events, as its definition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause<'d> {
    needs: Option<&'d str>,
    filter: Option<&'d str>,
}

/// One reason for each thing that is needed, and each filter.
fn of_needs(silent: &[&ProbeDefinition]) -> Vec<Silence> {
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
    let reason = |(cause, events): (Cause<'_>, BTreeSet<&str>)| Silence::Needs {
        events: events.into_iter().map(str::to_owned).collect(),
        needs: cause.needs.map(str::to_owned),
        filter: cause.filter.map(str::to_owned),
    };
    events.into_iter().map(reason).collect()
}

/// Who had a file mapped none of whose probes was hit. `None` if that explains nothing or is not known.
fn of_file(file: &FileDefinition, mappers: &MappersOfFile) -> Option<Silence> {
    // A path within /proc names one process's view of a file, which its mappings call otherwise.
    if file.path.starts_with("/proc") || mappers.same {
        return None;
    }
    let other = mappers.others();
    Some(match other.len() {
        0 => Silence::Unmapped(file.path.clone()),
        _ => of_others(file, &other),
    })
}

/// Who had another version of a file mapped that was hit. Only what build-ids tell: of a file without one, the processes that were hit
/// may be those that run what was deleted meanwhile.
fn others(file: &FileDefinition, mappers: &MappersOfFile) -> Option<Silence> {
    let other = mappers.others_by_build_id();
    (!other.is_empty()).then(|| of_others(file, &other))
}

fn of_others(file: &FileDefinition, other: &BTreeSet<i32>) -> Silence {
    Silence::OtherVersion {
        file: file.path.clone(),
        pids: other.iter().copied().collect(),
    }
}
