//! `record --off-cpu`: how long the threads of hits have waited, beside what a program says of its own waits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Build, Lab, Perf, Process, Recorder, need_tool, test};
use crate::contained;

/// What a part may be off on a busy machine, ns.
const SLACK: u64 = 5_000_000;
const MS: u64 = 1_000_000;
/// What a hypervisor may take from the CPU meanwhile, which the program does not see as its time, ns.
const STOLEN: u64 = 10 * MS;

/// The program, which runs.
struct Target {
    process: Process,
    program: PathBuf,
}

/// A work, as the program saw it.
#[derive(Clone, Copy, Debug)]
struct Truth {
    number: i64,
    cpu: u64,
    waited: u64,
}

/// A hit, as stock perf shows it.
#[derive(Clone, Copy, Debug)]
struct Hit {
    tid: u32,
    time: u64,
    number: i64,
    is_end: bool,
    /// Runnable, in I/O wait, blocked; `None` if not known.
    waits: Option<[u64; 3]>,
    /// Number of waits that are not in these.
    missed: u64,
}

impl Target {
    #[track_caller]
    fn start(lab: &Lab) -> Self {
        Self::start_by(lab, |program| Command::new(program))
    }

    /// The same, with the command that the program's path is made to.
    #[track_caller]
    fn start_by(lab: &Lab, command: impl Fn(&Path) -> Command) -> Self {
        let program = Build::USUAL.make(lab, "waits.c", "waits");
        let process = Process::spawn(command(&program));
        Self { process, program }
    }

    fn event(&self) -> String {
        format!("sdt_waits:*@{}", self.program.display())
    }

    /// Gives it a command. Returns what it printed.
    #[track_caller]
    fn tell(&mut self, command: &str) -> Vec<String> {
        self.process.say(command);
        let mut lines = Vec::new();
        loop {
            match self.process.line().expect("an answer") {
                line if line == "done" => return lines,
                line => lines.push(line),
            }
        }
    }

    /// The same, of works.
    #[track_caller]
    fn works(&mut self, command: &str) -> Vec<Truth> {
        let lines = self.tell(command);
        let truth = |line: &String| {
            let words: Vec<i64> = line
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect();
            let [number, _, cpu, waited] = *words else {
                panic!("{line}");
            };
            Truth {
                number,
                cpu: cpu.cast_unsigned(),
                waited: waited.cast_unsigned(),
            }
        };
        lines.iter().map(truth).collect()
    }

    /// Gives it a command that has an id used twice. Returns the id, or `None` if others were faster each time.
    #[track_caller]
    fn reused_id(&mut self, command: &str) -> Option<u32> {
        (0..5).find_map(|_| {
            let lines = self.tell(command);
            let [line] = &*lines else {
                panic!("{lines:?}");
            };
            let (word, id) = line.split_once(' ').expect("two words");
            (word == "id").then(|| id.parse().expect("an id"))
        })
    }

    #[track_caller]
    fn record(&self, lab: &Lab, options: &[&str]) -> Recorder {
        let pid = self.process.pid().to_string();
        let event = self.event();
        let usual = ["-o", "trace", "-p", &pid, "-e", &event];
        Recorder::start(lab, usual.iter().chain(options))
    }
}

/// The hits of the trace.
#[track_caller]
fn hits(lab: &Lab) -> Vec<Hit> {
    let fields = ["-F", "tid,time,event,trace", "--ns"];
    let script = [&["script", "-i", "trace"][..], &fields].concat();
    let text = Perf::new(lab).run(script).success().stdout;
    let hits = text.lines().filter(|line| !line.contains(WAIT_EVENT));
    let hits: Vec<Hit> = hits.map(hit).collect();
    assert!(!hits.is_empty(), "{text}");
    hits
}

/// The event of a wait.
const WAIT_EVENT: &str = "offcpu:offcpu-time";

/// A wait, as an event says it.
#[derive(Clone, Debug)]
struct Wait {
    pid: u64,
    tid: u32,
    time: u64,
    ns: u64,
    runnable: u64,
    state: String,
    call: String,
    /// What a table shows.
    word: String,
}

/// The waits of the trace.
#[track_caller]
fn waits(lab: &Lab) -> Vec<Wait> {
    let json = [
        "script", "-i", "trace", "-e", WAIT_EVENT, "--format", "json",
    ];
    let json = [&json[..], &["-F", "+period"]].concat();
    let json = lab.usdtrec(json).success().stdout;
    let wait = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let arguments = line.get("args").expect("arguments");
        let number = |line, name| member(line, name).expect("a number");
        let text = |name: &str| {
            let text = arguments.get(name).and_then(Value::as_str);
            text.expect("a string").to_owned()
        };
        let ns = number(arguments, "ns");
        assert_eq!(number(&line, "period"), ns);
        Wait {
            pid: number(&line, "pid"),
            tid: number(&line, "tid") as u32,
            time: number(&line, "time_ns"),
            ns,
            runnable: number(arguments, "runnable"),
            state: text("state"),
            call: text("syscall"),
            word: text("wait"),
        }
    };
    json.lines().map(wait).collect()
}

impl Wait {
    /// Runnable, in I/O wait, blocked.
    #[track_caller]
    fn parts(&self) -> [u64; 3] {
        let rest = self.ns - self.runnable;
        match &*self.state {
            "runnable" => [self.ns, 0, 0],
            "iowait" => [self.runnable, rest, 0],
            "blocked" => [self.runnable, 0, rest],
            other => panic!("{other}"),
        }
    }
}

/// The waits of a thread from one hit to another one.
fn between<'w>(waits: &'w [Wait], begin: &Hit, end: &Hit) -> impl Iterator<Item = &'w Wait> {
    let (tid, times) = (begin.tid, begin.time..end.time);
    let is_between = move |wait: &&Wait| wait.tid == tid && times.contains(&wait.time);
    waits.iter().filter(is_between)
}

/// `  1234 5678.123456789: sdt_waits:work__start: arg1=3 runnable=1 iowait=2 blocked=3 missed_waits=0`
#[track_caller]
fn hit(line: &str) -> Hit {
    let mut words = line.split_whitespace();
    let tid = words.next().and_then(|word| word.parse().ok());
    let time = words.next().expect("a time").trim_end_matches(':');
    let (seconds, ns) = time.split_once('.').expect("seconds");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let value = |name: &str| {
        let mut words = line.split_whitespace();
        let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.unwrap_or_else(|| panic!("no {name}: {line}"))
    };
    let waits = ["runnable", "iowait", "blocked"].map(|name| number(value(name)));
    Hit {
        tid: tid.expect("a thread"),
        time: number(seconds) * 1000 * MS + number(ns),
        number: value("arg1").parse().expect("a number"),
        is_end: line.contains("work__done"),
        waits: (!waits.contains(&u64::MAX)).then_some(waits),
        missed: number(value("missed_waits")),
    }
}

/// The duration of a work, and its parts: on a CPU, runnable, in I/O wait, blocked. `None` if the kernel did not report a switch.
#[track_caller]
fn parts(hits: &[Hit], number: i64) -> Option<(u64, [u64; 4])> {
    let at = |is_end| {
        let mut hits = hits.iter();
        hits.find(|hit| hit.number == number && hit.is_end == is_end)
            .expect("a hit")
    };
    let (begin, end) = (at(false), at(true));
    let duration = end.time - begin.time;
    if end.missed != begin.missed {
        return None;
    }
    let (begin, end) = (begin.waits.expect("known"), end.waits.expect("known"));
    let [runnable, iowait, blocked] = [0, 1, 2].map(|part| end[part] - begin[part]);
    let waited = runnable + iowait + blocked;
    assert!(waited <= duration, "{waited} of {duration}: work {number}");
    Some((duration, [duration - waited, runnable, iowait, blocked]))
}

/// Several works of a command: on a busy machine a thread may be preempted between its clock and what it does then.
const ROUNDS: usize = 3;

/// What the program says of a command, several times.
#[track_caller]
fn rounds(target: &mut Target, command: &str) -> Vec<Vec<Truth>> {
    let rounds = (0..ROUNDS).map(|_| target.works(command));
    rounds.collect()
}

/// Why the parts of a work are not what the program saw; `None` if they are.
#[track_caller]
fn wrong(hits: &[Hit], truth: Truth) -> Option<String> {
    let Truth {
        number,
        cpu,
        waited,
    } = truth;
    let Some((duration, [on_cpu, runnable, iowait, blocked])) = parts(hits, number) else {
        return Some("a switch was not reported".to_owned());
    };
    let is_right = blocked.abs_diff(waited) < SLACK
        && iowait < SLACK
        && on_cpu + SLACK > cpu
        && on_cpu < cpu + STOLEN + SLACK;
    (!is_right).then(|| {
        format!(
            "{duration} = {on_cpu} + {runnable} + {iowait} + {blocked}; cpu {cpu}, waited {waited}"
        )
    })
}

/// In one of the rounds everything is as the program saw it.
#[track_caller]
fn check(hits: &[Hit], rounds: &[Vec<Truth>]) {
    let wrong = |truths: &Vec<Truth>| -> Vec<String> {
        let truths = truths.iter();
        truths.filter_map(|truth| wrong(hits, *truth)).collect()
    };
    let all: Vec<_> = rounds.iter().map(wrong).collect();
    assert!(all.iter().any(Vec::is_empty), "{all:?}");
}

#[test]
fn parts_are_what_the_program_did() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu"]);
    let commands = ["spin 10", "sleep 20", "mutex 30", "nested 10"];
    let all = commands.map(|command| rounds(&mut target, command));
    recorder.stop();
    let hits = hits(&lab);
    let first = hits.first().expect("a hit");
    assert_eq!(first.waits, Some([0; 3]), "sums begin with the first hit");
    for rounds in all {
        check(&hits, &rounds);
    }
}

/// From inside a pid namespace: its threads have other ids outside.
#[test]
fn in_a_container() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let mut target = Target::start_by(&lab, contained::command);
    // The shell has begun it then.
    target.tell("sleep 1");
    let event = target.event();
    let process = contained::child_of(&target.process);
    let options = ["--off-cpu", "-p", "2", "-e", &event];
    let recorder = contained::recorder_in(&lab, &process, &options);
    let all = ["sleep 20", "spin 5"].map(|command| rounds(&mut target, command));
    contained::stop(recorder);
    let hits = hits(&lab);
    for rounds in all {
        check(&hits, &rounds);
    }
    // Their events have the ids that hits have.
    let waits = waits(&lab);
    assert!(waits.iter().any(|wait| wait.word == "clock_nanosleep"));
    let is_inside = |wait: &Wait| wait.pid == 2 && hits.iter().any(|hit| hit.tid == wait.tid);
    assert!(waits.iter().all(is_inside), "{waits:?}");
}

/// With all waits, those between two hits of a thread are what its sums have grown by.
#[test]
fn waits_are_events_that_add_up() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu", "--off-cpu-thresh", "0"]);
    for command in ["spin 10", "sleep 20", "mutex 30", "nested 10", "crowd 50"] {
        target.tell(command);
    }
    recorder.stop();
    let (hits, waits) = (hits(&lab), waits(&lab));
    let (mut threads, mut known): (BTreeMap<u32, &Hit>, usize) = Default::default();
    for hit in &hits {
        let Some(before) = threads.insert(hit.tid, hit) else {
            continue;
        };
        let (Some(from), Some(to)) = (before.waits, hit.waits) else {
            continue;
        };
        if hit.missed == before.missed {
            let sum = |part: usize| between(&waits, before, hit).map(move |w| w.parts()[part]);
            let sums = [0, 1, 2].map(|part| sum(part).sum::<u64>());
            assert_eq!(sums, [0, 1, 2].map(|part| to[part] - from[part]), "{hit:?}");
            known += 1;
        }
    }
    assert!(known > 50, "{known}");
    let of_work = |number: i64| {
        let at = |is_end| {
            let mut hits = hits.iter();
            let hit = hits.find(|hit| hit.number == number && hit.is_end == is_end);
            hit.expect("a hit")
        };
        let longest = between(&waits, at(false), at(true)).max_by_key(|wait| wait.ns);
        longest.expect("a wait")
    };
    let (sleep, mutex) = (of_work(1), of_work(2));
    for (wait, call) in [(sleep, "clock_nanosleep"), (mutex, "futex")] {
        let words = [&*wait.state, &wait.call, &wait.word];
        assert_eq!(words, ["blocked", call, call], "{wait:?}");
        assert!(wait.ns > 15 * MS, "{wait:?}");
    }
    let of_commands = waits.iter().filter(|wait| wait.word == "read");
    assert!(of_commands.count() > 0, "{waits:?}");
}

/// They are shown and weighed by stock perf, and change nothing that is said of probes.
#[test]
fn waits_are_no_hits() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu", "--off-cpu-thresh", "15"]);
    for command in ["sleep 20", "nested 10", "mutex 30"] {
        target.tell(command);
    }
    let end = recorder.stop();
    let (hits, waits) = (hits(&lab), waits(&lab));
    assert!(waits.len() >= 2, "{waits:?}");
    assert!(waits.iter().all(|wait| wait.ns >= 15 * MS), "{waits:?}");
    let said = format!(", {} events, {} waits, 0 lost, ", hits.len(), waits.len());
    assert!(end.stderr.contains(&said), "{said}: {}", end.stderr);
    let perf = Perf::new(&lab);
    let script = ["script", "-i", "trace", "-F", "tid,period,event,trace"];
    let text = perf.run(script).success().stdout;
    let lines = text.lines().filter(|line| line.contains(WAIT_EVENT));
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let expected = waits.iter().map(|wait| {
        let Wait {
            tid,
            ns,
            runnable,
            state,
            call,
            word,
            ..
        } = wait;
        format!("{tid} {ns} {WAIT_EVENT}: ns={ns} runnable={runnable} state={state} syscall={call} wait={word}")
    });
    assert_eq!(lines.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let report = ["report", "-i", "trace", "--stdio", "-F", "period,sample"];
    let text = perf.run(report).success().stdout;
    let sum: u64 = waits.iter().map(|wait| wait.ns).sum();
    let row = format!("{sum} {}", waits.len());
    let mut rows = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(rows.any(|line| line == row), "{row}: {text}");
    // As without their events.
    let told = |options: &[&str]| {
        let usual = ["report", "-i", "trace", "--span", SPAN, "--format", "json"];
        lab.usdtrec([&usual[..], options].concat()).success().stdout
    };
    let whole = told(&[]);
    assert_eq!(whole, told(&["-e", "sdt_waits:*"]));
    assert!(whole.contains("\"parts\":{"), "{whole}");
    // A thread without a hit has no events.
    let recorder = target.record(&lab, &["--off-cpu", "--off-cpu-thresh", "0"]);
    target.process.say("idle");
    std::thread::sleep(Duration::from_millis(100));
    recorder.stop();
    assert!(self::waits(&lab).is_empty());
}
#[test]
fn each_thread_has_its_own() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu"]);
    for _ in 0..3 {
        target.tell("crowd 200");
    }
    recorder.stop();
    let hits = hits(&lab);
    assert_eq!(hits.len(), 1200);
    let (mut usual, mut missed) = (0, 0);
    for number in 0..600 {
        let Some((_, [_, runnable, _, blocked])) = parts(&hits, number) else {
            missed += 1;
            continue;
        };
        // One that is preempted on its way to sleep is runnable.
        let waited = runnable + blocked;
        assert!(waited > 9 * MS, "{number}: {runnable} + {blocked}");
        usual += usize::from(blocked.abs_diff(10 * MS) < SLACK);
    }
    assert!(usual > 300 && missed < 60, "{usual}, {missed}");
    let mut begins: BTreeMap<u32, Vec<Option<[u64; 3]>>> = BTreeMap::new();
    for hit in hits.iter().filter(|hit| !hit.is_end) {
        begins.entry(hit.tid).or_default().push(hit.waits);
    }
    for (tid, begins) in begins {
        assert!(begins.iter().all(|waits| *waits == Some([0; 3])), "{tid}");
    }
}

/// An id that another thread gets has no waits yet.
#[test]
fn a_reused_id_starts_from_zero() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu"]);
    let ids = ["reuse 30", "exec 30"].map(|command| target.reused_id(command));
    recorder.stop();
    let hits = hits(&lab);
    for id in ids {
        let id = id.expect("an id that nobody else took");
        let of_id = hits.iter().filter(|hit| hit.tid == id);
        let known = of_id.filter_map(|hit| Some((hit.waits?, hit.missed)));
        let known: Vec<([u64; 3], u64)> = known.collect();
        let [(first, 0), (slept, missed), (again, 0)] = *known else {
            panic!("{id}: {known:?}");
        };
        assert_eq!((first, again), ([0; 3], [0; 3]), "{id}");
        // The kernel may not report the switch.
        assert!(
            missed > 0 || slept[0] + slept[2] > 29 * MS,
            "{id}: {slept:?}"
        );
    }
    // The first thread of a program that another one has executed had no hit before.
    let executed = hits.iter().filter(|hit| hit.number == -2);
    let executed: Vec<_> = executed.map(|hit| hit.waits).collect();
    assert!(!executed.is_empty());
    assert!(executed.iter().all(|waits| *waits == Some([0; 3])));
}

/// Whether a process has a program at a tracepoint, as the kernel says.
#[track_caller]
fn is_at(pid: u32, tracepoint: &str) -> bool {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("our own child");
    let text = |entry: std::io::Result<fs::DirEntry>| fs::read_to_string(entry.ok()?.path()).ok();
    let mut texts = infos.filter_map(text);
    texts.any(|text| {
        text.lines()
            .any(|line| line.strip_prefix("tp_name:").map(str::trim) == Some(tracepoint))
    })
}

#[test]
fn without_the_option_nothing_is_at_switches() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    for (options, expected) in [(&[][..], false), (&["--off-cpu"], true)] {
        let recorder = target.record(&lab, options);
        for tracepoint in ["sched_switch", "sched_waking"] {
            assert_eq!(is_at(recorder.pid(), tracepoint), expected, "{tracepoint}");
        }
        target.tell("sleep 1");
        recorder.stop();
    }
}

/// The fields of JSON are those that stock perf shows.
#[test]
fn waits_are_fields_of_hits() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let recorder = target.record(&lab, &["--off-cpu"]);
    target.tell("nested 10");
    recorder.stop();
    let fields = "tid,runnable,iowait,blocked";
    let probes = "sdt_waits:*";
    let json = [
        "script", "-i", "trace", "--format", "json", "-e", probes, "-F", fields,
    ];
    let json = lab.usdtrec(json).success().stdout;
    let ours = json.lines().map(|line| {
        let hit: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let number = |name: &str| hit[name].as_u64().expect("a number");
        let waits = ["runnable", "iowait", "blocked"].map(number);
        (number("tid"), Some(waits))
    });
    let hits = hits(&lab);
    let perfs = hits.iter().map(|hit| (u64::from(hit.tid), hit.waits));
    assert_eq!(ours.collect::<Vec<_>>(), perfs.collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let lab = Lab::privileged();
    let target = Target::start(&lab);
    let event = target.event();
    let perf = ["record", "--engine", "perf", "--off-cpu", "-e", &event];
    let command = ["--", "true"];
    lab.usdtrec(perf.iter().chain(&command))
        .exits(2)
        .complains("--off-cpu needs the bpf engine");
    for verb in ["stat", "top"] {
        lab.usdtrec([verb, "--off-cpu", "-e", &event])
            .exits(2)
            .complains("--span <START..DONE|NAME>");
        let of_waits = ["--off-cpu", "--off-cpu-thresh", "1", "--span", SPAN];
        lab.usdtrec([&[verb, "-e", &event][..], &of_waits].concat())
            .exits(2)
            .complains("counts have all waits");
    }
    lab.usdtrec(["record", "--off-cpu-thresh", "1", "-e", &event])
        .exits(2)
        .complains("--off-cpu");
}

/// The span of the program's works.
const SPAN: &str = "waits:work__start..waits:work__done";

/// A member of JSON.
#[track_caller]
fn member(line: &Value, name: &str) -> Option<u64> {
    line.get(name)
        .unwrap_or_else(|| panic!("no {name}: {line}"))
        .as_u64()
}

/// `stat`, `top` and metrics have the sums of the parts: together they are the sum of the durations.
#[test]
fn counts_of_spans_have_the_parts() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "waits.c", "waits");
    let event = format!("sdt_waits:*@{}", program.display());
    let works = format!(
        "printf 'spin 10\\nsleep 20\\nmutex 30\\nnested 10\\n' | {}",
        program.display()
    );
    let run = |verb: &[&str]| {
        let usual = ["--off-cpu", "-e", &event, "--span", SPAN];
        let command = ["--", "sh", "-c", &works];
        let arguments = [verb, &usual, &command].concat();
        lab.usdtrec(arguments).success()
    };
    let json = [
        "stat",
        "--format",
        "json",
        "-I",
        "60000",
        "--prometheus",
        "works.prom",
    ];
    let ran = run(&json);
    let line = ran.stdout.lines().next().unwrap_or_default();
    let line: Value = serde_json::from_str(line).expect("JSON");
    let sum = |name| member(&line, name).unwrap_or_else(|| panic!("{name} is not known: {line}"));
    let parts = ["oncpu_ns", "runnable_ns", "iowait_ns", "blocked_ns"].map(sum);
    assert_eq!(parts.iter().sum::<u64>(), sum("sum_ns"), "{line}");
    assert_eq!((sum("count"), sum("unknown_parts")), (5, 0), "{line}");
    let [on_cpu, .., blocked] = parts;
    let words = ran
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("work "));
    let truths: Vec<[u64; 2]> = words
        .map(|words| {
            let numbers: Vec<u64> = words
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect();
            let [_, _, cpu, waited] = *numbers else {
                panic!("{words}");
            };
            [cpu, waited]
        })
        .collect();
    let [cpu, waited] = [0, 1].map(|place| truths.iter().map(|truth| truth[place]).sum::<u64>());
    // A busy machine wakes threads late.
    assert!(
        blocked >= waited && blocked < waited + 1000 * MS,
        "{waited}: {line}"
    );
    assert!(on_cpu + SLACK > cpu, "{cpu}: {line}");
    let metrics = fs::read_to_string(lab.file("works.prom")).expect("metrics");
    let labels = "provider=\"waits\",span=\"work__start..waits:work__done\"";
    for part in ["oncpu", "runnable", "iowait", "blocked"] {
        let name = format!("usdtrec_span_part_seconds_total{{{labels},part=\"{part}\"}}");
        assert!(metrics.contains(&name), "{name}: {metrics}");
    }
    let top = run(&["top"]);
    assert!(top.stdout.contains(" On CPU  Runnable "), "{}", top.stdout);
    // Another thread may end spans whose key has none: these are no zeros.
    let keyed = run(&["stat", "--format", "json", "--key", "arg1"]);
    let line = keyed.stdout.lines().next().unwrap_or_default();
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(member(&line, "blocked_ns"), None, "{line}");
    assert_eq!(
        member(&line, "unknown_parts"),
        member(&line, "count"),
        "{line}"
    );
    let text = run(&["stat", "--key", "arg1"]);
    let remark = "not known what the time was spent on, as another thread may have ended them";
    assert!(text.stdout.contains(remark), "{}", text.stdout);
}
