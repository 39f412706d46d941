//! perf sees what we add, and we see what perf adds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{listed, other_program, program};
use crate::common::{Build, Finished, Lab, Perf, need_tool, path_text, run, test};

/// Real programs and libraries that carry probes, as far as they are installed.
fn real_binaries() -> Vec<PathBuf> {
    [
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/php",
        "/usr/bin/python3",
        "/usr/lib/postgresql/15/bin/postgres",
        "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
        "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
    ]
    .into_iter()
    .map(PathBuf::from)
    .filter(|path| path.exists())
    .collect()
}

/// perf with a cache of its own.
fn perf_at(lab: &Lab, cache: &Path, arguments: &[&str]) -> Finished {
    let mut command: Command = lab.at_home(Path::new("perf"), ["--buildid-dir", path_text(cache)]);
    command.args(arguments).env("PERF_CONFIG", "/dev/null");
    run(command)
}

/// What is in a cache: links with their targets, texts with their content, files with their inodes.
fn tree(cache: &Path) -> BTreeMap<PathBuf, String> {
    use std::os::unix::fs::MetadataExt;
    let mut found = BTreeMap::new();
    let mut open = vec![cache.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let kind = path.symlink_metadata().expect("a file");
            let what = if kind.is_symlink() {
                path_text(&path.read_link().expect("a link")).to_owned()
            } else if kind.is_dir() {
                open.push(path.clone());
                continue;
            } else if path.ends_with("probes") {
                fs::read_to_string(&path).expect("text")
            } else {
                format!("inode {}, {} bytes", kind.ino(), kind.len())
            };
            found.insert(path.strip_prefix(cache).expect("inside").to_owned(), what);
        }
    }
    found
}

/// Entry by entry, byte by byte what perf writes for the same files.
#[test]
fn we_write_what_perf_writes() {
    let lab = Lab::new();
    need_tool("perf");
    let theirs = lab.file("theirs");
    let binaries = real_binaries();
    assert!(!binaries.is_empty(), "libstdc++ at least is everywhere");
    for binary in &binaries {
        lab.usdtrec(["buildid-cache", "--add", path_text(binary)])
            .success();
        perf_at(
            &lab,
            &theirs,
            &["buildid-cache", "--add", path_text(binary)],
        )
        .success();
    }
    let mut ours = tree(&lab.cache());
    ours.remove(Path::new(".usdtrec-lock")).expect("our lock");
    assert_eq!(ours, tree(&theirs));
    let list = lab.usdtrec(["list"]).success().silent().stdout;
    assert_eq!(
        list,
        perf_at(&lab, &lab.cache(), &["list", "sdt"])
            .success()
            .stdout
    );
    let dir = ["--buildid-dir", path_text(&theirs)];
    let from_theirs = lab.usdtrec(dir.iter().chain(&["list"])).success().stdout;
    assert_eq!(list, from_theirs, "what perf added, we list");
    let entries = lab.usdtrec(["buildid-cache", "--list"]).success().stdout;
    assert_eq!(
        entries,
        perf_at(&lab, &theirs, &["buildid-cache", "--list"])
            .success()
            .stdout
    );
    assert_eq!(entries.lines().count(), binaries.len());
}

/// The form for a probe that several binaries carry.
#[test]
fn probes_in_several_binaries_are_listed_as_perf_does() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let one = program(&lab, "one");
    let two = other_program(&lab, "a-longer-name");
    let copy = lab.file("copy-of-one");
    fs::copy(&one, &copy).expect("a copy");
    for file in [&one, &two, &copy] {
        lab.usdtrec(["buildid-cache", "--add", path_text(file)])
            .success();
    }
    let list = lab.usdtrec(["list"]).success().stdout;
    assert_eq!(list, perf.run(["list", "sdt"]).success().stdout);
    assert!(
        list.contains(&format!("sdt_ticker:tick@{}(", path_text(&one))),
        "{list}"
    );
    // perf lists a build-id by one of its paths only; the JSON form has all.
    assert_eq!(listed(&lab, &["ticker:tick"]).len(), 3);
    // Another test may have made an event of this name meanwhile.
    let plan = perf.run(["probe", "-n", "--force", "--add", "sdt_ticker:tick"]);
    for file in [&one, &two, &copy] {
        assert!(
            plan.stdout.contains(path_text(file)) || plan.stderr.contains(path_text(file)),
            "perf probe: {} {}",
            plan.stdout,
            plan.stderr
        );
    }
}

/// A name that perf refuses costs perf none of the others, and us nothing at all.
#[test]
fn odd_names() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let odd = Build::USUAL.make(&lab, "odd_names.c", "odd");
    lab.usdtrec(["buildid-cache", "--add", path_text(&odd)])
        .success();
    let theirs = perf.run(["list", "sdt"]).success().silent().stdout;
    assert_eq!(
        theirs.trim(),
        format!("{:<50} [SDT event]", "sdt_odd:gc__start")
    );
    let ours = lab.usdtrec(["list"]).success().stdout;
    let mut names: Vec<&str> = ours
        .lines()
        .map(|line| line.trim_end_matches("[SDT event]").trim())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "sdt_odd.pro-vider:a.b",
            r"sdt_odd:clear\x1b[2Jscreen",
            "sdt_odd:gc-done",
            "sdt_odd:gc__start",
            "sdt_odd:größe",
            "sdt_odd:it's\"so\"",
        ]
    );
    for (pattern, name) in [
        ("sdt_odd:gc-start", "gc__start"),
        ("odd:gc__done", "gc-done"),
        ("odd:it's*", "it's\"so\""),
        ("odd.pro-vider:a.b", "a.b"),
        ("odd:clear*", "clear\u{1b}[2Jscreen"),
        ("odd:gr??e", "größe"),
    ] {
        let found = listed(&lab, &[pattern]);
        assert_eq!(found.len(), 1, "{pattern}");
        assert_eq!(found[0]["name"], name);
    }
}

/// Each of our verbs shows in perf's lists at once, and perf's in ours.
#[test]
fn removing_is_seen_on_both_sides() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let one = program(&lab, "one");
    let two = other_program(&lab, "two");
    let ours = || lab.usdtrec(["buildid-cache", "--list"]).success().stdout;
    let theirs = || perf.run(["buildid-cache", "--list"]).success().stdout;
    let count = || {
        assert_eq!(ours(), theirs());
        ours().lines().count()
    };
    lab.usdtrec([
        "buildid-cache",
        "--add",
        &format!("{},{}", path_text(&one), path_text(&two)),
    ])
    .success();
    assert_eq!(count(), 2);
    lab.usdtrec(["buildid-cache", "--remove", path_text(&one)])
        .success();
    assert_eq!(count(), 1);
    perf.run(["buildid-cache", "--remove", path_text(&two)])
        .success();
    assert_eq!(count(), 0);
    perf.run(["buildid-cache", "--add", path_text(&one)])
        .success();
    assert_eq!(count(), 1);
    lab.usdtrec(["buildid-cache", "--purge", path_text(&one)])
        .success();
    assert_eq!(count(), 0);
    perf.run(["buildid-cache", "--add", path_text(&one)])
        .success();
    lab.usdtrec(["buildid-cache", "--add", path_text(&two)])
        .success();
    let purged = lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    assert!(purged.stdout.contains("2 entries"), "{}", purged.stdout);
    assert_eq!(count(), 0);
    let left: Vec<_> = tree(&lab.cache()).into_keys().collect();
    assert_eq!(left, [Path::new(".usdtrec-lock")]);
}

/// Events that `perf probe --cache` keeps in the same file stay.
#[test]
fn perfs_own_events_stay() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    lab.usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    let id = listed(&lab, &[])[0]["build_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let file = lab
        .cache()
        .join(path_text(&one).trim_start_matches('/'))
        .join(id)
        .join("probes");
    let own = "main=main\np:probe_one/main /x/one:0x1234 argc=%di:s32\n";
    let sdt = fs::read_to_string(&file).expect("text");
    fs::write(&file, format!("{own}{sdt}")).expect("text");
    lab.usdtrec(["buildid-cache", "--update", path_text(&one)])
        .success();
    let now = fs::read_to_string(&file).expect("text");
    assert_eq!(now, format!("{sdt}{own}"));
}
