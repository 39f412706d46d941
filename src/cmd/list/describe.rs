//! Descriptions of the listed probes: names and types of their arguments, and where in the code their sites are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use usdtrec_buildid_cache::IndexedProbe;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::schema::{Description, Schemas};
use usdtrec_format::{Arch, Binary, CodePlace, Operand, Probe, parse_operands};

use super::listing::Listing;
use crate::functions::Functions;

#[cfg(feature = "record")]
pub(super) use usdtrec_record::SiteNote;

/// A build that does not read processes has none.
#[cfg(not(feature = "record"))]
#[derive(Clone, Debug)]
pub(super) struct SiteNote {
    pub(super) pid: u32,
    pub(super) address: u64,
    pub(super) found: String,
}

/// Facts about a probe.
pub(super) struct Described {
    /// From a schema, or from debugging information.
    pub(super) description: Description,
    /// The operands of each site.
    pub(super) operands: Vec<Vec<Operand>>,
    /// Where in the code each site is.
    pub(super) places: Vec<CodePlace>,
    /// What matters about each site in the listed processes.
    pub(super) notes: Vec<Vec<SiteNote>>,
}

impl Described {
    fn new(IndexedProbe { indexed, probe }: &IndexedProbe<'_>, schemas: &Schemas) -> Self {
        let arch = indexed.binary.arch;
        let operands = operands(probe, arch);
        let of_sites: Vec<&[Operand]> = operands.iter().map(Vec::as_slice).collect();
        Self {
            description: schemas.describe_operands(probe, &of_sites, arch),
            operands,
            places: vec![CodePlace::default(); probe.sites.len()],
            notes: vec![Vec::new(); probe.sites.len()],
        }
    }
}

/// The operands of each site of a probe.
pub(super) fn operands(probe: &Probe, arch: Option<Arch>) -> Vec<Vec<Operand>> {
    let sites = probe.sites.iter();
    sites.map(|site| parse_operands(&site.args, arch)).collect()
}

/// Describes probes by their schemas, or by debugging information if there is no schema. `buildid_dir` is the build-id cache.
pub(super) fn describe(
    found: &[IndexedProbe<'_>],
    listing: &Listing,
    schemas: &Schemas,
    buildid_dir: Option<&Path>,
) -> Vec<Described> {
    let open = &listing.files;
    let described = found.iter().map(|found| Described::new(found, schemas));
    let mut described: Vec<Described> = described.collect();
    let mut files: BTreeMap<&Path, (&Binary, Vec<Listed<'_>>)> = BTreeMap::new();
    for (IndexedProbe { indexed, probe }, described) in found.iter().zip(&mut described) {
        if indexed.is_current() {
            let binary = &indexed.binary;
            let (_, listed) = files
                .entry(&binary.path)
                .or_insert_with(|| (binary, Vec::new()));
            listed.push(Listed { probe, described });
        }
    }
    let mut functions = Functions::new(buildid_dir);
    for (path, (binary, mut listed)) in files {
        let file = match open.get(path) {
            Some(file) => Arc::clone(file),
            // Skipped if the file is gone or is a different one now.
            None => match ObjectFile::open(path) {
                Ok(file) if file.build_id() == binary.build_id => Arc::new(file),
                _ => continue,
            },
        };
        add_functions(&file, &mut functions, &mut listed);
        add_debug_info(file, &mut listed);
    }
    add_notes(found, listing, &mut described);
    described
}

/// Fills in what matters about the sites of probes in the listed processes.
#[cfg(feature = "record")]
fn add_notes(found: &[IndexedProbe<'_>], listing: &Listing, described: &mut [Described]) {
    let running = usdtrec_record::RunningSites::default();
    let mut by_file: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for (at, probe) in found.iter().enumerate() {
        by_file
            .entry(&probe.indexed.binary.path)
            .or_default()
            .push(at);
    }
    for (path, probes) in by_file {
        let Some(file) = listing.files.get(path) else {
            continue;
        };
        let sites = probes.iter().flat_map(|at| &found[*at].probe.sites);
        let sites: Vec<usdtrec_format::Site> = sites.cloned().collect();
        let processes = listing.processes.iter();
        for (pid, _) in processes.filter(|(_, paths)| paths.iter().any(|one| one == path)) {
            let mut notes = running.notes(*pid, file, &sites).into_iter();
            for at in &probes {
                for all in &mut described[*at].notes {
                    all.extend(notes.by_ref().take(1).flatten());
                }
            }
        }
    }
}

/// Does nothing: this build does not read processes.
#[cfg(not(feature = "record"))]
fn add_notes(_found: &[IndexedProbe<'_>], _listing: &Listing, _described: &mut [Described]) {}

/// A probe, and what is known of it.
struct Listed<'a> {
    probe: &'a Probe,
    described: &'a mut Described,
}

/// Fills in the functions of the sites of one file.
fn add_functions(file: &ObjectFile, functions: &mut Functions<'_>, listed: &mut [Listed<'_>]) {
    for Listed { probe, described } in listed {
        for (site, place) in probe.sites.iter().zip(&mut described.places) {
            place.function = site.offset.and_then(|offset| functions.at(file, offset));
        }
    }
}

/// Fills in, from debugging information, the lines of the sites of one file, and the arguments of probes without a schema.
#[cfg(feature = "record")]
fn add_debug_info(file: Arc<ObjectFile>, listed: &mut [Listed<'_>]) {
    use usdtrec_record::Program;
    use usdtrec_record::debug_info::{self, DwarfNeed};
    let need = match listed.iter().all(Listed::has_schema) {
        true => DwarfNeed::CallsAndLines,
        false => DwarfNeed::Variables,
    };
    debug_info::read(&Program::new(file), need, |info| {
        for listed in listed.iter_mut().filter(|listed| !listed.has_schema()) {
            listed.described.description.arguments = info.arguments(&listed.sites());
        }
        let sites = listed.iter().flat_map(|listed| &listed.probe.sites);
        let addresses: Vec<u64> = sites.map(|site| site.pc).collect();
        let places = listed
            .iter_mut()
            .flat_map(|listed| &mut listed.described.places);
        for (place, line) in places.zip(info.lines(&addresses)) {
            place.source = line;
        }
    });
}

/// Does nothing: this build cannot read debugging information.
#[cfg(not(feature = "record"))]
fn add_debug_info(_file: Arc<ObjectFile>, _listed: &mut [Listed<'_>]) {}

#[cfg(feature = "record")]
impl Listed<'_> {
    fn has_schema(&self) -> bool {
        self.described.description.choice.schema.is_some()
    }

    /// Its sites with their operands.
    fn sites(&self) -> Vec<usdtrec_record::PlannedSite> {
        let sites = self.probe.sites.iter().zip(&self.described.operands);
        let planned = sites.map(|(site, operands)| usdtrec_record::PlannedSite {
            site: site.clone(),
            operands: operands.clone(),
            place: CodePlace::default(),
        });
        planned.collect()
    }
}
