//! A test that does not end within its limit fails with the stacks of its processes, which are ended. The run goes on.
//!
//! Each test has a thread of its own. The kernel knows which processes a thread has started, and threads inherit names: so `.ci/stacks` finds the
//! processes of one test among those of others. If the thread does not end with its processes it is left alone.

use std::cell::RefCell;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed};

use crate::{is_deep, number};

/// Prints the stacks of processes, and ends them.
const STACKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/stacks");

/// Seconds that a test may take, and with `USDTREC_TEST_DEEP=1`.
const USUAL: u64 = 5 * 60;
const DEEP: u64 = 30 * 60;

/// How long its thread may take to end after its processes.
const END_TIME: Duration = Duration::from_secs(10);

/// What the kernel keeps of a thread's name, bytes.
const NAME: usize = 15;

type Outcome = Result<Completion, Failed>;

/// How long a test has taken.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    /// Time that does not count.
    waited: Mutex<Waited>,
}

#[derive(Debug, Default)]
struct Waited {
    total: Duration,
    since: Option<Instant>,
}

impl Clock {
    fn elapsed(&self) -> Duration {
        let waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = waited.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.begun.elapsed().saturating_sub(waited.total + waits)
    }

    fn change(&self, change: impl FnOnce(&mut Waited)) {
        change(&mut self.waited.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

thread_local! {
    /// That of the test that this thread runs.
    static CLOCK: RefCell<Option<Arc<Clock>>> = const { RefCell::new(None) };
}

/// Waits for other tests, which does not count as time of this one.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let clock = CLOCK.with_borrow(Clone::clone);
    let Some(clock) = clock else {
        return wait();
    };
    clock.change(|waited| waited.since = Some(Instant::now()));
    let waited_for = wait();
    clock.change(|waited| {
        let since = waited.since.take();
        waited.total += since.map_or(Duration::ZERO, |since| since.elapsed());
    });
    waited_for
}

/// Runs a test in a thread of its own, within its limit.
pub(crate) fn run(name: &str, test: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // No two tests of a run have the same.
    let name = format!("{}:{name}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let limit = Duration::from_secs(number(
        "USDTREC_TEST_LIMIT",
        if is_deep() { DEEP } else { USUAL },
    ));
    let clock = Arc::new(Clock {
        begun: Instant::now(),
        waited: Mutex::default(),
    });
    let (sender, outcome) = channel();
    let of_test = Arc::clone(&clock);
    let thread = thread::Builder::new().name(name.clone()).spawn(move || {
        CLOCK.set(Some(of_test));
        let _ = sender.send(test());
    });
    let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
    if let Some(outcome) = outcome_within(&outcome, &clock, limit) {
        // What is dropped at the end of the thread belongs to the test.
        let _ = thread.join();
        return outcome;
    }
    let stacks = end_processes(&name);
    let rest = match outcome.recv_timeout(END_TIME) {
        Ok(Err(failed)) => failed.message().unwrap_or_default().to_owned(),
        Ok(Ok(_)) => "its processes were ended, and then the test, too".to_owned(),
        Err(_) => "its processes were ended, but the test goes on".to_owned(),
    };
    let limit = limit.as_secs();
    Err(
        format!("the test did not end within {limit} s (USDTREC_TEST_LIMIT)\n{stacks}{rest}")
            .into(),
    )
}

/// The outcome of a test, unless it takes longer than it may.
fn outcome_within(outcome: &Receiver<Outcome>, clock: &Clock, limit: Duration) -> Option<Outcome> {
    /// It may wait for others, whose end nobody knows.
    const SHORTEST: Duration = Duration::from_millis(100);
    loop {
        let left = limit.saturating_sub(clock.elapsed());
        match outcome.recv_timeout(left.max(SHORTEST)) {
            Ok(outcome) => return Some(outcome),
            Err(RecvTimeoutError::Disconnected) => {
                return Some(Err("the thread of the test ended without a result".into()));
            }
            Err(RecvTimeoutError::Timeout) if clock.elapsed() < limit => {}
            Err(RecvTimeoutError::Timeout) => return None,
        }
    }
}

/// Ends the processes of a test. Returns what its threads and they were doing.
fn end_processes(name: &str) -> String {
    let mut kept = name.as_bytes().to_vec();
    kept.truncate(NAME);
    let own = std::process::id();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let threads = threads.flatten().filter(|thread| {
        let comm = fs::read(thread.path().join("comm")).unwrap_or_default();
        comm.strip_suffix(b"\n") == Some(&kept)
    });
    let threads = threads.map(|thread| format!("{own}/{}", thread.file_name().display()));
    let printed = Command::new(STACKS)
        .arg("-k")
        .args(threads)
        .stdin(Stdio::null())
        .output();
    match printed {
        Ok(printed) => String::from_utf8_lossy(&[printed.stdout, printed.stderr].concat()).into(),
        Err(error) => format!("{STACKS}: {error}\n"),
    }
}
