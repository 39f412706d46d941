//! What was selected, and what is done with it: debugging information names arguments, and only sites whose pages can be kept in the page cache are
//! attached.

use std::collections::BTreeMap;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_format::schema::{Argument, Disagreement};
use usdtrec_kernel::host::page_reading::NotCached;

use super::probe::{PlannedProbe, PlannedSite, SiteOffsets};
use super::program::Program;
use super::refusal::{NoProbe, Refusal, RefusalReason, Refusals};
use crate::debug_info::{self, DebugInfo, DwarfNeed};

/// Adds names and types of the arguments of probes without a schema, and the lines of all sites.
pub(super) fn add_debug_info(probes: &mut [PlannedProbe]) {
    let mut files: BTreeMap<FileId, Vec<&mut PlannedProbe>> = BTreeMap::new();
    for probe in probes {
        files.entry(probe.file().id()).or_default().push(probe);
    }
    for mut probes in files.into_values() {
        let Some(program) = probes.first().map(|probe| Shared::clone(&probe.program)) else {
            continue;
        };
        let need = match probes.iter().any(|probe| is_unnamed(&probe.arguments)) {
            true => DwarfNeed::Variables,
            false => DwarfNeed::CallsAndLines,
        };
        debug_info::read(&program, need, |info| {
            name_arguments(info, &mut probes);
            add_lines(info, &mut probes);
        });
        program.free_frames();
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

impl Selection {
    /// Reads the pages with selected sites. Those that are not in the page cache then are refused; with `force`, they are attached all the same.
    pub(super) fn keep_pages(&mut self, force: bool) {
        let mut programs: Vec<Shared<Program>> = Vec::new();
        for probe in &self.probes {
            if !programs
                .iter()
                .any(|known| Shared::ptr_eq(known, &probe.program))
            {
                programs.push(Shared::clone(&probe.program));
            }
        }
        let mut refusals = Refusals::default();
        for program in programs {
            let is_of = |probe: &&PlannedProbe| Shared::ptr_eq(&probe.program, &program);
            let probes = self.probes.iter().filter(is_of);
            let absent = program.keep_pages(probes.flat_map(pages));
            match (absent.is_empty(), force) {
                (true, _) => {}
                (false, true) => program.force_pages(),
                (false, false) => self.refuse_sites(&program, &absent, &mut refusals),
            }
        }
        self.refusals.extend(refusals.into_vec());
    }

    fn refuse_sites(
        &mut self,
        program: &Shared<Program>,
        absent: &BTreeMap<u64, NotCached>,
        refusals: &mut Refusals,
    ) {
        for probe in &mut self.probes {
            if !Shared::ptr_eq(&probe.program, program) {
                continue;
            }
            let mut reason = None;
            let (event, mut sites) = (probe.event(), std::mem::take(&mut probe.sites));
            sites.retain(|site| {
                let offsets = probe.offsets(&site.site);
                let mut pages = offsets.into_iter().flat_map(SiteOffsets::pages);
                let found = pages.find_map(|page| absent.get(&page));
                reason = reason.take().or_else(|| found.cloned());
                found.is_none()
            });
            probe.sites = sites;
            if let Some(reason) = reason {
                let reason = RefusalReason::NotCached(reason);
                refusals.add(Refusal::new(event, &probe.path, reason));
            }
        }
        self.probes.retain(|probe| !probe.sites.is_empty());
    }
}

/// The pages of all sites of a probe.
fn pages(probe: &PlannedProbe) -> impl Iterator<Item = u64> {
    let offsets = probe
        .sites
        .iter()
        .filter_map(|site| probe.offsets(&site.site).ok());
    offsets.flat_map(SiteOffsets::pages)
}

/// The result of a selection.
#[derive(Debug, Default)]
pub struct Selection {
    /// Probes to attach.
    pub probes: Vec<PlannedProbe>,
    /// Probes that will not be attached.
    pub refusals: Vec<Refusal>,
    /// Refusals of files that were found.
    pub refused_files: Vec<Refusal>,
    /// Disagreements between schemas and notes.
    pub disagreements: Vec<Disagreement>,
    /// Files named by path in the patterns; the caller may index them.
    pub named: Vec<Shared<ObjectFile>>,
    /// Patterns that select no probe yet.
    pub waiting: Vec<NoProbe>,
    /// Patterns without a probe in the files that the traced processes map. They were looked up in the indexed files.
    pub not_mapped: Vec<String>,
    /// Whether sites are 5-byte nops, which some kernels replace by calls, and a trial on a process of our own found that this kernel
    /// handles them safely.
    pub tried_nops: bool,
}
