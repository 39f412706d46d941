//! Unwind tables with a few changes each: every stack ends, in bounded memory.

use std::fs;
use std::path::PathBuf;

use object::{Object as _, ObjectSection as _};

use crate::changes::{Numbers, change_at};
use crate::fuzz::unwind::frames;
use crate::garbled::number;

/// The C library of this process. Its tables have expressions and the frames of signals.
fn library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_once('/'));
    let found = paths.find(|(_, path)| path.contains("/libc.so") || path.contains("/libc-"));
    PathBuf::from(format!("/{}", found.unwrap().1))
}

/// A quarter of `USDTREC_GARBLED` is the number of inputs.
#[test]
fn changed_unwind_tables_do_no_harm() {
    let whole = fs::read(library()).unwrap();
    let file = object::File::parse(&*whole).unwrap();
    let table = file.section_by_name(".eh_frame").unwrap();
    let (start, len) = table.file_range().unwrap();
    let place = start as usize..(start + len) as usize;
    let found = frames(&whole);
    assert!(found > 200, "{found}");
    let first = number("USDTREC_GARBLED_SEED", 0);
    let mut others = 0;
    for at in first..first + number("USDTREC_GARBLED", 200) / 4 {
        let mut numbers = Numbers(at);
        let mut table = whole[place.clone()].to_vec();
        // So many that most stacks meet one.
        for _ in 0..64 {
            let at = numbers.below(table.len());
            change_at(&mut table, at, &mut numbers);
        }
        table.resize(place.len(), 0);
        let mut bytes = whole.clone();
        bytes[place.clone()].copy_from_slice(&table);
        eprintln!("{at}");
        others += usize::from(frames(&bytes) != found);
    }
    assert!(others > 0, "the changes matter");
}
