//! Nothing of ours waits for a file system: files and memory that others control are opened by `buildid-cache/src/served/` only. The calls that open, ask
//! about or read files are in the sources that are listed here, with what they open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::sources::sources;
use crate::common::test;

/// Calls that a file system may answer late.
const CALLS: [&str; 15] = [
    "File::open(",
    "File::options(",
    "OpenOptions::new(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::metadata(",
    "fs::symlink_metadata(",
    "FileId::from_path(",
    "ObjectFile::open(",
    "openat(",
    "openat2(",
    "process_vm_readv(",
    "canonicalize(",
    ".exists()",
    "statfs(",
];

/// The crates that look at processes of others.
const FOLDERS: [&str; 5] = [
    "buildid-cache/src",
    "record/attach/src",
    "record/kernel/src",
    "record/src",
    "record/watch/src",
];

/// Sources with such calls, and whose files they open.
const ALLOWED: &[(&str, &str)] = &[
    ("buildid-cache/src/cache.rs", "the cache"),
    ("buildid-cache/src/copy.rs", "local files"),
    ("buildid-cache/src/directory.rs", "the cache"),
    ("buildid-cache/src/elf/file_id.rs", "for paths of the user"),
    ("buildid-cache/src/elf/headers.rs", "/sys"),
    (
        "buildid-cache/src/elf/scan.rs",
        "a file that the user names",
    ),
    (
        "buildid-cache/src/entry.rs",
        "files of the cache, and those that were added to it",
    ),
    (
        "buildid-cache/src/find_file.rs",
        "a file that the user names",
    ),
    ("buildid-cache/src/lock.rs", "/proc"),
    (
        "buildid-cache/src/open_path.rs",
        "what the user names; what others control in a helper",
    ),
    ("buildid-cache/src/process.rs", "/proc"),
    ("buildid-cache/src/live_thread.rs", "/proc"),
    (
        "buildid-cache/src/served/file_stat.rs",
        "local files; others in a helper",
    ),
    (
        "buildid-cache/src/served/handle.rs",
        "what the kernel knows of a path; local files",
    ),
    ("buildid-cache/src/served/helper.rs", "in a helper"),
    ("buildid-cache/src/served/helpers.rs", "/proc"),
    ("buildid-cache/src/served/local_mounts.rs", "/proc"),
    (
        "buildid-cache/src/served/process_file.rs",
        "/proc/PID, without helpers; directories there",
    ),
    ("buildid-cache/src/store.rs", "the cache"),
    ("buildid-cache/src/walk.rs", "a folder that the user names"),
    (
        "record/attach/src/chosen/hierarchy.rs",
        "/proc and control groups",
    ),
    ("record/attach/src/chosen/mod.rs", "/proc"),
    ("record/attach/src/chosen/owner.rs", "control groups"),
    ("record/attach/src/debug_info/files.rs", "/usr/lib/debug"),
    (
        "record/attach/src/engine/bpf/nonresident.rs",
        "/proc/sys and a device",
    ),
    ("record/attach/src/engine/events/event.rs", "/sys"),
    ("record/attach/src/engine/perf/mod.rs", "/proc/sys"),
    ("record/attach/src/engine/perf/owner.rs", "/proc"),
    ("record/attach/src/engine/perf/tracefs_group.rs", "tracefs"),
    ("record/attach/src/engine/release/in_program.rs", "/proc"),
    ("record/attach/src/places.rs", "/proc"),
    ("record/attach/src/select/program.rs", "/sys"),
    ("record/attach/src/target.rs", "/proc"),
    ("record/kernel/src/bpf/sys/btf.rs", "/sys"),
    ("record/kernel/src/trace_clock.rs", "/proc"),
    ("record/kernel/src/host/capabilities.rs", "/proc"),
    ("record/kernel/src/host/cpus.rs", "/proc and /sys"),
    ("record/kernel/src/host/descendants.rs", "/proc"),
    ("record/kernel/src/host/identity.rs", "/proc"),
    ("record/kernel/src/host/inherited.rs", "a device"),
    ("record/kernel/src/host/memory.rs", "/proc"),
    ("record/kernel/src/host/mod.rs", "/proc"),
    ("record/kernel/src/host/process.rs", "/proc"),
    ("record/kernel/src/host/run_directory.rs", "/run/usdtrec"),
    ("record/kernel/src/host/stuck_mappings.rs", "/proc"),
    ("record/kernel/src/nop5/trial.rs", "/sys"),
    (
        "record/src/command/runnable.rs",
        "the command that the user names",
    ),
    ("record/src/output/writer.rs", "the trace"),
    ("record/src/output/watched_file.rs", "the trace"),
    ("record/src/budget/budgeting.rs", "/proc"),
    ("record/src/recording/following/unmapped.rs", "/proc"),
    (
        "record/src/triggers/command.rs",
        "the command that the user names, in a thread of its own",
    ),
    ("record/watch/src/cgroups.rs", "/proc"),
    (
        "record/watch/src/left_breakpoints/kernel_log.rs",
        "/dev/kmsg",
    ),
    ("record/watch/src/left_breakpoints/notes.rs", "/run/usdtrec"),
    ("record/watch/src/left_breakpoints/others.rs", "/proc"),
    (
        "record/watch/src/semaphores/stored_increments.rs",
        "/run/usdtrec",
    ),
    ("record/watch/src/verify/expected.rs", "its tests"),
];

/// The calls in a source, but for comments and its tests, which are at its end.
fn calls(source: &str) -> Vec<&'static str> {
    let lines: Vec<&str> = source.lines().collect();
    let begins_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].contains("mod ");
    let end = lines.windows(2).position(begins_tests);
    let code = lines[..end.unwrap_or(lines.len())].iter();
    let code: Vec<&&str> = code
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let has = |call: &&str| code.iter().any(|line| line.contains(call));
    CALLS.into_iter().filter(has).collect()
}

#[test]
fn files_of_others_are_opened_in_one_place() {
    let mut allowed: BTreeMap<PathBuf, &str> = ALLOWED
        .iter()
        .map(|(path, what)| (PathBuf::from(path), *what))
        .collect();
    let mut wrong = Vec::new();
    for (path, source) in FOLDERS.iter().flat_map(|folder| sources(Path::new(folder))) {
        let is_test = path.components().any(|part| part.as_os_str() == "tests")
            || path.file_stem().is_some_and(|stem| stem == "tests");
        let found = if is_test { Vec::new() } else { calls(&source) };
        match allowed.remove(&path) {
            None if !found.is_empty() => wrong.push(format!("{}: {found:?}", path.display())),
            Some(_) if found.is_empty() => {
                wrong.push(format!("{} has none any more", path.display()));
            }
            _ => {}
        }
    }
    wrong.extend(
        allowed
            .keys()
            .map(|path| format!("{} is gone", path.display())),
    );
    assert!(
        wrong.is_empty(),
        "these open files, or ask about them; files that others control are opened by `served`:\n{}",
        wrong.join("\n")
    );
}
