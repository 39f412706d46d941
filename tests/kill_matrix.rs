//! Recorders and their guards killed at any moment: whatever dies, nothing of it stays.
//!
//! With one exception, which is the kernel's: while SIGKILL is pending it cannot write into programs (`get_user_pages`). So if the process
//! that makes the system call which plants is killed together with the recorder, breakpoints and raised semaphores may stay ("uprobe: … failed
//! to unregister, leaking uprobe"). The end of another recording of the same probes removes them.
//!
//! `USDTREC_KILLS` is the number of kills an engine (5).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use usdtrec_testing::repetitions;

use crate::common::{
    Build, Engine, Lab, Process, Recorder, Ticker, events_of_recorder, signal, test, wait_until,
    within,
};

/// Which part of a recording it is killed in.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Planting,
    Recording,
    Ending,
}

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Recorder,
    /// The processes that the recorder started, and that these started: guards, that which plants, and at the end those that close
    /// descriptors.
    Guards,
    Both,
}

const MOMENTS: [Moment; 3] = [Moment::Planting, Moment::Recording, Moment::Ending];
const VICTIMS: [Victim; 3] = [Victim::Recorder, Victim::Guards, Victim::Both];

/// A time below this many milliseconds, another one for each round.
fn some_time(round: usize, below: usize) -> Duration {
    // A number without a divisor in common with `below`.
    Duration::from_micros((round * 7919 % (below * 1000)) as u64)
}

/// Processes that a process started, and that these started.
fn descendants_of(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    children
        .flat_map(|pid| [vec![pid], descendants_of(pid)].concat())
        .collect()
}

/// Sends SIGKILL to those that still run.
fn kill(pids: &[u32]) {
    let running = |pid: &&u32| Path::new(&format!("/proc/{pid}")).exists();
    for pid in pids.iter().filter(running) {
        let pid = pid.to_string();
        // It may end by itself just now.
        let _ = Command::new("kill").args(["-KILL", &pid]).output();
    }
}

/// The machine code of a running program's file mapping.
fn code_of(process: u32, program: &Path) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("our own child");
    let name = program.to_str().expect("a path in UTF-8");
    let line = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.ends_with(name));
    let range = line.and_then(|line| line.split(' ').next());
    let (start, end) = range
        .and_then(|range| range.split_once('-'))
        .expect("its code is mapped");
    let address = |text| u64::from_str_radix(text, 16).expect("an address");
    let mut code = vec![0; (address(end) - address(start)) as usize];
    let memory = fs::File::open(format!("/proc/{process}/mem")).expect("our own child");
    memory
        .read_exact_at(&mut code, address(start))
        .expect("mapped");
    code
}

/// What is recorded: a program that answers, and one that hits all the time.
struct Targets {
    ticker: Ticker,
    code: Vec<u8>,
    hot: Process,
    events: String,
}

impl Targets {
    fn start(lab: &Lab) -> Self {
        let ticker = Ticker::start(lab);
        let program = Build::USUAL.make(lab, "hot.c", "hot");
        let mut command = Command::new(&program);
        command.arg("1000000000000");
        let mut hot = Process::spawn(command);
        hot.say("go");
        let code = code_of(ticker.pid(), ticker.program());
        let events = format!("{},sdt_hot:req@{}", ticker.event("*"), program.display());
        Self {
            ticker,
            code,
            hot,
            events,
        }
    }

    fn is_untouched(&mut self) -> bool {
        self.ticker.semaphores() == (0, 0)
            && code_of(self.ticker.pid(), self.ticker.program()) == self.code
    }

    /// Whether the program that hits runs, and is not stopped.
    fn goes_on(&mut self) -> bool {
        self.hot.is_running() && state_of(self.hot.pid()) != Some('T')
    }
}

fn engine_leaves_nothing(engine: Engine) {
    let lab = Lab::privileged();
    let mut targets = Targets::start(&lab);
    let kills = repetitions("USDTREC_KILLS", 5) as usize;
    for round in 0..kills {
        let moment = MOMENTS[round % 3];
        let victim = VICTIMS[(round + round / 3) % 3];
        let what = format!("{engine:?}, round {round}: {victim:?} while {moment:?}");
        let mut command = lab.command(["record", "-a", "-m", "64K", "--engine", engine.option()]);
        command.args(["-o", "trace", "-e", &targets.events]);
        let mut recorder = Process::spawn(command);
        match moment {
            Moment::Planting => std::thread::sleep(some_time(round, 300)),
            Moment::Recording => {
                recorder.until_error_line("[ usdtrec record:");
                std::thread::sleep(some_time(round, 100));
            }
            Moment::Ending => {
                recorder.until_error_line("[ usdtrec record:");
                targets.ticker.hit("fire 5");
                recorder.signal("INT");
                std::thread::sleep(some_time(round, 50));
            }
        }
        let guards = descendants_of(recorder.pid());
        let own = [recorder.pid()];
        match victim {
            Victim::Recorder => kill(&own),
            Victim::Guards => {
                kill(&guards);
                // It goes on, and ends in order.
                if recorder.is_running() {
                    targets.ticker.hit("fire 5");
                    // It may end by itself just now. SIGINT may be ignored until it catches signals: shells start background jobs so.
                    let pid = recorder.pid().to_string();
                    let _ = Command::new("kill").args(["-TERM", &pid]).output();
                }
            }
            Victim::Both => {
                // Guards first, so that they find nothing to do.
                kill(&guards);
                kill(&own);
            }
        }
        let pid = recorder.pid();
        let ended = recorder.finish();
        // Before it catches signals, they end it.
        if matches!(victim, Victim::Guards) && !matches!(moment, Moment::Planting) {
            assert!(ended.status.code().is_some(), "{what}: {}", ended.stderr);
        }
        if !matches!(victim, Victim::Recorder) {
            lab.usdtrec(["doctor", "--heal"]);
        }
        let may_leave = matches!((moment, victim), (Moment::Planting, Victim::Both));
        if may_leave && !within(Duration::from_secs(10), || targets.is_untouched()) {
            eprintln!(
                "{what}: the kernel left something, which is removed with the next recording"
            );
            let options = ["-a", "-o", "trace", "-e", &targets.events];
            Recorder::start(&lab, options).stop();
        }
        wait_until(&what, || targets.is_untouched());
        let goes_on = within(Duration::from_secs(120), || targets.goes_on());
        let state = state_of(targets.hot.pid());
        assert!(goes_on, "{what}: the other program's state is {state:?}");
        wait_until(&format!("{what}: {:?}", events_of_recorder(pid)), || {
            events_of_recorder(pid).is_empty()
        });
        wait_until(&what, || guards.iter().all(|guard| has_ended(*guard)));
        targets.ticker.hit("fire 2");
        targets.ticker.hit("fork 2");
    }
    // Another test's recorder may have been killed just now.
    wait_until("doctor", || {
        let told = lab.usdtrec(["doctor"]);
        told.status.success() && told.stdout.contains("nothing is left")
    });
    let here: Vec<_> = fs::read_dir(lab.path())
        .expect("the lab")
        .flatten()
        .map(|file| file.file_name().into_string().expect("a name"))
        .filter(|name| !["ticker", "hot", "trace", "trace.old", "cache"].contains(&&**name))
        .collect();
    assert_eq!(here, [""; 0], "files that were left");
    signal(targets.hot.pid(), "KILL");
}

/// The letter of a process's state, while there is one.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Whether a process is gone, or a zombie.
fn has_ended(pid: u32) -> bool {
    state_of(pid).is_none_or(|state| state == 'Z')
}

/// What a process was started with.
fn words_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// The kernel takes a tenth of a second for each site here: all are killed amid that.
#[test]
fn killed_while_removing_leaves_nothing() {
    let lab = Lab::privileged();
    let mut targets = Targets::start(&lab);
    for round in 0..5 {
        let options = ["record", "-a", "--engine", "perf-tracefs", "-o", "trace"];
        let mut recorder =
            Process::spawn(lab.command([&options[..], &["-e", &targets.events]].concat()));
        recorder.until_error_line("[ usdtrec record:");
        assert!(!targets.is_untouched());
        recorder.signal("INT");
        let removes = |pid: &u32| words_of(*pid).contains("release-probes");
        let mut helpers = Vec::new();
        wait_until("nobody removes the probes", || {
            helpers = descendants_of(recorder.pid());
            helpers.iter().any(removes)
        });
        std::thread::sleep(Duration::from_millis(20 * round));
        helpers = descendants_of(recorder.pid());
        for pid in helpers.into_iter().chain([recorder.pid()]) {
            kill(&[pid]);
        }
        recorder.finish();
        wait_until(&format!("round {round}"), || targets.is_untouched());
    }
    // The events of recorders that were killed with their guards.
    lab.usdtrec(["doctor", "--heal"]);
    signal(targets.hot.pid(), "KILL");
}

#[test]
fn killed_bpf_multi_leaves_nothing() {
    engine_leaves_nothing(Engine::BpfMulti);
}

#[test]
fn killed_bpf_perf_leaves_nothing() {
    engine_leaves_nothing(Engine::BpfPerf);
}

#[test]
fn killed_perf_tracefs_leaves_nothing() {
    engine_leaves_nothing(Engine::PerfTracefs);
}

#[test]
fn killed_perf_pmu_leaves_nothing() {
    engine_leaves_nothing(Engine::PerfPmu);
}
