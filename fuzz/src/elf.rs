//! ELF files: their probes, the check of each site, and their symbols.

use usdtrec_buildid_cache::elf::{self, ObjectFile};
use usdtrec_format::parse_operands;
use usdtrec_format::perf::{RawRecord, RecordType, SampleType};
use usdtrec_report::process::{Mappings, ProcessLog};
use usdtrec_report::symbols::Symbols;

use super::file::Scratch;

/// Reads the file in every way in which one is read.
pub fn run(bytes: &[u8]) {
    let scratch = Scratch::new(bytes);
    let path = scratch.path();
    match elf::scan(&path) {
        Ok(scan) => {
            let file = ObjectFile::open(&path).unwrap();
            let checked = file.check_file(scan.binary.build_id);
            for probe in &scan.binary.probes {
                assert!(!probe.sites.is_empty());
                for site in &probe.sites {
                    assert!(parse_operands(&site.args, scan.binary.arch).len() <= site.args.len());
                    if checked.is_ok()
                        && let Err(refusal) = file.check_site(site)
                    {
                        assert!(!refusal.to_string().is_empty());
                    }
                }
            }
            assert_eq!(elf::build_id(&path).unwrap(), scan.binary.build_id);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    symbols(path.as_os_str().as_encoded_bytes(), bytes.len());
}

/// Symbols are looked up in files that a trace says were mapped.
fn symbols(path: &[u8], len: usize) {
    let mut body = Vec::new();
    body.extend([0; 8]);
    for word in [0, u64::MAX, 0] {
        body.extend(word.to_le_bytes());
    }
    body.extend(path);
    body.push(0);
    let map = RawRecord {
        kind: RecordType::MMAP,
        misc: 2,
        body: &body,
        offset: 0,
    };
    let mut log = ProcessLog::default();
    log.record(&map, SampleType(0)).unwrap();
    let mappings = Mappings::new(log, &[]);
    let file = mappings.mapping(0, 0, 0).unwrap().dso;
    let symbols = Symbols::new(None, mappings.files());
    let step = (len / 64).max(1);
    for offset in (0..len).step_by(step).chain([len, usize::MAX]) {
        if let Some(symbol) = symbols.find(file, offset as u64) {
            assert_eq!(symbols.name(symbol.id).unwrap(), symbol.name);
        }
    }
}
