//! Why probes have no events: what their schemas say that they need, and which processes mapped their files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use usdtrec_format::trace::ShortfallKind;
use usdtrec_format::{FileDefinition, ProbeDefinition};

use crate::process::mappers::MappersOfFile;
use crate::session::TraceSession;

/// Why probes have no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEventsReason {
    /// No recorded process mapped a file.
    Unmapped(PathBuf),
    /// Processes run another version of a file than was recorded.
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The processes, in ascending order.
        pids: Vec<i32>,
    },
    /// Probes need something to be hit at all, or a filter refused all of their hits.
    Needs {
        /// Names of the probes' events, in order.
        events: Vec<String>,
        /// What a schema says that they need.
        needs: Option<String>,
        /// The filter.
        filter: Option<String>,
    },
}

impl NoEventsReason {
    /// The known reasons why probes have no events: first those of files, then those of single probes. `has_none` says whether the event
    /// of this name has none.
    ///
    /// Only traces with probe definitions, as usdtrec writes them, have any.
    #[must_use]
    pub fn find(session: &TraceSession, has_none: impl Fn(&str) -> bool) -> Vec<Self> {
        let Some(definitions) = &session.info().definitions else {
            return Vec::new();
        };
        let probes = definitions.probes.iter();
        let (silent, fired): (Vec<_>, Vec<_>) = probes.partition(|probe| has_none(&probe.event));
        let hit: BTreeSet<usize> = fired.iter().map(|probe| probe.file).collect();
        let files: BTreeSet<usize> = definitions.probes.iter().map(|probe| probe.file).collect();
        let files = files
            .into_iter()
            .filter_map(|at| Some((at, definitions.files.get(at)?)));
        let of_files = files.filter_map(|(at, file)| {
            let mappers = session.mappers().of_file(at);
            match hit.contains(&at) {
                true => of_hit_file(file, &mappers),
                // The recorder says why.
                false if is_explained(session, file) => None,
                // Nobody asked for this program.
                false if file.by_any_pattern && mappers.others().is_empty() => None,
                false => of_file(file, &mappers),
            }
        });
        // What a program needs is no reason if the program did not run.
        let ran = |at: usize| {
            let is_known = |file: &FileDefinition| !file.path.starts_with("/proc");
            let mappers = session.mappers().of_file(at);
            hit.contains(&at) || mappers.same || !definitions.files.get(at).is_some_and(is_known)
        };
        let names = |probes: &[&ProbeDefinition]| -> HashSet<String> {
            probes.iter().map(|probe| probe.name.clone()).collect()
        };
        let (silent_names, fired_names) = (names(&silent), names(&fired));
        let explains = |probe: &ProbeDefinition, needs: &str| {
            let is_silent = |name: &str| silent_names.contains(name);
            let is_hit = |name: &str| fired_names.contains(name);
            // The probes that it names instead: if they are recorded, at least one has hits.
            let mut named = needs.split(|char: char| !char.is_alphanumeric() && char != '_');
            ran(probe.file) && (named.clone().any(is_hit) || !named.any(is_silent))
        };
        let needed = of_needs(&silent, explains);
        of_files.chain(needed).collect()
    }
}

/// Whether the recorder found that the code of a file is in other memory of a process, or that a process had ended before its probes worked.
fn is_explained(session: &TraceSession, file: &FileDefinition) -> bool {
    let kinds = [ShortfallKind::MovedCode, ShortfallKind::NotChecked];
    let mut shortfalls = session.shortfalls();
    shortfalls.any(|found| {
        let is_of_file = found.path == file.path || found.path.as_os_str().is_empty();
        kinds.contains(&found.kind) && is_of_file && !found.pids.is_empty()
    })
}

/// Why a probe may have no events, as its definition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause<'d> {
    needs: Option<&'d str>,
    filter: Option<&'d str>,
}

/// One reason for each thing that is needed, and each filter.
fn of_needs(
    silent: &[&ProbeDefinition],
    explains: impl Fn(&ProbeDefinition, &str) -> bool,
) -> Vec<NoEventsReason> {
    let mut events: BTreeMap<Cause<'_>, BTreeSet<&str>> = BTreeMap::new();
    for probe in silent {
        let cause = Cause {
            needs: probe
                .needs
                .as_deref()
                .filter(|needs| explains(probe, needs)),
            filter: probe.filter.as_deref(),
        };
        if cause.needs.is_some() || cause.filter.is_some() {
            events.entry(cause).or_default().insert(&probe.event);
        }
    }
    let reason = |(cause, events): (Cause<'_>, BTreeSet<&str>)| NoEventsReason::Needs {
        events: events.into_iter().map(str::to_owned).collect(),
        needs: cause.needs.map(str::to_owned),
        filter: cause.filter.map(str::to_owned),
    };
    events.into_iter().map(reason).collect()
}

/// Which processes mapped a file without a hit. `None` if that explains nothing or is not known.
fn of_file(file: &FileDefinition, mappers: &MappersOfFile) -> Option<NoEventsReason> {
    // A path in /proc is one process's view of a file; in its mappings the file has another path.
    if file.path.starts_with("/proc") || mappers.same {
        return None;
    }
    let other = mappers.others();
    Some(match other.len() {
        0 => NoEventsReason::Unmapped(file.path.clone()),
        _ => of_others(file, &other),
    })
}

/// Which processes mapped another version of a file with hits, as far as build-ids show it: without a build-id, the processes with hits
/// may be those that run a file which was deleted meanwhile.
fn of_hit_file(file: &FileDefinition, mappers: &MappersOfFile) -> Option<NoEventsReason> {
    let other = mappers.others_by_build_id();
    (!other.is_empty()).then(|| of_others(file, &other))
}

fn of_others(file: &FileDefinition, other: &BTreeSet<i32>) -> NoEventsReason {
    NoEventsReason::OtherVersion {
        file: file.path.clone(),
        pids: other.iter().copied().collect(),
    }
}
