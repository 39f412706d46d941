//! A real writer, killed by `kill -9` at 200 moments: whatever it was doing, the file holds exactly what was committed, for us
//! and for stock perf. The writer is this program, called anew: so it has a `main` of its own.

#![allow(clippy::unwrap_used)]

mod slow_writer;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::read;
use usdtrec_format::trace::Trace;
use usdtrec_testing::SplitMix64;

const KILLS: u64 = 200;
const ROUNDS: u64 = 4;
const SAMPLES: u64 = 400;

/// The argument that makes this program the writer.
const WRITE: &str = "write-slowly";

fn start(file: &Path, compression: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([WRITE, compression])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How long the writer takes when nobody kills it.
fn whole_run(directory: &Path, compression: &str) -> Duration {
    let file = directory.join("whole");
    let mut child = start(&file, compression);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    let begun = Instant::now();
    let last = lines.last().unwrap().unwrap();
    let time = begun.elapsed();
    assert_eq!(last, "finished");
    assert!(child.wait().unwrap().success());
    assert_eq!(
        read(&Trace::open(&file).unwrap()).samples.len() as u64,
        ROUNDS * SAMPLES
    );
    std::fs::remove_file(file).unwrap();
    time
}

/// Kills a writer after a time and gives what it had said to be committed, if it had begun the trace.
fn killed(file: &Path, compression: &str, after: Duration) -> Option<u64> {
    let mut child = start(file, compression);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    std::thread::sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(9) || status.success());
    let said = lines.map(Result::unwrap).filter(|line| line != "finished");
    said.last().map(|line| line.parse().unwrap())
}

/// Lines of `perf script`, which must not say anything else; `None` without perf.
fn perf_lines(file: &Path, home: &Path) -> Option<usize> {
    let output = Command::new("perf")
        .args(["script", "-F", "event", "-i"])
        .arg(file)
        .env("HOME", home)
        .env("PERF_BUILDID_DIR", home)
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    let lines = output.stdout.split(|&byte| byte == b'\n');
    Some(lines.filter(|line| !line.is_empty()).count())
}

/// What became of some kills.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Before there was a trace.
    early: u64,
    /// In the middle of a flush: there are bytes behind the last one.
    torn: u64,
    /// Behind a commit that was not yet told.
    untold: u64,
    /// After the end.
    finished: u64,
}

fn check(file: &Path, told: Option<u64>, tally: &mut Tally, place: &str) {
    let trace = match Trace::open(file) {
        Ok(trace) => trace,
        Err(error) => {
            assert_eq!(told, None, "{place}: {error}");
            tally.early += 1;
            return;
        }
    };
    let found = read(&trace);
    assert_eq!(found.damage, [], "{place}");
    let count = found.samples.len() as u64;
    assert_eq!(found.sorted(), (0..count).collect::<Vec<_>>(), "{place}");
    assert_eq!(
        trace.info().definitions,
        support::info().definitions,
        "{place}"
    );
    // What it had told is there; at most the flush that it was about to tell of, too.
    let told = told.unwrap_or(0);
    assert!(
        count == told || count == told + SAMPLES,
        "{place}: {count}, told {told}"
    );
    tally.untold += u64::from(count > told);
    tally.torn += u64::from(trace.uncommitted().is_some());
    tally.finished += u64::from(trace.is_finished());
    if let Some(lines) = perf_lines(file, file.parent().unwrap()) {
        assert_eq!(lines as u64, count, "{place}: perf's lines");
    } else {
        assert!(std::env::var_os("CI").is_none(), "`perf` is not installed");
    }
}

fn kill_many(compression: &str, kills: u64) {
    let directory = tempfile::tempdir().unwrap();
    let whole = whole_run(directory.path(), compression).as_micros() as u64;
    let mut random = SplitMix64(compression.len() as u64);
    let mut tally = Tally::default();
    // How long a run takes changes with what else the machine does: more kills until enough came inside a flush.
    let torn_enough = |tally: &Tally| tally.torn > kills / 10;
    for kill in (0..10 * kills).map(|kill| kill % kills) {
        let file = directory.path().join("killed");
        // One moment at random in each of as many equal parts of a run.
        let part = whole / kills;
        let after = Duration::from_micros(kill * part + random.below(part.max(1)));
        let told = killed(&file, compression, after);
        check(
            &file,
            told,
            &mut tally,
            &format!("{compression}, killed after {after:?}"),
        );
        std::fs::remove_file(&file).unwrap();
        if kill == kills - 1 && torn_enough(&tally) {
            break;
        }
    }
    assert!(torn_enough(&tally), "kills inside a flush: {tally:?}");
    println!("kills of {compression}: {tally:?}");
}

fn two_hundred_kills_leave_what_was_committed() {
    let threads = ["plain", "zstd"]
        .map(|compression| std::thread::spawn(move || kill_many(compression, KILLS / 2)));
    for thread in threads {
        thread.join().unwrap();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [WRITE, compression, file] => slow_writer::write(file, compression, (SAMPLES, ROUNDS)),
        // What cargo and its relatives ask of a test program.
        [.., "--list"] | ["--list", ..] => {
            println!("two_hundred_kills_leave_what_was_committed: test");
        }
        _ => two_hundred_kills_leave_what_was_committed(),
    }
}
