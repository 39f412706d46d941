//! Probes at one instruction: linkers fold functions whose code is equal (identical code folding), and a probe may have several notes there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::FileId;

use super::probe::PlannedProbe;
use super::probe::PlannedSite;
use crate::places;

/// Maximum number of probes that are named.
const NAMED: usize = 8;

/// Probes that are at one instruction, so that each hit of one is a hit of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedInstruction {
    /// The file.
    pub path: PathBuf,
    /// Link-time address of the instruction.
    pub pc: u64,
    /// The probes, each with the number of its notes there that have other arguments.
    pub probes: Vec<NotesOfProbe>,
}

/// A probe at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotesOfProbe {
    /// perf's event name.
    pub event: String,
    /// Number of notes with other arguments, each of which has its own events.
    pub notes: usize,
}

/// The notes at an instruction.
struct Notes<'p> {
    path: &'p Path,
    /// Number of them, by event.
    events: BTreeMap<String, usize>,
}

impl SharedInstruction {
    /// The shared instructions of the selected probes, in the order of files and addresses.
    #[must_use]
    pub fn find(probes: &[PlannedProbe]) -> Vec<Self> {
        let mut places: BTreeMap<(FileId, u64), Notes<'_>> = BTreeMap::new();
        for probe in probes {
            for site in &probe.sites {
                let here = places.entry((probe.file().id(), site.site.pc));
                let here = here.or_insert_with(|| Notes {
                    path: &probe.path,
                    events: BTreeMap::new(),
                });
                *here.events.entry(probe.event()).or_default() += 1;
            }
        }
        let shared = places.into_iter().filter_map(|((_, pc), here)| {
            (here.events.values().sum::<usize>() > 1).then(|| Self {
                path: here.path.to_owned(),
                pc,
                probes: here
                    .events
                    .into_iter()
                    .map(|(event, notes)| NotesOfProbe { event, notes })
                    .collect(),
            })
        });
        shared.collect()
    }
}

impl fmt::Display for SharedInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.probes.iter().take(NAMED);
        let names: Vec<String> = names
            .map(|probe| match probe.notes {
                1 => probe.event.clone(),
                notes => format!("{} ({notes} notes with different arguments)", probe.event),
            })
            .collect();
        let (path, pc) = (self.path.display(), self.pc);
        write!(
            f,
            "{path}: one instruction, at {pc:#x}, is {}",
            names.join(" and ")
        )?;
        if let more @ 1.. = self.probes.len().saturating_sub(NAMED) {
            write!(f, " and {more} more")?;
        }
        f.write_str(": each hit is an event of each")
    }
}

/// The sites of a probe without those of notes that say less than another one at the same instruction: the same arguments, or the first of them.
pub(super) fn with_most_arguments(sites: Vec<PlannedSite>) -> Vec<PlannedSite> {
    let mut chosen: Vec<PlannedSite> = Vec::with_capacity(sites.len());
    let mut at: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for site in sites {
        let here = at.entry((site.site.pc, site.site.semaphore)).or_default();
        // Further ones are refused later, unless the user named the file. Comparing each with all others would take for ever.
        if here.len() > places::AT_INSTRUCTION {
            here.push(chosen.len());
            chosen.push(site);
            continue;
        }
        let covered = |known: &PlannedSite| begins_with(&known.site.args, &site.site.args);
        let covers = |known: &PlannedSite| begins_with(&site.site.args, &known.site.args);
        if here.iter().any(|known| covered(&chosen[*known])) {
            continue;
        }
        match here.iter().find(|known| covers(&chosen[**known])) {
            Some(known) => chosen[*known] = site,
            None => {
                here.push(chosen.len());
                chosen.push(site);
            }
        }
    }
    chosen
}

/// Whether an argument string begins with the arguments of another one.
fn begins_with(args: &str, first: &str) -> bool {
    let rest = args.trim().strip_prefix(first.trim());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') || first.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use usdtrec_format::Site;

    use super::*;

    #[test]
    fn notes_that_say_more_are_chosen() {
        let site = |pc: u64, args: &str| {
            let site = Site {
                pc,
                base: 0,
                semaphore: 0,
                offset: Some(pc),
                semaphore_offset: None,
                args: args.to_owned(),
            };
            PlannedSite::new(site, None)
        };
        let chosen = |sites: &[(u64, &str)]| -> Vec<(u64, String)> {
            let sites = sites.iter().map(|(pc, args)| site(*pc, args));
            let chosen = with_most_arguments(sites.collect()).into_iter();
            chosen.map(|site| (site.site.pc, site.site.args)).collect()
        };
        let one = |args: &str| vec![(1, args.to_owned())];
        assert_eq!(chosen(&[(1, "4@%eax"), (1, "4@%eax")]), one("4@%eax"));
        assert_eq!(
            chosen(&[(1, "4@%eax"), (1, "4@%eax 8@%rsi")]),
            one("4@%eax 8@%rsi")
        );
        assert_eq!(
            chosen(&[(1, "4@%eax 8@%rsi"), (1, "")]),
            one("4@%eax 8@%rsi")
        );
        assert_eq!(chosen(&[(1, "4@$1"), (1, "4@$12")]).len(), 2);
        assert_eq!(chosen(&[(1, "4@$1"), (2, "4@$1")]).len(), 2);
        // They are compared as long as not too many differ.
        let differ = |count: usize| -> Vec<(u64, String)> {
            let args = (0..count).map(|number| format!("4@${number}"));
            args.map(|args| (1, args)).collect()
        };
        let with_twice = |count: usize| {
            let all = [differ(count), differ(1)].concat();
            let all: Vec<_> = all.iter().map(|(pc, args)| (*pc, &**args)).collect();
            chosen(&all).len()
        };
        assert_eq!(with_twice(places::AT_INSTRUCTION), places::AT_INSTRUCTION);
        assert_eq!(with_twice(1000), 1001);
    }
}
