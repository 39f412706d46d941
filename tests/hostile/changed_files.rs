//! Real files with a few changes each: every verb that reads them ends by itself, in bounded time and memory.
//!
//! `USDTREC` names the program to test (this build's), `USDTREC_GARBLED` is the number of inputs (200), `USDTREC_GARBLED_SEED` where their
//! numbers begin, and `USDTREC_GARBLED_FILES` a directory of more files: traces end in `.data`, schemas in `.toml` or `.d`, programs have no such ending. An input that failed is
//! kept in the directory `garbled` below the tests' temporary directory, and is the same again for the same number.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use usdtrec_testing::{number, repetitions};

use crate::changes::{Numbers, change};
use crate::fuzz::repair;

/// Bytes of address space for a run. Programs are linked with debugging information of their own, which symbols are looked up in.
const MEMORY: u64 = 1 << 30;
/// Seconds of CPU time for a run.
const CPU_SECONDS: u64 = 10;
/// Longest file that is taken: most changes of a longer one would be in what does not matter.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Trace,
    Program,
    Schema,
    /// A file of the build-id cache.
    Cached,
}

/// A file that changes are made to.
struct Seed {
    name: String,
    kind: Kind,
    bytes: Vec<u8>,
}

/// Command lines; `{}` is the changed file, `{whole}` the file as it was, `{cache}` the cache's directory.
fn command_lines(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Trace => &[
            "report -i {}",
            "report -i {} --sort event,comm,pid,tid,sym,dso",
            "report -i {} --rate 1ms --format json",
            "report -i {} --span * --format csv",
            "report -i {} --hist arg1 --event *",
            "report -i {} --heatmap arg1",
            "report -i {} --sort arg1 --value arg2",
            "script -i {}",
            "script -i {} --format json -F +tod",
            "script -i {} --format csv -F +ip,+sym,+dso,+span",
            "script -i {} --filter arg1>3||comm~\"a*\" --time 10%,90%",
            "script -i -",
            "report -i -",
            "diff {} {whole}",
            "diff {whole} {} --by comm,event --format json",
            "schema export -i {}",
            "buildid-cache --missing {}",
        ],
        Kind::Program => &[
            "list --file {}",
            "list -v --file {}",
            "list --file {} --format json",
            "buildid-cache --add {} -v",
            "schema check --file {}",
        ],
        Kind::Schema => &[
            "schema check {}",
            "schema export {}",
            "script --schema {} -i {whole}",
        ],
        Kind::Cached => &[
            "list",
            "list -v --format json",
            "buildid-cache --list",
            "buildid-cache --purge-all",
        ],
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .flat_map(|entry| {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect();
    files.sort();
    files
}

fn seeds() -> Vec<Seed> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut files = vec![testdata.join("demo.data")];
    for dir in ["debug", "schemas", "traces"] {
        files.extend(files_below(&testdata.join(dir)));
    }
    if let Some(dir) = std::env::var_os("USDTREC_GARBLED_FILES") {
        files.extend(files_below(Path::new(&dir)));
    }
    let seed = |path: PathBuf| {
        let kind = match path.extension().and_then(|ending| ending.to_str()) {
            Some("data") => Kind::Trace,
            Some("toml" | "d") => Kind::Schema,
            Some("c" | "md") => return None,
            _ => Kind::Program,
        };
        let is_short = path
            .metadata()
            .is_ok_and(|file| file.len() <= MAX_FILE_BYTES);
        let bytes = fs::read(&path)
            .ok()
            .filter(|bytes| is_short && !bytes.is_empty())?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(Seed { name, kind, bytes })
    };
    files.into_iter().filter_map(seed).collect()
}

/// Runs the program with limits. Asking for more memory than that aborts it.
fn run(line: &str, directory: &Path, input: &Path, whole: &Path) -> (ExitStatus, String) {
    let limits = format!(
        "ulimit -v {}; ulimit -t {CPU_SECONDS}; ulimit -c 0; exec \"$@\"",
        MEMORY >> 10
    );
    let errors = directory.join("errors");
    let program = std::env::var_os("USDTREC").unwrap_or(env!("CARGO_BIN_EXE_usdtrec").into());
    let named = |word: &str| match word {
        "{}" => input.to_owned(),
        "{whole}" => whole.to_owned(),
        word => PathBuf::from(word),
    };
    let status = Command::new("sh")
        .args(["-c", &limits, "sh"])
        .arg(program)
        .arg("--buildid-dir")
        .arg(directory.join("cache"))
        .args(line.split(' ').map(named))
        .env("HOME", directory)
        .env("MALLOC_ARENA_MAX", "1")
        .env("RAYON_NUM_THREADS", "2")
        .env("RUST_BACKTRACE", "0")
        .stdin(File::open(input).unwrap())
        .stdout(Stdio::null())
        .stderr(File::create(&errors).unwrap())
        .status()
        .unwrap();
    let errors = String::from_utf8_lossy(&fs::read(&errors).unwrap()).into_owned();
    (status, errors)
}

/// Puts the changed file where a verb finds it.
fn place(seed: &Seed, bytes: &[u8], directory: &Path) -> PathBuf {
    let path = match seed.kind {
        Kind::Cached => directory.join("cache").join(&seed.name),
        _ => directory.join(&seed.name),
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// The files of a cache that holds this program.
fn cached(program: &Seed) -> Vec<Seed> {
    let directory = tempfile::tempdir().unwrap();
    let path = place(program, &program.bytes, directory.path());
    run("buildid-cache --add {}", directory.path(), &path, &path);
    let cache = directory.path().join("cache");
    let seed = |path: PathBuf| {
        let name = path.strip_prefix(&cache).ok()?.to_str()?.to_owned();
        let bytes = fs::read(&path).ok().filter(|bytes| !bytes.is_empty())?;
        let kind = Kind::Cached;
        Some(Seed { name, kind, bytes })
    };
    files_below(&cache).into_iter().filter_map(seed).collect()
}

/// No panic (exit status 101), no abort, no signal.
#[test]
fn changed_files_do_no_harm() {
    let mut seeds = seeds();
    assert!(seeds.iter().any(|seed| seed.kind == Kind::Program));
    let trace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    let of_cache: Vec<Seed> = seeds
        .iter()
        .filter(|seed| seed.kind == Kind::Program)
        .flat_map(cached)
        .collect();
    seeds.extend(of_cache);
    let first = number("USDTREC_GARBLED_SEED", 0);
    let count = repetitions("USDTREC_GARBLED", 200);
    let mut bad = Vec::new();
    let mut succeeded = 0;
    for at in first..first + count {
        let mut numbers = Numbers(at);
        let seed = &seeds[numbers.below(seeds.len())];
        let mut bytes = seed.bytes.clone();
        for _ in 0..1 + numbers.below(4) {
            change(&mut bytes, &mut numbers);
        }
        // With wrong checksums it only shows that they are looked at.
        if seed.kind == Kind::Trace && numbers.below(4) > 0 {
            repair::checksums(&mut bytes);
        }
        let lines = command_lines(seed.kind);
        let line = lines[numbers.below(lines.len())];
        let directory = tempfile::tempdir().unwrap();
        let input = place(seed, &bytes, directory.path());
        let whole = if seed.kind == Kind::Schema {
            &trace
        } else {
            &place(
                &Seed {
                    name: "whole".to_owned(),
                    kind: Kind::Trace,
                    bytes: seed.bytes.clone(),
                },
                &seed.bytes,
                directory.path(),
            )
        };
        let (status, errors) = run(line, directory.path(), &input, whole);
        succeeded += u64::from(status.success());
        if !matches!(status.code(), Some(0..=2)) || errors.contains("panicked") {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("garbled");
            fs::create_dir_all(&kept).unwrap();
            let name = Path::new(&seed.name).file_name().unwrap().to_string_lossy();
            let kept = kept.join(format!("{at}-{name}"));
            fs::write(&kept, &bytes).unwrap();
            let signal = status.signal();
            let errors: String = errors.chars().take(500).collect();
            let told = format!("{at}: {line}: {status} {signal:?} {kept:?}: {errors}");
            eprintln!("{told}");
            bad.push(told);
        }
    }
    eprintln!("{count} inputs, {succeeded} runs without an error");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(count < 100 || succeeded > count / 10, "{succeeded}");
}
