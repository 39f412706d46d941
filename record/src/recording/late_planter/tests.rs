//! Probes that are added to a recording of real programs, which count their hits.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use usdtrec_attach::chosen::ProcessChoice;
use usdtrec_attach::engine::{
    AttachRequest, Attached, EngineChoice, EngineOptions, LateSettings, NonResident, PartPlanter,
    TaskFilter, UprobePmu,
};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::places::Places;
use usdtrec_attach::plan::Strings;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_attach::select::{EventSelector, Request, select};
use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Pattern;
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::schema::Schemas;
use usdtrec_kernel::host::cpus;
use usdtrec_kernel::signals::Signals;
use usdtrec_watch::verify::ExpectedFiles;

use crate::recording::losses::EventCounts;

/// Compiles `asked.c` for a provider.
fn compile(directory: &Path, provider: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/targets/asked.c");
    let path = directory.join(provider);
    let define = format!("-DPROVIDER={provider}");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", &define, "-o"]).arg(&path).arg(source);
    assert!(compiler.status().unwrap().success());
    path
}

/// A running program that hits its probe when it is asked.
struct Program {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// The process that hits the probe; `None` for a child that is not started yet.
    hits: Option<u32>,
}

impl Program {
    fn start(path: impl AsRef<Path>) -> Self {
        let mut program = Self::run(&mut Command::new(path.as_ref()));
        program.hits = Some(program.pid());
        program
    }

    /// A shell that starts the program as its child when it is asked ([`begin`](Self::begin)).
    fn start_shell(path: &Path) -> Self {
        let script = format!("read line; {}; true", path.display());
        Self::run(Command::new("sh").args(["-c", &script]))
    }

    fn run(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            hits: None,
        }
    }

    /// Starts the child, if it is one that hits the probe.
    fn begin(&mut self) {
        if self.hits.is_none() {
            writeln!(self.input, "begin").unwrap();
            self.hit(0);
            let children = format!("/proc/{0}/task/{0}/children", self.pid());
            let children = fs::read_to_string(children).unwrap();
            self.hits = Some(children.trim().parse().unwrap());
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Hits the probe so often; a child does it if the number is negative.
    fn hit(&mut self, count: i64) {
        writeln!(self.input, "{count}").unwrap();
        assert_eq!(self.output.next().unwrap().unwrap(), "done");
    }

    /// Its probe.
    fn probes(&self) -> Vec<PlannedProbe> {
        let path = format!("/proc/{}/exe", self.hits.unwrap());
        let file = Arc::new(ObjectFile::open(path.as_ref()).unwrap());
        let events = [EventSelector {
            pattern: Pattern::parse("asked_*:step").unwrap(),
            filter: None,
            list: None,
        }];
        let request = Request {
            starts_programs: true,
            events: &events,
            indexed: Vec::new(),
            files: vec![file],
            found: HashMap::new(),
            places: &Places::default(),
            is_host: false,
            processes: &[self.hits.unwrap()],
            force: false,
            may_wait: false,
            schemas: &Schemas::default(),
        };
        select(request).unwrap().probes
    }

    /// Number of breakpoints that it has.
    fn breakpoints(&self) -> usize {
        let expected = ExpectedFiles::of_probes(&self.probes());
        expected
            .planted_in(self.hits.unwrap().cast_signed())
            .unwrap()
            .len()
    }
}

impl Program {
    /// Waits until it has no breakpoint: links of children that have ended may be closed later.
    fn wait_until_undisturbed(&self) {
        let begun = Instant::now();
        while self.breakpoints() > 0 {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "a breakpoint stays"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How to record.
#[derive(Clone, Debug)]
struct How {
    choice: EngineChoice,
    target: Target,
    inherit: bool,
    ring_bytes: Option<usize>,
}

impl How {
    fn options(&self) -> EngineOptions {
        EngineOptions {
            slow_spans: None,
            budget: None,
            choice: self.choice,
            cpus: None,
            ring_bytes: self.ring_bytes,
            strings: Strings {
                limit: 0,
                known: false,
            },
            graph: None,
            nonresident: NonResident::Auto,
            no_gap: None,
            processes: ProcessChoice::default(),
            thread_context: false,
            off_cpu: false,
            least_wait: None,
            aggregation: None,
        }
    }

    fn is_named(&self) -> bool {
        self.target != Target::All
    }

    fn filter(&self) -> TaskFilter {
        self.target.filter(self.inherit)
    }

    /// Attaches probes, and enables them.
    fn attach(&self, probes: Vec<PlannedProbe>, signals: &Signals) -> Attached {
        let end_signal = signals.end_signal().unwrap();
        let cpus = cpus::online().unwrap();
        let request = AttachRequest {
            options: &self.options(),
            perf_target: self.target.perf_target(cpus, self.inherit).unwrap(),
            filter: self.filter(),
            pmu: UprobePmu::find(),
            end_signal: &end_signal,
            may_wait: false,
            say: &|_| {},
        };
        let attached = Attached::open(probes, &request).unwrap();
        attached.engine.enable().unwrap();
        attached
    }

    fn planter(&self, attached: &Attached, signals: &Signals) -> PartPlanter {
        let settings = LateSettings {
            options: self.options(),
            filter: self.filter(),
            pmu: UprobePmu::find(),
            end_signal: signals.end_signal().unwrap(),
        };
        attached.late_planter(settings).unwrap()
    }
}

/// The samples so far, by sample id.
#[derive(Default)]
struct Samples(HashMap<u64, u64>);

impl Samples {
    fn take(&mut self, records: &[u8]) {
        let records = Records::new(records);
        for record in records.filter(|record| record.kind == RecordType::SAMPLE) {
            let id = u64::from_ne_bytes(*record.body.first_chunk().unwrap());
            *self.0.entry(id).or_default() += 1;
        }
    }

    fn drain(&mut self, attached: &mut Attached) {
        attached.engine.drain(&mut |records: &[u8]| {
            self.take(records);
            Vec::new()
        });
    }

    fn end(&mut self, attached: &mut Attached) {
        attached.disable().unwrap();
        attached
            .engine
            .end(None, &mut |records: &[u8]| self.take(records));
    }

    /// Samples of a probe.
    fn count(&self, attached: &Attached, probe: usize) -> u64 {
        let ids = attached.attrs[probe].attr.ids.iter();
        ids.filter_map(|id| self.0.get(id)).sum()
    }
}

/// Detaches the probes.
fn detach(attached: &mut Attached) {
    assert!(attached.engine.release().wait(Duration::from_secs(60)));
}

/// Number of children that hit a probe.
const CHILDREN: i64 = 40;

/// Adds a probe to a recording. `stranger` is another process of its file, which is recorded only with all processes.
fn adds_to(how: &How, first: Option<&mut Program>, later: &mut Program, stranger: &mut Program) {
    let signals = Signals::catch(false).unwrap();
    let probes = first.as_ref().map_or_else(Vec::new, |first| first.probes());
    let has_first = usize::from(first.is_some());
    let mut attached = how.attach(probes, &signals);
    let (mut samples, mut hits_of_first) = (Samples::default(), 0);
    let mut first = first;
    let mut hit_first = |count: i64| {
        let Some(first) = &mut first else { return };
        first.hit(count);
        hits_of_first += count.unsigned_abs();
    };
    let spares = attached.engine.spares_strangers();
    later.begin();
    later.hit(7);
    let mut planter = how.planter(&attached, &signals);
    let probes = later.probes();
    let part = thread::scope(|scope| {
        let planting = scope.spawn(|| planter.plant(&probes));
        while !planting.is_finished() {
            hit_first(100);
            samples.drain(&mut attached);
        }
        planting.join().unwrap().unwrap()
    });
    assert_eq!(later.breakpoints(), 1, "{how:?}");
    later.hit(11);
    let added = attached.add(part);
    assert_eq!(added.probes, has_first..has_first + 1);
    assert!(added.refused.is_empty(), "{added:?}");
    attached.engine.enable().unwrap();
    let is_spared = how.is_named() && !added.is_everywhere;
    assert!(is_spared || !spares, "{how:?}");
    assert_eq!(stranger.breakpoints(), usize::from(!is_spared), "{how:?}");
    later.hit(2000);
    hit_first(500);
    // So many that the probes are attached to all processes of the files at some time.
    (0..CHILDREN).for_each(|_| later.hit(-10));
    if how.is_named() {
        stranger.hit(100);
    }
    // Another part for the same site.
    let part = planter.plant(&probes).unwrap();
    attached.add(part);
    attached.engine.enable().unwrap();
    later.hit(300);
    later.hit(-30);
    samples.end(&mut attached);
    later.hit(13);
    let in_children = |hits: i64| if how.inherit { hits as u64 } else { 0 };
    let last = 300 + in_children(30);
    let added = 2000 + in_children(10 * CHILDREN) + last;
    assert_eq!(samples.count(&attached, has_first), added, "{how:?}");
    assert_eq!(samples.count(&attached, has_first + 1), last, "{how:?}");
    let all = samples.0.values().sum::<u64>();
    assert_eq!(all, hits_of_first + added + last, "{how:?}");
    let counts = EventCounts::read(&attached).unwrap();
    assert_eq!((counts.hits, counts.lost), (all, 0), "{how:?}");
    detach(&mut attached);
    later.wait_until_undisturbed();
    stranger.wait_until_undisturbed();
}

#[test]
fn hits_of_added_probes_are_recorded_once_from_when_they_are_enabled() {
    if !usdtrec_testing::can_record() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let paths = ["asked_first", "asked_later"].map(|name| compile(directory.path(), name));
    for choice in [EngineChoice::BpfMulti, EngineChoice::BpfPerf] {
        for (is_named, inherit) in [(false, true), (true, true), (true, false)] {
            let [mut first, mut later, mut stranger] =
                [0, 1, 1].map(|index: usize| Program::start(&paths[index]));
            let mut how = How {
                choice,
                target: Target::All,
                inherit,
                ring_bytes: None,
            };
            if is_named {
                how.target = Target::Processes(vec![first.pid(), later.pid()]);
            }
            adds_to(&how, Some(&mut first), &mut later, &mut stranger);
            adds_to(&how, None, &mut later, &mut stranger);
        }
    }
}

/// Added probes are attached to children that have links of their own, too.
#[test]
fn a_child_that_runs_gets_added_probes() {
    if !usdtrec_testing::can_record() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let paths = ["asked_parent", "asked_child"].map(|name| compile(directory.path(), name));
    for choice in [EngineChoice::BpfMulti, EngineChoice::BpfPerf] {
        let [mut first, mut stranger] = [0, 1].map(|index: usize| Program::start(&paths[index]));
        let mut later = Program::start_shell(&paths[1]);
        let how = How {
            choice,
            target: Target::Processes(vec![later.pid(), first.pid()]),
            inherit: true,
            ring_bytes: None,
        };
        adds_to(&how, Some(&mut first), &mut later, &mut stranger);
    }
}

/// The kernel plants in the file behind the descriptor, which needs no path.
#[test]
fn a_file_without_a_path_is_planted() {
    if !usdtrec_testing::can_record() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = compile(directory.path(), "asked_unlinked");
    let memory = memfd_create("asked", MemfdFlags::empty()).unwrap();
    File::from(memory.try_clone().unwrap())
        .write_all(&fs::read(&path).unwrap())
        .unwrap();
    let [mut unlinked, mut stranger] = [(); 2].map(|()| Program::start(&path));
    fs::remove_file(path).unwrap();
    let path = |file: &dyn AsRawFd| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    // A file that is open for writing cannot be executed.
    let readable = File::open(path(&memory)).unwrap();
    drop(memory);
    let [mut in_memory, mut other] = [(); 2].map(|()| Program::start(path(&readable)));
    for (later, stranger) in [(&mut unlinked, &mut stranger), (&mut in_memory, &mut other)] {
        let how = How {
            choice: EngineChoice::Bpf,
            target: Target::Processes(vec![later.pid()]),
            inherit: true,
            ring_bytes: None,
        };
        adds_to(&how, None, later, stranger);
    }
}

/// Hits that find no room are counted for each part by itself, with the event that the trace has for it.
#[test]
fn lost_hits_of_added_probes_are_counted() {
    const HITS: u64 = 20_000;
    if !usdtrec_testing::can_record() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let programs = ["asked_lost", "asked_lost_later"];
    let [mut first, mut later] =
        programs.map(|name| Program::start(compile(directory.path(), name)));
    let how = How {
        choice: EngineChoice::Bpf,
        target: Target::All,
        inherit: true,
        ring_bytes: Some(4096),
    };
    let signals = Signals::catch(false).unwrap();
    let mut attached = how.attach(first.probes(), &signals);
    let mut planter = how.planter(&attached, &signals);
    let part = planter.plant(&later.probes()).unwrap();
    attached.add(part);
    attached.engine.enable().unwrap();
    first.hit(HITS as i64);
    later.hit(HITS as i64);
    let mut samples = Samples::default();
    samples.end(&mut attached);
    let counts = EventCounts::read(&attached).unwrap();
    assert_eq!(counts.hits, 2 * HITS);
    for (probe, event) in [(0, 0), (1, 2)] {
        let losses = counts.since(&EventCounts::default());
        let lost: u64 = losses
            .iter()
            .filter(|loss| loss.event == event)
            .map(|loss| loss.lost)
            .sum();
        assert_eq!(samples.count(&attached, probe) + lost, HITS, "{losses:?}");
        assert!(lost > 0, "{losses:?}");
    }
    detach(&mut attached);
}

#[test]
fn the_end_of_a_recording_ends_attaching() {
    if !usdtrec_testing::can_record() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let later = Program::start(compile(directory.path(), "asked_ending"));
    let how = How {
        choice: EngineChoice::Bpf,
        target: Target::All,
        inherit: true,
        ring_bytes: None,
    };
    let signals = Signals::catch(false).unwrap();
    let attached = how.attach(Vec::new(), &signals);
    let mut planter = how.planter(&attached, &signals);
    signals.forget();
    let planted = planter.plant(&later.probes());
    assert!(
        matches!(planted, Err(RecordError::Interrupted(_))),
        "{planted:?}"
    );
    assert_eq!(later.breakpoints(), 0);
}
