//! Unwind tables with a few changes each: every stack ends, in bounded memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use object::{Object as _, ObjectSection as _};
use usdtrec_testing::{number, repetitions};

use crate::changes::{Numbers, change_at};
use crate::fuzz::unwind::frames;

/// The C library of this process. Its tables have expressions and the frames of signals.
fn library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_once('/'));
    let found = paths.find(|(_, path)| path.contains("/libc.so") || path.contains("/libc-"));
    PathBuf::from(format!("/{}", found.unwrap().1))
}

/// A library whose unwind table is in `.debug_frame` alone.
fn with_debug_frame() -> Vec<u8> {
    let functions = (0..64).map(|number| {
        let room = 8 + 4 * number;
        format!(
            "long f{number}(long n) {{ volatile long room[{room}]; room[n & 7] = n; return f{}(n + 1) + room[n & 3]; }}\n",
            number + 1
        )
    });
    let names = (0..=64).map(|number| format!("long f{number}(long);\n"));
    let last = "long f64(long n) { return n; }\n".to_owned();
    let source: String = names.chain(functions).chain([last]).collect();
    let dir = tempfile::tempdir().unwrap();
    let (code, library) = (dir.path().join("frames.c"), dir.path().join("frames.so"));
    fs::write(&code, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O1", "-shared", "-nostdlib", "-fPIC"]);
    compiler.arg("-fno-asynchronous-unwind-tables");
    compiler.arg("-o").arg(&library).arg(&code);
    assert!(compiler.status().unwrap().success());
    fs::read(library).unwrap()
}

/// Changes a table of a file in many ways. A quarter of `USDTREC_GARBLED` is the number of inputs.
#[track_caller]
fn check(whole: &[u8], section: &str) {
    let file = object::File::parse(whole).unwrap();
    let table = file.section_by_name(section).unwrap();
    let (start, len) = table.file_range().unwrap();
    let place = start as usize..(start + len) as usize;
    let found = frames(whole);
    assert!(found > 200, "{found}");
    let first = number("USDTREC_GARBLED_SEED", 0);
    let mut others = 0;
    for at in first..first + repetitions("USDTREC_GARBLED", 200) / 4 {
        let mut numbers = Numbers(at);
        let mut table = whole[place.clone()].to_vec();
        // So many that most stacks meet one.
        for _ in 0..64 {
            let at = numbers.below(table.len());
            change_at(&mut table, at, &mut numbers);
        }
        table.resize(place.len(), 0);
        let mut bytes = whole.to_vec();
        bytes[place.clone()].copy_from_slice(&table);
        eprintln!("{at}");
        others += usize::from(frames(&bytes) != found);
    }
    assert!(others > 0, "the changes matter");
}

#[test]
fn changed_unwind_tables_do_no_harm() {
    check(&fs::read(library()).unwrap(), ".eh_frame");
}

#[test]
fn changed_unwind_tables_of_debugging_information_do_no_harm() {
    let whole = with_debug_frame();
    let file = object::File::parse(&*whole).unwrap();
    let other = file.section_by_name(".eh_frame");
    assert_eq!(other.map_or(0, |section| section.size()), 0);
    check(&whole, ".debug_frame");
}
