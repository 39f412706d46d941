//! What debugging information adds to the probes that were selected.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::SourceLine;
use usdtrec_format::schema::Argument;

use crate::debug_info;
use crate::probe::{PlannedProbe, PlannedSite};

/// Adds names and types of the arguments of probes without a schema, and the lines of all sites.
pub(crate) fn add_debug_info(probes: &mut [PlannedProbe]) {
    let mut files: BTreeMap<FileId, Vec<&mut PlannedProbe>> = BTreeMap::new();
    for probe in probes {
        files.entry(probe.file().id()).or_default().push(probe);
    }
    for mut probes in files.into_values() {
        if probes.iter().any(|probe| is_unnamed(&probe.arguments)) {
            describe(&mut probes);
        } else {
            find_lines(&mut probes);
        }
    }
}

/// Adds what is known of the probes of one file.
fn describe(probes: &mut [&mut PlannedProbe]) {
    let Some(program) = probes.first().map(|probe| Shared::clone(&probe.program)) else {
        return;
    };
    // Several selected probes may be one.
    let mut events: BTreeMap<String, Vec<PlannedSite>> = BTreeMap::new();
    for probe in probes.iter() {
        let sites = events.entry(probe.event()).or_default();
        sites.extend_from_slice(&probe.sites);
    }
    let described = debug_info::describe(&program, events.values().map(Vec::as_slice));
    let mut lines = HashMap::new();
    let mut named = HashMap::new();
    for ((event, sites), info) in events.iter().zip(described) {
        lines.extend(sites.iter().map(|site| site.site.pc).zip(info.lines));
        named.insert(event, info.arguments);
    }
    for probe in probes {
        let is_unnamed = is_unnamed(&probe.arguments);
        if let Some(named) = named.get(&probe.event()).filter(|_| is_unnamed) {
            probe.arguments.clone_from(named);
        }
        set_lines(probe, &lines);
    }
}

/// Adds the lines of the sites of one file.
fn find_lines(probes: &mut [&mut PlannedProbe]) {
    let Some(program) = probes.first().map(|probe| Shared::clone(&probe.program)) else {
        return;
    };
    let sites = probes.iter().flat_map(|probe| probe.sites.iter().cloned());
    let sites: Vec<PlannedSite> = sites.collect();
    let addresses = sites.iter().map(|site| site.site.pc);
    let lines: HashMap<_, _> = addresses.zip(debug_info::lines(&program, &sites)).collect();
    for probe in probes {
        set_lines(probe, &lines);
    }
}

fn set_lines(probe: &mut PlannedProbe, lines: &HashMap<u64, Option<SourceLine>>) {
    for site in &mut probe.sites {
        site.place.source = lines.get(&site.site.pc).cloned().flatten();
    }
}

/// Whether there are arguments, and none of them has a name or a type.
fn is_unnamed(arguments: &[Argument]) -> bool {
    let mut places = arguments.iter().enumerate();
    !arguments.is_empty() && places.all(|(place, argument)| *argument == Argument::unnamed(place))
}
