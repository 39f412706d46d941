//! A cache in which another user made files: root refuses it, and nothing outside a cache is ever changed.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Build, Lab, Process, run, test};

/// A build-id that no file has.
const ID: &str = "aabbccddeeff00112233445566778899aabbccdd";

fn link(lab: &Lab, target: &str) -> PathBuf {
    let directory = lab.cache().join(".build-id").join(&ID[..2]);
    fs::create_dir_all(&directory).unwrap();
    let link = directory.join(&ID[2..]);
    symlink(target, &link).unwrap();
    link
}

#[test]
fn root_refuses_a_cache_that_others_can_write() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().unwrap();
    lab.usdtrec(["buildid-cache", "--add", program]).success();
    let set = |owner, mode| {
        chown(lab.cache(), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(lab.cache(), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (owner, mode, why) in [
        (65534, 0o755, "belongs to user 65534"),
        (0, 0o757, "every user can write"),
        (0, 0o1777, "every user can write"),
    ] {
        set(owner, mode);
        for arguments in [
            &["buildid-cache", "--list"][..],
            &["buildid-cache", "--add", program],
            &["buildid-cache", "--remove", program],
            &["buildid-cache", "--purge-all"],
            &["list"],
        ] {
            lab.usdtrec(arguments)
                .exits(1)
                .complains(why)
                .complains("--buildid-dir");
        }
        // A file that is named needs no cache; one from the cache is not taken.
        let event = format!("sdt_shapes:first@{program}");
        lab.usdtrec(["record", "-e", &event, "--", program])
            .success();
        lab.usdtrec(["record", "-e", "sdt_shapes:first", "-a", "--no-wait"])
            .exits(1)
            .complains(why);
    }
    set(0, 0o755);
    let listed = lab.usdtrec(["buildid-cache", "--list"]).success();
    assert!(listed.stdout.contains(program), "{}", listed.stdout);
}

#[test]
fn nothing_outside_the_cache_is_removed_or_written() {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let victim = lab.file("victim");
    let important = victim.join("important").join(ID);
    fs::create_dir_all(&important).unwrap();
    fs::write(important.join("elf"), "mine").unwrap();
    fs::create_dir_all(lab.cache()).unwrap();
    symlink(&victim, lab.cache().join("evil")).unwrap();
    let intact = || fs::read(important.join("elf")).unwrap() == b"mine";

    // A link of the cache that leads out of it, and one to a directory that is no entry.
    let evil = link(&lab, &format!("../../evil/important/{ID}"));
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    assert!(intact());
    fs::remove_file(&evil).unwrap();
    let documents = lab.cache().join("home/u/docs");
    fs::create_dir_all(&documents).unwrap();
    fs::write(documents.join("elf"), "mine").unwrap();
    let foreign = link(&lab, "../../home/u/docs");
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    assert_eq!(fs::read(documents.join("elf")).unwrap(), b"mine");
    fs::remove_file(&foreign).unwrap();

    // An entry with a file that is none of the cache's.
    let entry = lab.cache().join("usr/x").join(ID);
    fs::create_dir_all(&entry).unwrap();
    fs::write(entry.join("probes"), "").unwrap();
    fs::write(entry.join("thesis"), "mine").unwrap();
    link(&lab, &format!("../../usr/x/{ID}"));
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    assert_eq!(fs::read(entry.join("thesis")).unwrap(), b"mine");

    // Adding does not write through a link.
    let first = lab.path().components().nth(1).unwrap();
    let outside = lab.file("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, lab.cache().join(first)).unwrap();
    lab.usdtrec(["buildid-cache", "--add", program.to_str().unwrap()])
        .exits(1);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    // Nor does the lock.
    let lock = lab.cache().join(".usdtrec-lock");
    fs::remove_file(&lock).unwrap();
    symlink(lab.file("made"), &lock).unwrap();
    lab.usdtrec(["buildid-cache", "--purge-all"]).exits(1);
    assert!(!lab.file("made").exists());
}

/// Who may only read the cache cannot lock it.
#[test]
fn the_lock_is_its_owners() {
    let lab = Lab::new();
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    let lock = lab.cache().join(".usdtrec-lock");
    let mode = fs::metadata(&lock).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Who waits for the lock says for whom.
#[test]
fn a_lock_that_is_waited_for_is_named() {
    let lab = Lab::new();
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    let lock = File::open(lab.cache().join(".usdtrec-lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = Process::spawn(lab.command(["buildid-cache", "--purge-all"]));
    let line = waiting.until_error_line("waiting for the lock of the cache");
    let me = format!("process {} ", std::process::id());
    assert!(line.contains(&me), "{line}");
    lock.unlock().unwrap();
    waiting.finish().success();
}

/// Stock perf reads what we add, and removes it; we remove what it adds.
#[test]
fn perf_shares_the_cache() {
    let lab = Lab::new();
    crate::common::need_tool("perf");
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().unwrap();
    let cache = lab.cache();
    let perf = |arguments: &[&str]| {
        let mut command: Command = lab.at_home(Path::new("perf"), ["--buildid-dir"]);
        command.arg(&cache).args(arguments);
        run(command).success().stdout
    };
    perf(&["buildid-cache", "--add", program]);
    lab.usdtrec(["buildid-cache", "--remove", program])
        .success();
    assert!(!perf(&["buildid-cache", "--list"]).contains(program));
    lab.usdtrec(["buildid-cache", "--add", program]).success();
    assert!(perf(&["buildid-cache", "--list"]).contains(program));
    perf(&["buildid-cache", "--remove", program]);
    let listed = lab.usdtrec(["buildid-cache", "--list"]).success();
    assert!(!listed.stdout.contains(program), "{}", listed.stdout);
}
