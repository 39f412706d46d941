//! A synthetic recording: two probes and the metadata event on two CPUs.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod added;
pub mod log;
pub mod memory;

use std::io::Write;

use log::Log;
use usdtrec_format::perf::{
    Attr, Comm, EventAttr, Mmap, MmapFile, Pmu, RecordType, Records, SampleId, SampleType, Task,
};
use usdtrec_format::schema::Argument;
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::trace::{
    BlockReader, Clock, Compression, Damage, Loss, PipeWriter, ReadError, Storage, Trace,
    TraceInfo, TraceWriter,
};
use usdtrec_format::{
    Arch, BuildId, CapturePlan, CodePlace, Definitions, FileDefinition, ProbeDefinition, Site,
    SiteDefinition,
};

/// The traced process; its second thread has the next number.
pub const PID: i32 = 4242;
/// The events' names and ids.
pub const EVENTS: [(&str, [u64; 2]); 3] = [
    ("sdt_app:start", [101, 102]),
    ("sdt_app:done", [201, 202]),
    ("dummy:u", [301, 302]),
];
/// Registers of the samples of each event: AX, SI, DI, SP.
pub const REGS: [u64; 3] = [0b1011_0001, 0b1001_0001, 0];

/// What all events sample.
const BASE_TYPE: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::CPU.0;

/// The attr of an event.
pub fn attr(event: usize) -> Attr {
    // disabled, inherit, exclude_kernel, sample_id_all, use_clockid
    let mut flags = 1 | 1 << 1 | 1 << 5 | 1 << 18 | 1 << 25;
    let mut sample_type = SampleType(BASE_TYPE);
    if event == 2 {
        // mmap, comm, task, mmap2, comm_exec, build_id
        flags |= 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24 | 1 << 34;
    } else {
        sample_type = sample_type | SampleType::REGS_USER;
    }
    Attr {
        kind: if event == 2 { 1 } else { 8 },
        size: 112,
        config: if event == 2 { 9 } else { 0 },
        sample_period: 1,
        sample_type,
        read_format: 0x14,
        flags,
        sample_regs_user: REGS[event],
        clockid: 1,
        config2: 0x1100 + event as u64,
        ..Attr::default()
    }
}

/// What the sample ids hold.
pub fn id_type() -> SampleType {
    attr(0).id_type()
}

/// The head.
pub fn info() -> TraceInfo {
    TraceInfo {
        tracepoints: Vec::new(),
        hostname: "db7".to_owned(),
        os_release: "6.18.44".to_owned(),
        machine: "x86_64".to_owned(),
        version: "usdtrec 0.1.0".to_owned(),
        cpu_description: "Some CPU @ 2 GHz".to_owned(),
        total_memory_kb: 8_000_000,
        cpus_available: 2,
        cpus_online: 2,
        command: ["usdtrec", "record", "-e", "sdt_app:*", "-a"]
            .map(str::to_owned)
            .to_vec(),
        clock: Some(Clock {
            id: 1,
            resolution_ns: 1,
            wall_ns: 1_790_000_000_000_000_000,
            clock_ns: 5_000_000_000,
        }),
        pmus: [(1, "software"), (8, "uprobe")].map(pmu).to_vec(),
        build_ids: Vec::new(),
        events: (0..EVENTS.len())
            .map(|event| EventAttr {
                attr: attr(event),
                name: EVENTS[event].0.to_owned(),
                ids: EVENTS[event].1.to_vec(),
            })
            .collect(),
        definitions: Some(definitions()),
    }
}

/// The program's build-id.
pub fn build_id() -> BuildId {
    BuildId::new(&[0xab; 20]).unwrap()
}

fn definitions() -> Definitions {
    let probes = (0..2).map(|event| ProbeDefinition {
        event: EVENTS[event].0.to_owned(),
        provider: "app".to_owned(),
        name: EVENTS[event].0.split(':').nth(1).unwrap().to_owned(),
        description: None,
        needs: None,
        call: None,
        lock: None,
        telemetry: Telemetry::default(),
        filter: None,
        file: 0,
        plan: CapturePlan {
            registers: REGS[event],
            stack: 0,
            raw: None,
            user: false,
        },
        arguments: vec![Argument::unnamed(0), Argument::unnamed(1)],
        shown: None,
        sites: vec![SiteDefinition {
            site: Site {
                pc: 0x1100 + event as u64,
                base: 0x2024,
                semaphore: 0,
                offset: Some(0x1100 + event as u64),
                semaphore_offset: None,
                args: "8@%rdi 8@%rsi".to_owned(),
            },
            ids: EVENTS[event].1.to_vec(),
            place: CodePlace::default(),
        }],
    });
    Definitions {
        version: Definitions::VERSION,
        producer: "usdtrec 0.1.0".to_owned(),
        engine: "perf".to_owned(),
        uncounted: None,
        boot: None,
        files: vec![FileDefinition {
            path: "/opt/app/bin/app".into(),
            build_id: Some(build_id()),
            arch: Some(Arch::X86_64),
            by_any_pattern: false,
        }],
        probes: probes.collect(),
    }
}

/// COMM, MMAP2 and FORK of the process, as made up for one that already runs.
pub fn process(out: &mut Vec<u8>) {
    let id = SampleId {
        pid: PID,
        tid: PID,
        ..SampleId::default()
    };
    let comm = Comm {
        pid: PID,
        tid: PID,
        exec: false,
        name: b"app",
        id,
    };
    comm.encode(id_type(), out);
    let map = Mmap {
        pid: PID,
        tid: PID,
        start: 0x5555_5555_4000,
        len: 0x2000,
        offset: 0x1000,
        file: MmapFile::BuildId(build_id()),
        protection: 5,
        flags: 2,
        cpu_mode: Mmap::USER,
        path: b"/opt/app/bin/app",
        id,
    };
    map.encode(id_type(), out);
    let task = Task {
        pid: PID,
        parent_pid: PID,
        tid: PID + 1,
        parent_tid: PID,
        time: 0,
        already_ran: true,
        id,
    };
    task.encode_fork(id_type(), out);
    let comm = Comm {
        tid: PID + 1,
        name: b"app-worker",
        ..comm
    };
    comm.encode(id_type(), out);
}

/// Time of sample `number`, ns.
pub fn time(number: u64) -> u64 {
    5_000_000_000 + number * 1_000
}

/// Sample `number`: alternating events and CPUs, `AX` is the number.
pub fn sample(number: u64, out: &mut Vec<u8>) {
    sample_at(number, time(number), out);
}

/// Sample `number` at another time.
pub fn sample_at(number: u64, time: u64, out: &mut Vec<u8>) {
    let event = (number % 3 == 2) as usize;
    let cpu = number % 2;
    let start = out.len();
    out.extend(9_u32.to_le_bytes());
    out.extend(2_u16.to_le_bytes());
    out.extend([0; 2]);
    let mut word = |word: u64| out.extend(word.to_le_bytes());
    word(EVENTS[event].1[cpu as usize]);
    word(0x5555_5555_4100 + event as u64);
    word(PID as u64 | ((PID as u64 + cpu) << 32));
    word(time);
    word(cpu);
    word(2);
    word(number);
    for register in 1..REGS[event].count_ones() {
        word(0x7ffc_1234_0000 + u64::from(register) * 64 + (number * 7919) % 4096);
    }
    let size = (out.len() - start) as u16;
    out[start + 6..start + 8].copy_from_slice(&size.to_le_bytes());
}

/// A recording in rounds of samples, as a list of their numbers.
pub fn rounds(rounds: u64, samples: u64) -> Vec<Vec<u64>> {
    (0..rounds)
        .map(|round| (round * samples..(round + 1) * samples).collect())
        .collect()
}

/// Pushes one round.
pub fn push_round<S: Storage>(writer: &mut TraceWriter<S>, round: usize, numbers: &[u64]) {
    writer.push(&round_records(round, numbers));
}

/// One round: the process's records in the first, then the samples, each CPU's ring after the other.
pub fn round_records(round: usize, numbers: &[u64]) -> Vec<u8> {
    let mut records = Vec::new();
    if round == 0 {
        process(&mut records);
    }
    for cpu in 0..2 {
        for number in numbers.iter().filter(|number| *number % 2 == cpu) {
            sample(*number, &mut records);
        }
    }
    records
}

/// Writes a stream of rounds as into a pipe.
pub fn pipe_bytes(rounds: &[Vec<u64>], compression: Compression, finish: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, &info(), compression).unwrap();
    for (round, numbers) in rounds.iter().enumerate() {
        writer.push(&round_records(round, numbers));
        writer.flush().unwrap();
    }
    if finish {
        writer.finish(&LOSSES).unwrap();
    }
    bytes
}

/// What the finished trace says that it lost.
pub const LOSSES: [Loss; 2] = [
    Loss {
        event: 0,
        id: 101,
        lost: 17,
    },
    Loss {
        event: 1,
        id: 202,
        lost: 0,
    },
];

/// Writes a trace of rounds and gives the file's bytes.
pub fn trace_bytes(rounds: &[Vec<u64>], compression: Compression, finish: bool) -> Vec<u8> {
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info(), compression).unwrap();
    for (round, numbers) in rounds.iter().enumerate() {
        push_round(&mut writer, round, numbers);
        writer.flush().unwrap();
    }
    if finish {
        writer.finish(&LOSSES).unwrap();
    }
    log.image(log.steps(), 0)
}

/// Opens bytes as a trace.
pub fn open(bytes: &[u8]) -> Result<Trace, ReadError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Trace::from_file(file)
}

/// Everything that a trace gives.
#[derive(Debug, Default)]
pub struct Found {
    /// Bodies of the samples in file order.
    pub samples: Vec<Vec<u8>>,
    /// Other records than samples and perf's own.
    pub metadata: usize,
    /// All damage, that of opening first.
    pub damage: Vec<Damage>,
}

/// Reads all blocks.
pub fn read(trace: &Trace) -> Found {
    let mut found = Found {
        damage: trace.damage().to_vec(),
        ..Found::default()
    };
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        match reader.read(trace, block) {
            Ok(records) => {
                for record in Records::new(records) {
                    match record.kind {
                        RecordType::SAMPLE => found.samples.push(record.body.to_vec()),
                        RecordType(0..64) => found.metadata += 1,
                        _ => {}
                    }
                }
            }
            Err(damage) => found.damage.push(damage),
        }
        found.damage.extend(reader.cut().cloned());
    }
    found
}

impl Found {
    /// The numbers of the samples, as [`sample`] put them into `AX`.
    pub fn numbers(&self) -> Vec<u64> {
        let number = |body: &Vec<u8>| {
            let word = body.get(48..).and_then(|rest| rest.first_chunk::<8>());
            u64::from_le_bytes(*word.unwrap())
        };
        self.samples.iter().map(number).collect()
    }

    /// The numbers in ascending order.
    pub fn sorted(&self) -> Vec<u64> {
        let mut numbers = self.numbers();
        numbers.sort_unstable();
        numbers
    }

    /// Whether records of the trace are said to be missing.
    pub fn tells_loss(&self) -> bool {
        self.damage.iter().any(Damage::loses_records)
    }
}

fn pmu((kind, name): (u32, &str)) -> Pmu {
    Pmu {
        kind,
        name: name.to_owned(),
    }
}
