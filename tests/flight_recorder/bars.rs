//! Figures: how long a file takes, what is lost, and how much memory a window needs. They are printed; no time is asserted.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{dump, files, samples};
use crate::common::{Build, Lab, Process, Recorder, test};

/// Hits that make a window of about 50 MB without compression.
const HITS: usize = 600_000;

/// A status line of a process, in kB.
fn status(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

/// A window of 50 MB, and a thousand triggers.
#[test]
fn a_large_window_and_many_triggers() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let output = folder.path().join("t.data");
    let output = output.to_str().expect("a path");
    let options = [
        "-a", "-e", &event, "-o", output, "-z0", "--ring", "1h,100M", "--keep", "3", "-m", "512M",
    ];
    let recorder = Recorder::start(&lab, options);
    let before = status(recorder.pid(), "RssAnon:");
    let mut command = Command::new(&program);
    command.arg(HITS.to_string());
    let mut hot = Process::spawn(command);
    hot.say("go");
    let first = hot.line();
    assert!(first.is_some_and(|line| line.starts_with("hits ")));
    let begun = Instant::now();
    let file = dump(&lab, &recorder);
    let took = begun.elapsed();
    let bytes = file.metadata().expect("a file").len();
    let (anonymous, all) = (
        status(recorder.pid(), "RssAnon:"),
        status(recorder.pid(), "VmRSS:"),
    );
    println!(
        "a file of {:.1} MB: {:.0} ms with the client; memory {} kB before the hits, {anonymous} kB with them ({all} kB with rings)",
        bytes as f64 / 1e6,
        took.as_secs_f64() * 1e3,
        before,
    );
    assert_eq!(samples(&file), HITS as u64);
    // As fast as they are taken; some join another one that waits.
    let begun = Instant::now();
    for _ in 0..50 {
        recorder.signal("USR2");
        std::thread::sleep(Duration::from_millis(60));
        assert!(
            files(folder.path(), "t.data").len() <= 4,
            "one is being written"
        );
    }
    let last = dump(&lab, &recorder);
    println!("51 further files in {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(samples(&last), HITS as u64);
    let finished = recorder.stop().complains(" 0 lost");
    assert_eq!(
        files(folder.path(), "t.data").len(),
        3,
        "{}",
        finished.stderr
    );
}
