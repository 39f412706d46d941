//! The cache stays sound: with many at work at once, and killed at any moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{listed, paths, program};
use crate::common::{Lab, Perf, Process, path_text, run, test};

/// Copies of a program, each with a build-id of its own, padded so that copying takes a while.
fn programs(lab: &Lab, count: u8, padding: usize) -> Vec<PathBuf> {
    let one = program(lab, "one");
    let bytes = fs::read(&one).expect("our file");
    let owner = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes
        .windows(owner.len())
        .position(|window| window == owner);
    let id_at = at.expect("a build-id of 20 bytes") + owner.len();
    let make = |number: u8| {
        let mut bytes = bytes.clone();
        bytes[id_at..id_at + 20].fill(number + 1);
        bytes.resize(bytes.len() + padding, 0);
        let path = lab.file(&format!("program-{number}"));
        fs::write(&path, bytes).expect("a file");
        path
    };
    (0..count).map(make).collect()
}

/// All files below a directory whose names begin so.
fn named(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                found.push(path.clone());
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    found
}

/// Eight at once, each adding, updating and purging the same programs in another order; then everything is added once.
#[test]
fn many_at_once() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let programs = programs(&lab, 6, 0);
    let verbs = ["--add", "--update", "--add", "--purge", "--add", "--remove"];
    let workers: Vec<Process> = (0..8)
        .map(|worker: usize| {
            let steps: Vec<String> = (0..24)
                .map(|step| {
                    let verb = verbs[(worker + step) % verbs.len()];
                    let program = &programs[(worker * 5 + step) % programs.len()];
                    format!("\"$0\" buildid-cache {verb} {}", path_text(program))
                })
                .collect();
            let script = steps.join("\n");
            let shell = ["-c", &script, env!("CARGO_BIN_EXE_usdtrec")];
            Process::spawn(lab.at_home(Path::new("sh"), shell))
        })
        .collect();
    for worker in workers {
        let finished = worker.finish();
        // What another worker took away first is not there, and a busy machine lets them wait: nothing else may go wrong.
        let odd: Vec<&str> = finished
            .stderr
            .lines()
            .filter(|line| {
                let is_usual = line.ends_with("is not in the cache")
                    || line.starts_with("usdtrec: waiting for the lock of the cache");
                !is_usual
            })
            .collect();
        assert!(odd.is_empty(), "{odd:?}");
    }
    for program in &programs {
        lab.usdtrec(["buildid-cache", "--add", path_text(program)])
            .success();
    }
    assert_eq!(paths(&listed(&lab, &["ticker:tick"])).len(), programs.len());
    let ours = lab.usdtrec(["list"]).success().silent().stdout;
    assert_eq!(ours, perf.run(["list", "sdt"]).success().silent().stdout);
    assert!(
        named(&lab.cache(), ".usdtrec-")
            .iter()
            .all(|path| path.ends_with(".usdtrec-lock"))
    );
}

/// Killed while it adds, at moments spread over the whole of its run: what is listed is whole, and the next run completes it.
#[test]
fn killed_at_any_moment() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    // In memory, so that the cache must copy, which takes long enough to be hit by a kill.
    let programs = programs(&lab, 4, 4 << 20);
    let cache = tempfile::Builder::new()
        .prefix("usdtrec-test-")
        .tempdir_in("/dev/shm")
        .expect("a directory in memory");
    let all: Vec<&str> = programs.iter().map(|path| path_text(path)).collect();
    let command = |arguments: &[&str]| {
        let mut command = lab.command(["--buildid-dir", path_text(cache.path())]);
        command.args(arguments);
        command
    };
    let add = ["buildid-cache", "--add", &all.join(",")];
    let start = Instant::now();
    run(command(&add)).success();
    let whole = start.elapsed();
    let mut seen = [0_usize; 5];
    let mut leftovers = 0;
    let in_the_middle = |seen: &[usize; 5]| seen[1..4].iter().sum::<usize>();
    // How long it takes changes with what else the machine does: 60 kills, and more until some came in the middle.
    for round in 0..600_u32 {
        if round >= 60 && in_the_middle(&seen) > 0 && leftovers > 0 {
            break;
        }
        run(command(&["buildid-cache", "--purge-all"])).success();
        let process = Process::spawn(command(&add));
        thread::sleep(
            whole * (round % 60) / 60 + Duration::from_micros(u64::from(round % 7) * 100),
        );
        process.signal("KILL");
        drop(process.finish());
        leftovers += named(cache.path(), ".usdtrec-").len() - 1;
        let list = run(command(&["list"])).success();
        let mut theirs = perf.command(["--buildid-dir", path_text(cache.path())]);
        theirs.args(["list", "sdt"]);
        assert_eq!(
            list.stdout,
            run(theirs).success().silent().stdout,
            "round {round}"
        );
        let json = run(command(&["list", "--format", "json", "ticker:tick"]));
        let entries = json.stdout.lines().count();
        assert_eq!(
            json.stdout.matches("\"args\":\"").count(),
            entries,
            "{}",
            json.stdout
        );
        seen[entries] += 1;
        for elf in named(cache.path(), "elf") {
            let path = elf
                .parent()
                .and_then(Path::parent)
                .expect("PATH/BUILD-ID/elf");
            let origin = Path::new("/").join(path.strip_prefix(cache.path()).expect("inside"));
            assert_eq!(
                fs::read(&elf).expect("a copy"),
                fs::read(origin).expect("our file")
            );
        }
        run(command(&add)).success();
        let after = run(command(&["list", "--format", "json", "ticker:tick"])).success();
        assert_eq!(
            after.stdout.lines().count(),
            programs.len(),
            "round {round}"
        );
        assert_eq!(
            named(cache.path(), ".usdtrec-").len(),
            1,
            "only the lock is left"
        );
    }
    assert!(
        in_the_middle(&seen) > 0 && leftovers > 0,
        "no kill came in the middle: {seen:?}, {leftovers} unfinished files"
    );
}
