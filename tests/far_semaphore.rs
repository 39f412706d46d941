//! A semaphore more than 4 GiB into its file, as in programs with large data: only events of the uprobe PMU cannot have it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf::FileHeader64};

use crate::common::{Build, Engine, Lab, test};

/// How far everything but the headers is moved, bytes.
const FAR: u64 = 5 << 30;
/// Below this address are the headers.
const HEADERS: u64 = 0x1000;

/// A copy of a program with everything but its first page 5 GiB further in the file, which is sparse.
fn moved(program: &Path, copy: PathBuf) -> PathBuf {
    let bytes = fs::read(program).expect("a program");
    let header = FileHeader64::<Endianness>::parse(&*bytes).expect("an ELF file");
    let endian = header.endian().expect("a byte order");
    let file = File::create(&copy).expect("a file");
    let put = |at: u64, bytes: &[u8]| {
        file.write_all_at(bytes, at)
            .expect("room for a sparse file")
    };
    put(0, &bytes);
    let segments = header.program_headers(endian, &*bytes).expect("segments");
    for (number, segment) in (0..).zip(segments) {
        let (offset, size) = segment.file_range(endian);
        if segment.p_vaddr(endian) >= HEADERS && size > 0 {
            // `p_offset`
            put(
                header.e_phoff(endian) + 56 * number + 8,
                &(offset + FAR).to_le_bytes(),
            );
            let page = offset & !0xfff;
            put(page + FAR, &bytes[page as usize..(offset + size) as usize]);
        }
    }
    let sections = header.sections(endian, &*bytes).expect("sections");
    for (number, section) in (0..).zip(sections.iter()) {
        if section.sh_addr(endian) >= HEADERS {
            // `sh_offset`
            let offset = section.sh_offset(endian) + FAR;
            put(
                header.e_shoff(endian) + 64 * number + 24,
                &offset.to_le_bytes(),
            );
        }
    }
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("its mode");
    copy
}

#[test]
fn a_semaphore_beyond_4_gib_is_raised() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "guarded.c", "guarded");
    let program = moved(&program, lab.file("far"));
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("guarded:*@{path}");
    for engine in Engine::ALL {
        let recorded = lab.usdtrec(engine.record("trace", &event, &[path, "10"]));
        if matches!(engine, Engine::BpfPerf | Engine::PerfPmu) {
            recorded
                .exits(1)
                .complains("exceeds 4 GiB")
                .complains("--engine bpf-multi");
            continue;
        }
        recorded.success();
        assert_eq!(lab.events("trace").len(), 10, "{engine:?}");
    }
    let mut record = lab.command(["record", "-o", "trace", "-e", &event, "--", path, "3"]);
    assert!(record.status().expect("usdtrec").success());
    assert_eq!(lab.events("trace").len(), 3);
}
