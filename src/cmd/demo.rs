//! `usdtrec demo`: indexes, lists, records and reports usdtrec's own probes.

use std::ffi::CStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;
use usdtrec_format::escape::shown;

use crate::cli::DemoArgs;
use crate::probes::{self, Request};
use crate::terminal::Usage;
use crate::{sdt, shell};

/// Number of lines of `script` to print.
const EVENTS_SHOWN: usize = 12;

/// Runs the verb, in a temporary directory with its own cache.
pub(crate) fn run(args: &DemoArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    Usage::ensure(
        buildid_dir.is_none(),
        "--buildid-dir has no effect on demo: it makes a build-id cache of its own, and removes it",
    )?;
    if args.workload {
        println!("{} requests", serve_requests());
        return Ok(ExitCode::SUCCESS);
    }
    let stage = Stage::set_up()?;
    let recorded = if sdt::PLANTED {
        record_ourselves(&stage)?
    } else {
        stage.notice("usdtrec has no probes of its own on this architecture")?;
        Recorded::NotAllowed
    };
    if recorded != Recorded::Whole {
        stage.notice("showing a trace that comes with usdtrec: the same workload, recorded on another machine")?;
        stage.unpack_bundled_trace()?;
    }
    stage.heading("Print the events, one per line")?;
    let mut whole = stage.show_head(&["script"], EVENTS_SHOWN)?;
    stage.heading("Summarize the trace")?;
    whole &= stage.show(&["report"])?;
    Ok(if whole && recorded != Recorded::Failed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The outcome of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Whole,
    /// This machine or this user does not allow it.
    NotAllowed,
    /// A command that should have succeeded failed.
    Failed,
}

/// Indexes this binary, lists its probes and records them under the workload.
fn record_ourselves(stage: &Stage) -> anyhow::Result<Recorded> {
    let program = stage.program();
    stage.heading("Index a binary with probes: usdtrec itself")?;
    stage.show(&["buildid-cache", "--add", program])?;
    stage.heading("List its probes, and the locations of their arguments")?;
    stage.show(&["list", "-v", "sdt_usdtrec:*"])?;
    stage.heading("Record them while a small server answers requests")?;
    if let Err(reason) = usdtrec_record::check_privilege() {
        stage.notice(&format!("NOT RECORDED: {reason}"))?;
        stage.notice(&format!("to record: {} demo", shell::sudo()))?;
        return Ok(Recorded::NotAllowed);
    }
    let workload = [program, "demo", "--workload"];
    let record = ["record", "-e", "sdt_usdtrec:*", "--"];
    if stage.show(&[&record[..], &workload[..]].concat())? {
        return Ok(Recorded::Whole);
    }
    stage.notice("NOT RECORDED: see the error above")?;
    Ok(Recorded::Failed)
}

/// The trace that is shown if recording is not possible. `testdata/README.md` has the recipe.
static BUNDLED: &[u8] = include_bytes!("../../testdata/demo.data");

/// A temporary directory with its own build-id cache. It is removed on drop, also after Ctrl-C.
struct Stage {
    directory: TempDir,
    program: String,
    interrupted: Arc<AtomicBool>,
}

impl Stage {
    /// Creates the directory and catches SIGINT, SIGTERM and SIGHUP.
    fn set_up() -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The running command receives the signal, too, and ends; `check_interrupted` then ends the demonstration.
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .context("cannot catch signals")?;
        }
        #[cfg(feature = "record")]
        usdtrec_record::handle_signals();
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let Ok(program) = program.into_os_string().into_string() else {
            bail!("the path of this program is not UTF-8");
        };
        let directory = tempfile::Builder::new()
            .prefix("usdtrec-demo-")
            .tempdir()
            .context("cannot create a temporary directory")?;
        Ok(Self {
            directory,
            program,
            interrupted,
        })
    }

    /// The path of this program.
    fn program(&self) -> &str {
        &self.program
    }

    /// Writes the bundled trace to the path where `record` would have written its trace.
    fn unpack_bundled_trace(&self) -> anyhow::Result<()> {
        let path: PathBuf = self.directory.path().join("usdtrec.data");
        std::fs::write(&path, BUNDLED).with_context(|| format!("cannot write {}", shown(&path)))
    }

    /// Prints the title of the next step.
    fn heading(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "\n# {text}")
    }

    /// Prints a notice, marked with `***`.
    fn notice(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "*** {text}")
    }

    /// Prints a command and runs it. Returns whether it succeeded.
    fn show(&self, arguments: &[&str]) -> anyhow::Result<bool> {
        self.announce(arguments, "")?;
        let status = self
            .command(arguments)
            .status()
            .with_context(|| self.cannot_run())?;
        self.check_interrupted()?;
        Ok(status.success())
    }

    /// Prints a command, runs it and prints the first `lines` lines of its output. Returns whether it succeeded; a closed pipe counts as success.
    fn show_head(&self, arguments: &[&str], lines: usize) -> anyhow::Result<bool> {
        self.announce(arguments, &format!(" | head -n {lines}"))?;
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| self.cannot_run())?;
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).split(b'\n').take(lines) {
                let mut line = line?;
                line.push(b'\n');
                io::stdout().write_all(&line)?;
            }
        }
        let status = child.wait()?;
        self.check_interrupted()?;
        Ok(status.success())
    }

    /// Prints a command in shell syntax.
    fn announce(&self, arguments: &[&str], tail: &str) -> io::Result<()> {
        let words: Vec<String> = arguments.iter().map(shell::word).collect();
        writeln!(io::stdout(), "$ usdtrec {}{tail}", words.join(" "))
    }

    /// A command of this program, with the temporary directory as working directory and cache.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("PERF_BUILDID_DIR", self.directory.path().join("cache"));
        command
    }

    fn cannot_run(&self) -> String {
        format!("cannot run {}", self.program)
    }

    /// Returns an error if a signal has arrived.
    fn check_interrupted(&self) -> anyhow::Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}

/// How long the workload runs.
const DURATION: Duration = Duration::from_secs(2);
/// Number of requests between two garbage collections.
const GC_EVERY: u64 = 50;

/// Methods and URLs; frequent ones are repeated.
const ROUTES: [(&CStr, &CStr); 8] = [
    (c"GET", c"/"),
    (c"GET", c"/"),
    (c"GET", c"/search?q=usdt"),
    (c"GET", c"/items/17"),
    (c"GET", c"/items/42"),
    (c"POST", c"/items"),
    (c"PUT", c"/items/42"),
    (c"GET", c"/favicon.ico"),
];

/// Runs the workload. Returns the number of requests that it answered.
fn serve_requests() -> u64 {
    let begin = Instant::now();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut id = 0;
    while begin.elapsed() < DURATION {
        id += 1;
        serve(id, &mut random);
        if id % GC_EVERY == 0 {
            collect(id / GC_EVERY, &mut random);
        }
    }
    id
}

/// Answers one request in half a millisecond or more.
fn serve(id: u64, random: &mut Random) {
    let request = Request {
        id,
        worker: (id % 4) as u8,
        retries: u16::from(random.below(20) == 0),
    };
    let (method, url) = ROUTES[random.below(8) as usize];
    let begin = Instant::now();
    probes::request_start(&request, method, url);
    let slow = if random.below(50) == 0 { 4000 } else { 0 };
    std::thread::sleep(Duration::from_micros(400 + random.below(600) + slow));
    let (status, bytes) = match random.below(100) {
        0 => (-104, 0),
        1..4 => (500, 180),
        4..12 => (404, 512),
        _ => (200, 800 + random.below(60_000)),
    };
    let latency_ms = begin.elapsed().as_micros() as f64 / 1e3;
    probes::request_done(&request, status, bytes, latency_ms);
}

/// Collects garbage: every fifth time the old generation, too.
fn collect(count: u64, random: &mut Random) {
    let generation = u8::from(count.is_multiple_of(5));
    probes::gc_start(generation);
    let factor = 1 + 4 * u64::from(generation);
    std::thread::sleep(Duration::from_micros(factor * (300 + random.below(200))));
    let freed = 1000 + random.below(9000) as u32;
    let in_use = 0.25 + random.below(50) as f32 / 100.0;
    probes::gc_done(generation, freed, -64 * i64::from(freed), in_use);
}

/// A pseudo-random generator (xorshift64*) with a fixed seed, so that every run has the same requests.
struct Random(u64);

impl Random {
    /// A number in `0..end`; `end` must not be 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}
