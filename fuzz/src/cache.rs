//! The build-id cache: a line with what an entry's link says, then perf's text of its probes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use usdtrec_buildid_cache::{Cache, IndexedProbe, select, suggest};
use usdtrec_format::Pattern;

const HEAD: &str = "0a";
const TAIL: &str = "1b2c3d4e5f60718293a4b5c6d7e8f901122334";

/// Makes a cache of it and lists that.
pub fn run(bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(bytes.len());
    let (link, text) = bytes.split_at(end);
    let text = text.get(1..).unwrap_or_default();
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let ids = dir.join(".build-id").join(HEAD);
    fs::create_dir_all(&ids).unwrap();
    if symlink(OsStr::from_bytes(link), ids.join(TAIL)).is_err() {
        return;
    }
    // Where a sound link leads, and nothing outside.
    let entry = dir.join("bin/app").join(format!("{HEAD}{TAIL}"));
    fs::create_dir_all(&entry).unwrap();
    fs::write(entry.join("probes"), text).unwrap();
    let cache = Cache::open(Some(dir)).unwrap();
    for entry in cache.entries().unwrap() {
        assert!(entry.elf().starts_with(dir));
        assert!(!entry.paths().is_empty());
        assert!(!entry.is_valid());
    }
    let binaries = cache.binaries().unwrap();
    let pattern = Pattern::parse("app:hit*").unwrap();
    for IndexedProbe { probe, .. } in select(&binaries, &pattern).unwrap_or_default() {
        assert_eq!(probe.provider, "app");
    }
    assert!(suggest(binaries.iter().map(|indexed| &indexed.binary), &pattern, 3).len() <= 3);
}
