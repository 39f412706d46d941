//! Descriptions of the listed probes: names and types of their arguments.

#[cfg(feature = "record")]
use std::collections::BTreeMap;
#[cfg(feature = "record")]
use std::path::Path;
#[cfg(feature = "record")]
use std::sync::Arc;

use usdtrec_buildid_cache::IndexedProbe;
#[cfg(feature = "record")]
use usdtrec_buildid_cache::elf::ObjectFile;
#[cfg(feature = "record")]
use usdtrec_format::Binary;
use usdtrec_format::schema::{Description, Schemas};
use usdtrec_format::{Arch, Operand, Probe, parse_operands};

use super::listing::Files;

/// What is known of a probe.
pub(super) struct Described {
    /// From a schema, or from debugging information.
    pub(super) description: Description,
    /// The operands of each site.
    pub(super) operands: Vec<Vec<Operand>>,
}

impl Described {
    fn new(IndexedProbe { indexed, probe }: &IndexedProbe<'_>, schemas: &Schemas) -> Self {
        let arch = indexed.binary.arch;
        let operands = operands(probe, arch);
        let of_sites: Vec<&[Operand]> = operands.iter().map(Vec::as_slice).collect();
        Self {
            description: schemas.describe_operands(probe, &of_sites, arch),
            operands,
        }
    }
}

/// The operands of each site of a probe.
pub(super) fn operands(probe: &Probe, arch: Option<Arch>) -> Vec<Vec<Operand>> {
    let sites = probe.sites.iter();
    sites.map(|site| parse_operands(&site.args, arch)).collect()
}

/// Describes probes by their schemas, or by debugging information if there is no schema.
pub(super) fn describe(
    found: &[IndexedProbe<'_>],
    open: &Files,
    schemas: &Schemas,
) -> Vec<Described> {
    let described = found.iter().map(|found| Described::new(found, schemas));
    let mut described: Vec<Described> = described.collect();
    add_debug_info(found, open, &mut described);
    described
}

/// A probe without a schema.
#[cfg(feature = "record")]
type Unknown<'a> = (&'a Probe, &'a mut Described);

/// Fills in the arguments of probes without a schema from debugging information, which is read once per file.
#[cfg(feature = "record")]
fn add_debug_info(found: &[IndexedProbe<'_>], open: &Files, described: &mut [Described]) {
    use usdtrec_record::{PlannedSite, Program, debug_info};
    let mut files: BTreeMap<&Path, (&Binary, Vec<Unknown<'_>>)> = BTreeMap::new();
    for (IndexedProbe { indexed, probe }, described) in found.iter().zip(described) {
        if described.description.choice.schema.is_none() && indexed.is_current() {
            let binary = &indexed.binary;
            let (_, unknown) = files
                .entry(&binary.path)
                .or_insert_with(|| (binary, Vec::new()));
            unknown.push((probe, described));
        }
    }
    for (path, (binary, unknown)) in files {
        let file = match open.get(path) {
            Some(file) => Arc::clone(file),
            // Skipped if the file is gone or is a different one now.
            None => match ObjectFile::open(path) {
                Ok(file) if file.build_id() == binary.build_id => Arc::new(file),
                _ => continue,
            },
        };
        let sites = unknown.iter().map(|(probe, described)| {
            let sites = probe.sites.iter().cloned().zip(&described.operands);
            let planned = sites.map(|(site, operands)| PlannedSite {
                site,
                operands: operands.clone(),
            });
            planned.collect()
        });
        let sites: Vec<Vec<PlannedSite>> = sites.collect();
        let named = debug_info::arguments(&Program::new(file), sites.iter().map(Vec::as_slice));
        for ((_, described), arguments) in unknown.into_iter().zip(named) {
            described.description.arguments = arguments;
        }
    }
}

/// Does nothing: this build cannot read debugging information.
#[cfg(not(feature = "record"))]
const fn add_debug_info(_found: &[IndexedProbe<'_>], _open: &Files, _described: &mut [Described]) {}
