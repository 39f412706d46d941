//! What debugging information adds to the probes that were selected.

use std::collections::BTreeMap;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::schema::Argument;

use crate::debug_info::{self, DebugInfo, Need};
use crate::select::planned_site::PlannedSite;
use crate::select::probe::PlannedProbe;

/// Adds names and types of the arguments of probes without a schema, and the lines of all sites.
pub(crate) fn add_debug_info(probes: &mut [PlannedProbe]) {
    let mut files: BTreeMap<FileId, Vec<&mut PlannedProbe>> = BTreeMap::new();
    for probe in probes {
        files.entry(probe.file().id()).or_default().push(probe);
    }
    for mut probes in files.into_values() {
        let Some(program) = probes.first().map(|probe| Shared::clone(&probe.program)) else {
            continue;
        };
        let need = match probes.iter().any(|probe| is_unnamed(&probe.arguments)) {
            true => Need::Arguments,
            false => Need::Lines,
        };
        debug_info::read(&program, need, |info| {
            name_arguments(info, &mut probes);
            add_lines(info, &mut probes);
        });
    }
}

/// Names the arguments of the probes of a file that have no schema.
fn name_arguments(info: &DebugInfo<'_>, probes: &mut [&mut PlannedProbe]) {
    // Several selected probes may be one.
    let mut events: BTreeMap<String, Vec<PlannedSite>> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| is_unnamed(&probe.arguments)) {
        let sites = events.entry(probe.event()).or_default();
        sites.extend_from_slice(&probe.sites);
    }
    let named = events.into_iter();
    let named: BTreeMap<_, _> = named
        .map(|(event, sites)| (event, info.arguments(&sites)))
        .collect();
    for probe in probes {
        if let Some(named) = named.get(&probe.event())
            && is_unnamed(&probe.arguments)
        {
            probe.arguments.clone_from(named);
        }
    }
}

/// Adds the lines of the sites of a file.
fn add_lines(info: &DebugInfo<'_>, probes: &mut [&mut PlannedProbe]) {
    let sites = probes.iter().flat_map(|probe| &probe.sites);
    let addresses: Vec<u64> = sites.map(|site| site.site.pc).collect();
    let sites = probes.iter_mut().flat_map(|probe| &mut probe.sites);
    for (site, line) in sites.zip(info.lines(&addresses)) {
        site.place.source = line;
    }
}

/// Whether there are arguments, and none of them has a name or a type.
fn is_unnamed(arguments: &[Argument]) -> bool {
    let mut places = arguments.iter().enumerate();
    !arguments.is_empty() && places.all(|(place, argument)| *argument == Argument::unnamed(place))
}
