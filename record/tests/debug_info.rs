//! Debugging information that is damaged: names may be missing, nothing else happens.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use usdtrec_buildid_cache::elf::{self, ObjectFile};
use usdtrec_format::Site;
use usdtrec_format::schema::Argument;
use usdtrec_record::debug_info::{self, DwarfNeed};
use usdtrec_record::{PlannedSite, Program};

fn program(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/debug")
        .join(format!("bare-{machine}"))
}

/// Names of the arguments of all probes.
fn names(content: &[u8], probes: &[Vec<Site>]) -> Option<Vec<String>> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let file = ObjectFile::from_file(file, PathBuf::from("damaged")).ok()?;
    let program = Program::new(Arc::new(file));
    let arch = program.file().arch();
    let parse = |site: &Site| PlannedSite::new(site.clone(), arch);
    let probes: Vec<Vec<_>> = probes
        .iter()
        .map(|sites| sites.iter().map(parse).collect())
        .collect();
    let named = debug_info::read(&program, DwarfNeed::Variables, |info| {
        let arguments = probes.iter().flat_map(|sites| info.arguments(sites));
        arguments.collect::<Vec<_>>()
    });
    let arguments = named.unwrap_or_default().into_iter();
    Some(arguments.map(|Argument { name, .. }| name).collect())
}

#[test]
fn any_damage_costs_names_alone() {
    let start = Instant::now();
    let mut named = 0;
    for machine in ["aarch64", "arm", "s390x"] {
        let path = program(machine);
        let binary = elf::read_binary(&path).unwrap();
        let probes: Vec<_> = binary
            .probes
            .iter()
            .map(|probe| probe.sites.clone())
            .collect();
        let content = fs::read(&path).unwrap();
        let whole = names(&content, &probes).unwrap();
        assert!(whole.iter().any(|name| name == "url"), "{whole:?}");
        let mut seed = 0x2545_f491_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        for round in 0..700 {
            let mut bytes = content.clone();
            if round % 8 == 0 {
                bytes.truncate(random(content.len()));
            } else {
                for _ in 0..1 + random(4) {
                    // The first bytes say where everything is: they are left alone most times.
                    let from = if round % 4 == 0 { 0 } else { 64 };
                    let at = from + random(content.len() - from);
                    bytes[at] = [0, 0xff, 0x7f, 0x80, random(256) as u8][random(5)];
                }
            }
            // Where the headers are damaged, there is no file to ask.
            let Some(found) = names(&bytes, &probes) else {
                continue;
            };
            // Without an architecture, all operands of a site are one that nobody understands.
            assert!(found.len() <= whole.len());
            named += usize::from(found == whole);
        }
    }
    assert!(named > 200, "{named} were not hit");
    // Seconds, but for a machine that is busy otherwise.
    let took = start.elapsed().as_secs();
    assert!(took < 1200, "{took} s");
}
