//! Recordings made by hand: two probes of one program, samples wherever a test wants them.

#![allow(
    unreachable_pub,
    reason = "a public item of a module is one of the tests"
)]

use std::io::Read;
use std::path::{Path, PathBuf};

use usdtrec_format::perf::{
    Attr, Comm, EventAttr, Mmap, MmapFile, Pmu, SampleId, SampleType, Task, TracepointField,
    TracepointFormat,
};
use usdtrec_format::schema::Argument;
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::trace::{
    Clock, ClockReading, Compression, FiredTrigger, Loss, Pause, Shortfall, TraceInfo, TraceWriter,
};
use usdtrec_format::{
    Arch, CapturePlan, CodePlace, Definitions, FileDefinition, ProbeDefinition, RawArgument,
    RawField, RawLayout, Site, SiteDefinition,
};
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question};
use usdtrec_report::report::{self, ReportOptions};
use usdtrec_report::script::{self, ScriptOptions, StreamOutput};
use usdtrec_report::{
    AnswerQuestions as _, ContextQuestion, EventSelection, HintWords, Notices, ReportError,
    Sources, StreamSummary, TraceSession,
};
use usdtrec_testing::is_deep;

/// Words for hints: their fields.
pub const HINTS: HintWords = HintWords(|hint| format!("{hint:?}"));

/// Where the program is mapped: file offset 0x1000 at this address.
pub const BASE: u64 = 0x5555_0000_1000;
/// Sample ids of the two sites of `app:request`, of the one of `app:done`, and of the metadata event.
pub const REQUEST: u64 = 10;
pub const REQUEST_INLINED: u64 = 11;
pub const DONE: u64 = 20;
/// Of `app:inner`, which has what `app:done` has ([`with_inner`]).
pub const INNER: u64 = 21;
const METADATA: u64 = 30;
/// Of waits ([`with_wait_events`]), and the `common_type` of their event.
pub const WAIT: u64 = 40;
const WAIT_TYPE: u16 = 10_000;
/// Registers sampled: `ax`, `si`, `sp`; then those of `app:done`: `ax`.
const REGISTERS: [u64; 2] = [1 << 0 | 1 << 4 | 1 << 7, 1];
const STACK: u32 = 32;

/// A sample of `app:request`: `ax`, `si`, and the stack's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub id: u64,
    pub pid: i32,
    pub tid: i32,
    pub cpu: u32,
    pub time: u64,
    /// Address, if not the one of the id's site.
    pub ip: Option<u64>,
    pub ax: u64,
    pub si: u64,
    pub stack: [u64; 4],
}

/// Thread 101 of process 100 on CPU 1.
pub const HIT: Hit = Hit {
    id: REQUEST,
    pid: 100,
    tid: 101,
    cpu: 1,
    time: 5_000_000_000,
    ip: None,
    ax: 7,
    si: u64::MAX,
    stack: [1, 2, 3, 4],
};

/// A trace being written into a directory of its own.
pub struct Recording {
    dir: tempfile::TempDir,
    writer: TraceWriter,
}

/// A finished trace, in a directory that is removed with it.
pub struct Recorded {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

/// The stack pointer of every sample.
pub const SP: u64 = 0x7ffc_0000_0000;

fn attr(event: usize) -> Attr {
    let base = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU;
    let mut attr = Attr {
        kind: 8,
        size: 112,
        sample_period: 1,
        sample_type: base,
        read_format: 0x14,
        // inherit, exclude_kernel, sample_id_all, use_clockid
        flags: 1 << 1 | 1 << 5 | Attr::SAMPLE_ID_ALL | Attr::USE_CLOCKID,
        clockid: 1,
        ..Attr::default()
    };
    match event {
        0 => {
            attr.sample_type = base | SampleType::REGS_USER | SampleType::STACK_USER;
            attr.sample_regs_user = REGISTERS[0];
            attr.sample_stack_user = STACK;
        }
        1 => {
            attr.sample_type = base | SampleType::REGS_USER;
            attr.sample_regs_user = REGISTERS[1];
        }
        _ => {
            attr.kind = 1;
            attr.config = 9;
            // mmap, comm, task, mmap2, comm_exec, build_id
            attr.flags |= 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24 | 1 << 34;
        }
    }
    attr
}

fn site(offset: u64, args: &str, id: u64) -> SiteDefinition {
    SiteDefinition {
        site: Site {
            pc: offset,
            base: 0,
            semaphore: 0,
            offset: Some(offset),
            semaphore_offset: None,
            args: args.to_owned(),
        },
        ids: vec![id],
        place: CodePlace::default(),
    }
}

fn probe(
    name: &str,
    plan: CapturePlan,
    names: &[&str],
    sites: Vec<SiteDefinition>,
) -> ProbeDefinition {
    ProbeDefinition {
        event: format!("sdt_app:{name}"),
        provider: "app".to_owned(),
        name: name.to_owned(),
        description: None,
        needs: None,
        call: None,
        lock: None,
        telemetry: Telemetry::default(),
        filter: None,
        file: 0,
        plan,
        arguments: names.iter().map(|&name| Argument::named(name)).collect(),
        shown: None,
        sites,
    }
}

fn definitions(program: &Path) -> Definitions {
    let plan = |event: usize, stack| CapturePlan {
        registers: REGISTERS[event],
        stack,
        raw: None,
        user: false,
    };
    Definitions {
        version: Definitions::VERSION,
        producer: "usdtrec test".to_owned(),
        engine: "perf".to_owned(),
        uncounted: None,
        boot: None,
        files: vec![FileDefinition {
            path: program.to_owned(),
            build_id: None,
            arch: Some(Arch::X86_64),
            by_any_pattern: false,
        }],
        probes: vec![
            probe(
                "request",
                plan(0, STACK),
                &["arg1", "arg2", "arg3", "arg4"],
                vec![
                    site(0x1010, "-4@%eax 8@%rsi -8@8(%rsp) 8f@%xmm0", REQUEST),
                    site(
                        0x1020,
                        "-4@$-5 8@%rsi 2@16(%rsp) 4@-4(%rsp)",
                        REQUEST_INLINED,
                    ),
                ],
            ),
            probe(
                "done",
                plan(1, 0),
                &["arg1"],
                vec![site(0x1030, "8@%rax", DONE)],
            ),
        ],
    }
}

/// Adds the probe `app:inner`, which begins and ends nothing.
pub fn with_inner(info: &mut TraceInfo) {
    let event = EventAttr {
        attr: attr(1),
        name: "sdt_app:inner".to_owned(),
        ids: vec![INNER],
    };
    // The metadata event stays the last one.
    info.events.insert(2, event);
    let plan = CapturePlan {
        registers: REGISTERS[1],
        stack: 0,
        raw: None,
        user: false,
    };
    let sites = vec![site(0x1040, "8@%rax", INNER)];
    if let Some(definitions) = &mut info.definitions {
        definitions
            .probes
            .push(probe("inner", plan, &["number"], sites));
    }
}

/// Makes the two probes those of a recorder that adds up how long threads wait: hits are those of [`Recording::waited`].
pub fn with_waits(info: &mut TraceInfo) {
    let field = |offset, size, signed| {
        RawArgument::Field(RawField {
            offset,
            size,
            signed,
            fault: None,
            string: None,
        })
    };
    let none = || RawArgument::NotCaptured {
        reason: "left out".to_owned(),
    };
    let arguments = [
        vec![field(8, 4, true), field(16, 8, false), none(), none()],
        vec![field(16, 8, false)],
    ];
    let definitions = info.definitions.as_mut().unwrap();
    let probes = definitions.probes.iter_mut().zip(&mut info.events);
    for ((probe, event), (id, arguments)) in probes.zip((100..).zip(arguments)) {
        event.attr.kind = 2;
        event.attr.config = u64::from(id);
        event.attr.sample_type = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::RAW;
        event.attr.sample_regs_user = 0;
        event.attr.sample_stack_user = 0;
        probe.sites.truncate(1);
        probe.plan = CapturePlan {
            registers: 0,
            stack: 0,
            raw: Some(RawLayout {
                id,
                size: 48,
                missing: None,
                string_limit: 0,
                arguments,
                listed: false,
                thread_context: None,
                thread_waits: Some(24),
            }),
            user: false,
        };
    }
}

/// A wait of a thread, ns, as it is recorded when the thread is back on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct RecordedWait {
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    pub ns: u64,
    pub runnable: u64,
    /// `blocked`, `iowait` or `runnable`.
    pub state: &'static str,
    pub wait: &'static str,
}

/// Adds the event of waits: hits are those of [`Recording::wait`].
pub fn with_wait_events(info: &mut TraceInfo) {
    let fields = [
        ("u64 ns", 8, 8),
        ("u64 runnable", 16, 8),
        ("__data_loc char[] state", 24, 4),
        ("__data_loc char[] syscall", 28, 4),
        ("__data_loc char[] wait", 32, 4),
    ];
    let fields = fields.map(|(declaration, offset, size)| TracepointField {
        declaration: declaration.to_owned(),
        offset,
        size,
        signed: false,
    });
    info.tracepoints.push(TracepointFormat {
        system: "offcpu".to_owned(),
        name: "offcpu-time".to_owned(),
        id: WAIT_TYPE,
        fields: fields.to_vec(),
        print: "%s".to_owned(),
        print_arguments: vec!["__get_str(wait)".to_owned()],
    });
    let mut attr = attr(1);
    attr.kind = Attr::TRACEPOINT;
    attr.config = u64::from(WAIT_TYPE);
    attr.sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::PERIOD
        | SampleType::RAW;
    attr.sample_regs_user = 0;
    let event = EventAttr {
        attr,
        name: "offcpu:offcpu-time".to_owned(),
        ids: vec![WAIT],
    };
    info.events.push(event);
}

impl Recording {
    /// A wait of a recording [`with_wait_events`].
    pub fn wait(&mut self, wait: RecordedWait) {
        let words = [
            WAIT,
            0,
            wait.pid as u32 as u64 | (wait.tid as u64) << 32,
            wait.time,
            1,
            wait.ns,
        ];
        let mut body: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let mut raw = u64::from(WAIT_TYPE).to_le_bytes().to_vec();
        raw.extend(
            [wait.ns, wait.runnable]
                .into_iter()
                .flat_map(u64::to_le_bytes),
        );
        let texts = [wait.state, "", wait.wait];
        let mut at = raw.len() + 4 * texts.len();
        for text in texts {
            let length = text.len() + 1;
            raw.extend((at as u32 | (length as u32) << 16).to_le_bytes());
            at += length;
        }
        for text in texts {
            raw.extend(text.bytes().chain([0]));
        }
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        let header = 9 | 2 << 32 | (8 + body.len() as u64) << 48;
        self.writer
            .push(&[&header.to_le_bytes()[..], &body].concat());
    }

    /// A hit of a recording [`with_waits`]: runnable, in I/O wait, blocked, ns.
    pub fn waited(&mut self, hit: Hit, waits: [u64; 3]) {
        let words = [
            hit.id,
            hit.ip.unwrap_or(ip(hit.id)),
            hit.pid as u32 as u64 | (hit.tid as u64) << 32,
            hit.time,
            u64::from(hit.cpu),
        ];
        let mut body: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        // With its size in front and what makes it a multiple of 8 bytes.
        body.extend(52_u32.to_le_bytes());
        let raw = [u64::from(hit.ax as u32), hit.si];
        body.extend([0; 8]);
        body.extend(raw.into_iter().chain(waits).flat_map(u64::to_le_bytes));
        body.extend([0; 4]);
        let header = 9 | 2 << 32 | (8 + body.len() as u64) << 48;
        self.writer
            .push(&[&header.to_le_bytes()[..], &body].concat());
    }

    /// A recording of `/opt/app`.
    pub fn start() -> Self {
        Self::record(Path::new("/opt/app"))
    }

    /// A recording of a program.
    pub fn record(program: &Path) -> Self {
        Self::with(program, |_| ())
    }

    /// A recording of a program, its head changed.
    pub fn with(program: &Path, change: impl FnOnce(&mut TraceInfo)) -> Self {
        let events = [
            ("sdt_app:request", vec![REQUEST, REQUEST_INLINED]),
            ("sdt_app:done", vec![DONE]),
            ("dummy:u", vec![METADATA]),
        ];
        let mut info = TraceInfo {
            hostname: "db7".to_owned(),
            os_release: "6.18.44".to_owned(),
            machine: "x86_64".to_owned(),
            version: "usdtrec test".to_owned(),
            cpus_available: 64,
            cpus_online: 64,
            command: ["usdtrec", "record", "-a"].map(str::to_owned).to_vec(),
            clock: Some(Clock {
                id: 1,
                resolution_ns: 1,
                wall_ns: 1_795_000_000_000_000_000,
                clock_ns: 5_000_000_000,
            }),
            pmus: [(1, "software"), (8, "uprobe")].map(pmu).to_vec(),
            events: events
                .into_iter()
                .enumerate()
                .map(|(at, (name, ids))| EventAttr {
                    attr: attr(at),
                    name: name.to_owned(),
                    ids,
                })
                .collect(),
            definitions: Some(definitions(program)),
            ..TraceInfo::default()
        };
        change(&mut info);
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create_new(dir.path().join("trace.data")).unwrap();
        let writer = TraceWriter::create(file, &info, Compression::Zstd(1)).unwrap();
        Self { dir, writer }
    }

    /// A recording with process 100, thread 101 and the program's mapping.
    pub fn usual() -> Self {
        let mut recording = Self::start();
        recording.comm(0, (100, 100), "server", false);
        recording.comm(0, (100, 101), "worker", false);
        recording.mmap(0, 100, "/opt/app");
        recording
    }

    fn id(time: u64) -> SampleId {
        SampleId {
            time,
            identifier: METADATA,
            ..SampleId::default()
        }
    }

    pub fn comm(&mut self, time: u64, (pid, tid): (i32, i32), name: &str, exec: bool) {
        let mut record = Vec::new();
        let comm = Comm {
            pid,
            tid,
            exec,
            name: name.as_bytes(),
            id: Self::id(time),
        };
        comm.encode(attr(2).id_type(), &mut record);
        self.writer.push(&record);
    }

    pub fn fork(&mut self, time: u64, (pid, tid): (i32, i32), parent: (i32, i32)) {
        let mut record = Vec::new();
        let task = Task {
            pid,
            parent_pid: parent.0,
            tid,
            parent_tid: parent.1,
            time,
            already_ran: false,
            id: Self::id(time),
        };
        task.encode_fork(attr(2).id_type(), &mut record);
        self.writer.push(&record);
    }

    /// A thread that runs already, as a recorder finds it.
    pub fn running(&mut self, (pid, tid): (i32, i32), parent: i32, name: &str) {
        let mut record = Vec::new();
        let task = Task {
            pid,
            parent_pid: parent,
            tid,
            parent_tid: parent,
            time: 0,
            already_ran: true,
            id: Self::id(0),
        };
        task.encode_fork(attr(2).id_type(), &mut record);
        self.writer.push(&record);
        self.comm(0, (pid, tid), name, false);
    }

    /// When recording began and ended.
    pub fn recorded(&mut self, began: u64, until: u64) {
        self.writer.set_recorded(began, until);
    }

    pub fn mmap(&mut self, time: u64, pid: i32, path: &str) {
        self.mmap_at(time, pid, (BASE, 0x10_0000, 0x1000), path);
    }

    /// A mapping of `len` bytes at `start`, from an offset of the file on.
    pub fn mmap_at(&mut self, time: u64, pid: i32, at: (u64, u64, u64), path: &str) {
        let (start, len, offset) = at;
        let mut record = Vec::new();
        let map = Mmap {
            pid,
            tid: pid,
            start,
            len,
            offset,
            file: MmapFile::Inode {
                major: 8,
                minor: 1,
                inode: 3,
                generation: 0,
            },
            protection: 5,
            flags: 2,
            cpu_mode: Mmap::USER,
            path: path.as_bytes(),
            id: Self::id(time),
        };
        map.encode(attr(2).id_type(), &mut record);
        self.writer.push(&record);
    }

    pub fn shortfall(&mut self, time: u64, shortfall: &Shortfall) {
        let mut record = Vec::new();
        let id = Self::id(time);
        let encoded = shortfall.encode(&id, attr(2).id_type(), &mut record);
        encoded.unwrap();
        self.writer.push(&record);
    }

    pub fn pause(&mut self, pause: &Pause) {
        let mut record = Vec::new();
        let id = Self::id(pause.to_ns.unwrap_or(pause.from_ns));
        let encoded = pause.encode(&id, attr(2).id_type(), &mut record);
        encoded.unwrap();
        self.writer.push(&record);
    }

    pub fn fired(&mut self, fired: &FiredTrigger) {
        let mut record = Vec::new();
        fired.encode(attr(2).id_type(), &mut record).unwrap();
        self.writer.push(&record);
    }

    pub fn hit(&mut self, hit: Hit) {
        self.writer.push(&sample(hit));
    }

    pub fn clocks(&mut self, readings: &[ClockReading]) {
        self.writer.add_clocks(readings);
    }

    pub fn flush(&mut self) {
        self.writer.flush().unwrap();
    }

    /// As in the middle of a pass over all rings.
    pub fn flush_part(&mut self) {
        self.writer.flush_part().unwrap();
    }

    pub fn finish(self) -> Recorded {
        self.finish_with(&[])
    }

    /// Ends with losses of events, by their index.
    pub fn finish_with(self, losses: &[(usize, u64, u64)]) -> Recorded {
        let losses: Vec<Loss> = losses
            .iter()
            .map(|&(event, id, lost)| Loss { event, id, lost })
            .collect();
        self.writer.finish(&losses).unwrap();
        Recorded {
            path: self.dir.path().join("trace.data"),
            _dir: self.dir,
        }
    }

    /// Leaves the file as a killed recorder does.
    pub fn kill(self) -> Recorded {
        Recorded {
            path: self.dir.path().join("trace.data"),
            _dir: self.dir,
        }
    }
}

/// Address of a hit of a sample id.
pub fn ip(id: u64) -> u64 {
    let offset = match id {
        REQUEST => 0x1010,
        REQUEST_INLINED => 0x1020,
        INNER => 0x1040,
        _ => 0x1030,
    };
    BASE - 0x1000 + offset
}

fn sample(hit: Hit) -> Vec<u8> {
    let mut words = vec![
        hit.id,
        hit.ip.unwrap_or(ip(hit.id)),
        hit.pid as u32 as u64 | (hit.tid as u64) << 32,
        hit.time,
        u64::from(hit.cpu),
        2,
        hit.ax,
    ];
    if ![DONE, INNER].contains(&hit.id) {
        words.extend([hit.si, SP, u64::from(STACK)]);
        words.extend(hit.stack);
        words.push(u64::from(STACK));
    }
    let size = 8 + 8 * words.len() as u64;
    // PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, size
    let header = 9 | 2 << 32 | size << 48;
    std::iter::once(header)
        .chain(words)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// What `script` prints of a stream.
pub fn script_of_stream(
    stream: impl Read,
    selection: &EventSelection,
    context: &ContextQuestion,
    options: &ScriptOptions,
) -> (String, StreamSummary) {
    let mut out = Vec::new();
    let to = StreamOutput {
        out: &mut out,
        lost: &mut |_, _| {},
    };
    let (path, sources) = (Path::new("-"), Sources::default());
    let summary = script::print_stream(stream, path, &sources, selection, context, options, to);
    (String::from_utf8(out).unwrap(), summary.unwrap())
}

/// Numbers below what is asked, the same ones for a seed.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |most| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % most
    }
}

impl Recorded {
    /// A directory with these files.
    pub fn together(files: &[Self]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (number, file) in files.iter().enumerate() {
            // The names say nothing about the order.
            let name = format!("trace.{}", files.len() - number);
            std::fs::copy(&file.path, dir.path().join(name)).unwrap();
        }
        Self {
            path: dir.path().to_owned(),
            _dir: dir,
        }
    }

    pub fn session(&self) -> TraceSession {
        TraceSession::open(&self.path, &Sources::default()).unwrap()
    }

    /// What `script` prints.
    pub fn script(&self, selection: &EventSelection, options: &ScriptOptions) -> (String, Notices) {
        let mut out = Vec::new();
        let notices = script::print(&self.session(), selection, options, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), notices)
    }

    /// What `script` prints of everything in a format.
    pub fn script_as(&self, format: Format) -> String {
        let options = ScriptOptions {
            format,
            ..ScriptOptions::default()
        };
        self.script(&EventSelection::default(), &options).0
    }

    /// What `script --format json` prints, line by line.
    pub fn json(&self, selection: &EventSelection) -> Vec<serde_json::Value> {
        let options = ScriptOptions {
            format: Format::Json,
            ..ScriptOptions::default()
        };
        let (text, _) = self.script(selection, &options);
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What `report` prints with so many threads.
    pub fn answer(&self, threads: usize, question: Question, format: Format) -> String {
        let options = ReportOptions {
            format,
            hints: HINTS,
            trace: Some(String::new()),
            ..ReportOptions::default()
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let ask = || self.report(&question, &options);
        pool.build().unwrap().install(ask).unwrap().0
    }

    /// The same, asserted to be so with 1, 2 and 7 threads.
    pub fn same_answer(&self, question: &Question, format: Format) -> String {
        let one = self.answer(1, question.clone(), format);
        // Any number of threads but one is the same case.
        let others: &[usize] = if is_deep() { &[2, 7] } else { &[7] };
        for &threads in others {
            let answer = self.answer(threads, question.clone(), format);
            assert!(answer == one, "{threads} threads: {question:?}");
        }
        one
    }

    /// What `report` prints.
    pub fn report(
        &self,
        question: &Question,
        options: &ReportOptions,
    ) -> Result<(String, Notices), ReportError> {
        self.report_selected(&EventSelection::default(), question, options)
    }

    /// What `report` prints of the selected events.
    pub fn report_selected(
        &self,
        selection: &EventSelection,
        question: &Question,
        options: &ReportOptions,
    ) -> Result<(String, Notices), ReportError> {
        let answer = self.session().answer(selection, question)?;
        let mut out = Vec::new();
        report::write(&answer, options, &mut out)?;
        Ok((String::from_utf8(out).unwrap(), answer.notices))
    }

    /// What `report` prints of everything in a format, grouped by keys.
    pub fn report_as(&self, format: Format, sort: &[&str]) -> String {
        let question = match sort {
            [] => Question::Summary,
            sort => Question::Groups {
                sort: sort.iter().map(|&key| key.to_owned()).collect(),
                value: None,
                top: None,
                order: GroupOrder::default(),
            },
        };
        let options = ReportOptions {
            format,
            hints: HINTS,
            trace: Some(String::new()),
            ..ReportOptions::default()
        };
        self.report(&question, &options).unwrap().0
    }
}

fn pmu((kind, name): (u32, &str)) -> Pmu {
    Pmu {
        kind,
        name: name.to_owned(),
    }
}
