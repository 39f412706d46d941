//! A library that one process maps more than once: `dlmopen(3)` into another namespace, `LD_AUDIT`. The kernel raises the semaphore of one copy.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{
    Build, Finished, Lab, Process, Recorder, complaints, path_text, test, wait_until,
};

const LIBRARY: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-fuse-ld=bfd", "-DLIBRARY", "-shared", "-fPIC"],
};

/// The reason, where hits are missing.
const REASON: &str = "the kernel raises the semaphore of one copy only";

/// A program that loads a library.
struct Loader {
    process: Process,
    library: PathBuf,
}

impl Loader {
    fn start(program: &Path, library: &Path) -> Self {
        Self {
            process: Process::spawn(Command::new(program)),
            library: library.to_owned(),
        }
    }

    fn tell(&mut self, command: &str) -> String {
        self.process.say(command);
        self.process.line().expect("an answer")
    }

    fn load(&mut self) {
        let command = format!("load {}", self.library.display());
        assert_eq!(self.tell(&command), "loaded");
    }

    /// How often the probe was enabled.
    fn hit(&mut self, copy: usize, times: usize) -> usize {
        let answer = self.tell(&format!("hit {copy} {times}"));
        let enabled = answer.strip_prefix("enabled ").expect("a number");
        enabled.parse().expect("a number")
    }

    fn semaphores(&mut self) -> Vec<u16> {
        let answer = self.tell("semaphores");
        let words = answer.split_whitespace();
        words
            .map(|word| word.parse().expect("a semaphore"))
            .collect()
    }

    fn wait_until_raised(&mut self) {
        wait_until("the semaphores of all copies", || {
            self.semaphores().iter().all(|value| *value > 0)
        });
    }
}

fn built(lab: &Lab) -> (PathBuf, PathBuf) {
    let program = Build::USUAL.make(lab, "mapped_twice.c", "loader");
    let library = LIBRARY.make(lab, "mapped_twice.c", "libtwice.so");
    (program, library)
}

fn event(library: &Path) -> String {
    format!("twice:hit@{}", library.display())
}

/// Loaded before and while a process is recorded, by its number and with all.
#[test]
fn all_copies_have_their_hits() {
    for is_named in [true, false] {
        let lab = Lab::privileged();
        let (program, library) = built(&lab);
        let event = event(&library);
        let mut loader = Loader::start(&program, &library);
        loader.load();
        loader.load();
        let pid = loader.process.pid().to_string();
        let target: &[&str] = if is_named { &["-p", &pid] } else { &["-a"] };
        let words = ["-o", "trace", "-e", &event];
        let recorder = Recorder::start(&lab, words.iter().chain(target));
        loader.wait_until_raised();
        assert_eq!((loader.hit(0, 50), loader.hit(1, 70)), (50, 70));
        loader.load();
        let mut hits = 120 + loader.hit(2, 10);
        loader.wait_until_raised();
        assert_eq!(loader.hit(2, 40), 40);
        assert_eq!(loader.hit(0, 5), 5);
        hits += 45;
        let finished = recorder.stop().complains(REASON);
        assert_eq!(lab.events("trace").len(), hits, "{}", finished.stderr);
        assert_eq!(loader.semaphores(), [0, 0, 0], "{}", finished.stderr);
        assert_eq!(complaints(&library), 0);
    }
}

/// The copy whose semaphore the kernel raised is unloaded, and the one that was raised by hand stays.
#[test]
fn an_unloaded_copy() {
    for closed in [0, 1] {
        let lab = Lab::privileged();
        let (program, library) = built(&lab);
        let mut loader = Loader::start(&program, &library);
        loader.load();
        loader.load();
        let pid = loader.process.pid().to_string();
        let event = event(&library);
        let recorder = Recorder::start(&lab, ["-o", "trace", "-e", &event, "-p", &pid]);
        loader.wait_until_raised();
        assert_eq!(loader.tell(&format!("close {closed}")), "closed");
        assert_eq!(loader.hit(1 - closed, 30), 30);
        recorder.stop();
        assert_eq!(lab.events("trace").len(), 30);
        // What the kernel has counted for the breakpoint of the copy that is gone stays in the other one, as without us.
        assert!(loader.semaphores()[0] <= 1, "{closed}");
        assert_eq!(complaints(&library), 0);
    }
}

#[test]
fn a_killed_recorder() {
    let lab = Lab::with_own_notes();
    let (program, library) = built(&lab);
    let mut loader = Loader::start(&program, &library);
    loader.load();
    let pid = loader.process.pid().to_string();
    let event = event(&library);
    let recorder = Recorder::start(&lab, ["-o", "trace", "-e", &event, "-p", &pid]);
    loader.load();
    loader.wait_until_raised();
    recorder.signal("KILL");
    let _: Finished = recorder.finish();
    wait_until("the kernel's decrements", || {
        let semaphores = loader.semaphores();
        semaphores.iter().filter(|value| **value > 0).count() <= 1
    });
    let healed = lab.usdtrec(["doctor", "--heal"]);
    // On a busy host the kernel may still be at the breakpoints.
    let what = format!("all semaphores to be 0 after {healed:?}");
    wait_until(&what, || loader.semaphores() == [0, 0]);
    assert_eq!(loader.hit(0, 5) + loader.hit(1, 5), 0);
    assert_eq!(complaints(&library), 0);
}

#[test]
fn an_auditing_library() {
    let lab = Lab::privileged();
    let (program, library) = built(&lab);
    let event = event(&library);
    let recorder = Recorder::start(&lab, ["-o", "trace", "-e", &event, "-a"]);
    let mut command = Command::new(&program);
    command.env("LD_AUDIT", path_text(&library));
    let mut loader = Loader {
        process: Process::spawn(command),
        library: library.clone(),
    };
    loader.load();
    loader.wait_until_raised();
    assert_eq!(loader.hit(0, 25), 25);
    recorder.stop();
    assert_eq!(lab.events("trace").len(), 25);
    assert_eq!(loader.semaphores(), [0]);
    assert_eq!(complaints(&library), 0);
}
