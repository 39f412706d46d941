//! Descriptions of the listed probes: names and types of their arguments, and where in the code their sites are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use usdtrec_buildid_cache::IndexedProbe;
use usdtrec_buildid_cache::elf::ObjectFile;
#[cfg(feature = "record")]
use usdtrec_format::SourceLine;
use usdtrec_format::schema::{Description, Schemas};
use usdtrec_format::{Arch, Binary, CodePlace, Operand, Probe, parse_operands};

use super::listing::Files;
use crate::functions::Functions;

/// What is known of a probe.
pub(super) struct Described {
    /// From a schema, or from debugging information.
    pub(super) description: Description,
    /// The operands of each site.
    pub(super) operands: Vec<Vec<Operand>>,
    /// Where in the code each site is.
    pub(super) places: Vec<CodePlace>,
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
    open: &Files,
    schemas: &Schemas,
    buildid_dir: Option<&Path>,
) -> Vec<Described> {
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
    described
}

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
    use usdtrec_record::{PlannedSite, Program, debug_info};
    let sites = listed.iter().map(|Listed { probe, described }| {
        let sites = probe.sites.iter().cloned().zip(&described.operands);
        let planned = sites.map(|(site, operands)| PlannedSite {
            site,
            operands: operands.clone(),
            place: CodePlace::default(),
        });
        planned.collect()
    });
    let sites: Vec<Vec<PlannedSite>> = sites.collect();
    let has_schema = |listed: &Listed<'_>| listed.described.description.choice.schema.is_some();
    let program = Program::new(file);
    if listed.iter().all(has_schema) {
        let mut lines = debug_info::lines(&program, &sites.concat()).into_iter();
        for listed in listed {
            listed.set_lines(lines.by_ref());
        }
        return;
    }
    let info = debug_info::describe(&program, sites.iter().map(Vec::as_slice));
    for (listed, info) in listed.iter_mut().zip(info) {
        listed.set_lines(info.lines);
        if !has_schema(listed) {
            listed.described.description.arguments = info.arguments;
        }
    }
}

/// Does nothing: this build cannot read debugging information.
#[cfg(not(feature = "record"))]
fn add_debug_info(_file: Arc<ObjectFile>, _listed: &mut [Listed<'_>]) {}

#[cfg(feature = "record")]
impl Listed<'_> {
    /// Takes the lines of its sites.
    fn set_lines(&mut self, lines: impl IntoIterator<Item = Option<SourceLine>>) {
        for (place, line) in self.described.places.iter_mut().zip(lines) {
            place.source = line;
        }
    }
}
