//! The program in a process of its own, so that its memory and time can be limited.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Address space that the program needs besides the memory that it asks for: its code, libraries and threads' stacks.
const BESIDES: u64 = 64 << 20;
/// Seconds of CPU time, after which it is ended.
const CPU_SECONDS: u64 = 60;

/// How it went.
pub struct Ran {
    pub status: ExitStatus,
    pub out: String,
    pub errors: String,
    pub took: Duration,
}

/// Runs the program with a trace as its input and so many bytes of memory at most: asking for more makes it abort.
pub fn run(arguments: &[&str], trace: &Path, memory: u64) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let (out, errors) = (directory.path().join("out"), directory.path().join("err"));
    let kib = (memory + BESIDES) >> 10;
    let limits = format!("ulimit -v {kib}; ulimit -t {CPU_SECONDS}; ulimit -c 0; exec \"$@\"");
    let begun = Instant::now();
    let status = Command::new("sh")
        .args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_usdtrec")])
        .arg("--buildid-dir")
        .arg(directory.path())
        .args(arguments)
        .arg("-i")
        .arg(trace)
        // Every thread's heap would reserve 64 MiB.
        .env("MALLOC_ARENA_MAX", "1")
        .env("RAYON_NUM_THREADS", "2")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&errors).unwrap())
        .status()
        .unwrap();
    let text = |path: &Path| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    Ran {
        status,
        out: text(&out),
        errors: text(&errors),
        took: begun.elapsed(),
    }
}

impl Ran {
    /// Asserts that the limits were enough.
    pub fn assert_well(&self) {
        let errors: String = self.errors.chars().take(2000).collect();
        assert!(
            self.status.success(),
            "{} after {:?}: {errors}",
            self.status,
            self.took
        );
    }
}
