//! Caches and files that say what is not so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::{Build, Lab, Recorder, Ticker, path_text, sites_of, test};

/// The files called `elf` below a directory.
fn copies(directory: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(directory).expect("a directory");
    let paths = names.map(|name| name.expect("a name").path());
    let mut found = Vec::new();
    for path in paths {
        let kind = path.symlink_metadata().expect("a file").file_type();
        if kind.is_dir() {
            found.extend(copies(&path));
        } else if path.ends_with("elf") {
            found.push(path);
        }
    }
    found
}

/// A copy in the cache with the program's build-id, whose notes have another semaphore than the program's: the kernel would add
/// 1 wherever they say. What counts are the program's own notes.
#[test]
fn a_forged_copy_in_the_cache() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let program = ticker.program().to_owned();
    lab.usdtrec(["buildid-cache", "--add", path_text(&program)])
        .success();
    let mut forged = fs::read(&program).expect("a program");
    let sites = sites_of(&lab, &program);
    let pc = sites[0].pc.to_le_bytes();
    // A note's description is pc, base and semaphore.
    let places = forged.windows(8).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, bytes)| *bytes == pc)
        .map(|(at, _)| at)
        .collect();
    for at in places {
        forged[at + 16] ^= 2;
    }
    let [copy] = &copies(&lab.cache())[..] else {
        panic!("one copy");
    };
    fs::remove_file(copy).expect("the copy");
    fs::write(copy, &forged).expect("another");
    // Not of all processes: others of these tests run programs of this name.
    lab.usdtrec(["record", "-e", "ticker:*", "--", "true"])
        .complains("the file has no note for the site")
        .complains("--purge");
    // By its path, the program is recorded as it is.
    let event = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    let hits = ticker.hit("fire 3");
    recorder.stop();
    assert_eq!(lab.events("trace").len(), hits.len());
}

/// Debugging information that claims to be 6 GiB when decompressed costs no memory.
#[test]
fn claims_of_compressed_sections() {
    let lab = Lab::new();
    let build = Build {
        compiler: "gcc",
        options: &["-O1", "-g", "-gz=zlib"],
    };
    let program = build.make(&lab, "debug.c", "debug");
    let listed = lab.usdtrec(["list", "-v", "--file", path_text(&program)]);
    let whole = listed.success().stdout;
    let mut content = fs::read(&program).expect("a program");
    // Elf64_Chdr: ch_type 1 (zlib), reserved, ch_size, ch_addralign; zlib's own header comes next.
    let header = [1, 0, 0, 0, 0, 0, 0, 0];
    let places: Vec<usize> = (0..content.len() - 32)
        .filter(|&at| content[at..].starts_with(&header) && content[at + 24] == 0x78)
        .collect();
    assert!(!places.is_empty(), "no compressed section");
    for at in places {
        content[at + 8..at + 16].copy_from_slice(&(6_u64 << 30).to_le_bytes());
    }
    let forged = lab.file("forged");
    fs::write(&forged, content).expect("a file");
    let mut list = lab
        .command(["list", "-v", "--file", path_text(&forged)])
        .stdout(fs::File::create(lab.file("listed")).expect("a file"))
        .spawn()
        .expect("a process");
    let status = format!("/proc/{}/status", list.id());
    let mut most = 0;
    while list.try_wait().expect("our child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0));
    }
    assert!(most < 300 << 10, "{most} KiB");
    let listed = fs::read_to_string(lab.file("listed")).expect("a list");
    assert_eq!(listed.lines().count(), whole.lines().count());
}

/// A sparse file takes no more room in the cache than it took before.
#[test]
fn sparse_files() {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let elsewhere = tempfile::Builder::new()
        .prefix("usdtrec-test-")
        .tempdir_in("/dev/shm")
        .expect("a directory in memory");
    let sparse = elsewhere.path().join("sparse");
    fs::copy(&program, &sparse).expect("a copy");
    let file = fs::OpenOptions::new().write(true).open(&sparse);
    file.expect("a file").set_len(5 << 30).expect("a hole");
    lab.usdtrec(["buildid-cache", "--add", path_text(&sparse)])
        .success();
    let [copy] = &copies(&lab.cache())[..] else {
        panic!("one copy");
    };
    let copy = copy.metadata().expect("a file");
    assert_eq!(copy.len(), 5 << 30);
    // Where memory is in huge pages, so is its data; a file system counts blocks that say where the others are.
    let original = sparse.metadata().expect("a file").blocks();
    assert!(original < 1 << 16, "{original} blocks are no sparse file");
    let copied = copy.blocks();
    assert!(copied <= original + 64, "{copied} blocks of {original}");
}
