//! Records in a sound file: what stands in chunks, which are compressed and so are hardly ever hit by damage to the file.
//!
//! A byte says how the file is written; the rest are records.

use std::fs::File;

use usdtrec_format::perf::{
    Attr, Comm, EventAttr, Mmap, MmapFile, Records, SampleId, SampleType, Task,
};
use usdtrec_format::schema::Argument;
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::trace::{Compression, Loss, TraceInfo, TraceWriter};
use usdtrec_format::{
    Arch, BuildId, CapturePlan, CodePlace, Definitions, FileDefinition, ProbeDefinition,
    RawArgument, RawField, RawLayout, RawString, Site, SiteDefinition,
};

use super::file::Scratch;
use super::shown;

/// Shows the records in one of the ways.
pub fn run(bytes: &[u8]) {
    let Some((&how, records)) = bytes.split_first() else {
        return;
    };
    let compression = if how & 1 == 0 {
        Compression::None
    } else {
        Compression::Zstd(1)
    };
    let scratch = Scratch::new(&[]);
    let mut writer = TraceWriter::create(scratch.open(), &info(), compression).unwrap();
    let mut walk = Records::new(records);
    walk.by_ref().for_each(drop);
    let records = &records[..walk.offset()];
    // Several rounds, so that blocks overlap.
    let mut rounds = Records::new(records);
    let mut at = 0;
    for _ in 0..how >> 1 & 3 {
        rounds.by_ref().take(4).for_each(drop);
        push(&mut writer, &records[at..rounds.offset()]);
        at = rounds.offset();
    }
    push(&mut writer, &records[at..]);
    if how & 8 != 0 {
        // Records of a kind that the writer refuses were told of by `flush`.
        let _ = writer.finish(&[]);
    }
    shown::some(&scratch.path(), crc32fast::hash(bytes));
}

fn push(writer: &mut TraceWriter<File>, records: &[u8]) {
    writer.push(records);
    let _ = writer.flush();
}

const BASE: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::CPU.0;

/// Events of several machines and with every part that a sample can have.
const EVENTS: [(&str, u64, &str, Arch); 5] = [
    ("sdt_app:plain", 0, "4@$5 -8@%rdi", Arch::X86_64),
    (
        "sdt_app:registers",
        SampleType::REGS_USER.0 | SampleType::STACK_USER.0,
        "-4@%eax 8@%rsi -1@%ah 8@-8(%rsp) 4@8(%rbx,%rcx,4) 8f@%xmm0 8@var(%rip) 2@what?",
        Arch::X86_64,
    ),
    (
        "sdt_app:a-rm",
        SampleType::REGS_USER.0 | SampleType::CALLCHAIN.0,
        "-4@[x1, 8] 8@x2 8@[sp, 16] 4@[x3, w4, sxtw 2]",
        Arch::Aarch64,
    ),
    (
        "sdt_app:everything",
        SampleType::ADDR.0
            | SampleType::PERIOD.0
            | SampleType::READ.0
            | SampleType::CALLCHAIN.0
            | SampleType::RAW.0
            | SampleType::BRANCH_STACK.0
            | SampleType::REGS_USER.0
            | SampleType::STACK_USER.0,
        "8@%ebx -4@-20(%ebp) 8@%gs:0x10",
        Arch::I386,
    ),
    (
        VALUES,
        SampleType::RAW.0,
        "-4@%edi 8@%rsi 8@(%rdx) 8f@%xmm0 4@$7",
        Arch::X86_64,
    ),
];
/// The event whose values stand in the raw part, as the bpf engine writes them.
const VALUES: &str = "sdt_app:values";
const REGISTERS: u64 = 0b1011_1111;

/// The head of the file.
pub fn info() -> TraceInfo {
    let event = |(at, (name, parts, ..)): (usize, &(&str, u64, &str, Arch))| EventAttr {
        attr: Attr {
            kind: 8,
            sample_type: SampleType(BASE | parts),
            sample_period: 1,
            read_format: 0x14,
            flags: Attr::SAMPLE_ID_ALL,
            sample_regs_user: REGISTERS,
            sample_stack_user: 64,
            ..Attr::default()
        },
        name: (*name).to_owned(),
        ids: vec![at as u64 + 1, at as u64 + 101],
    };
    TraceInfo {
        hostname: "host".to_owned(),
        machine: "x86_64".to_owned(),
        events: EVENTS.iter().enumerate().map(event).collect(),
        definitions: Some(definitions()),
        ..TraceInfo::default()
    }
}

fn raw_layout() -> RawLayout {
    let field = |offset, size, signed| RawField {
        offset,
        size,
        signed,
        fault: None,
        string: None,
    };
    let text = RawString {
        location: 24,
        status: 28,
        known: true,
        length: None,
    };
    RawLayout {
        id: 60_001,
        size: 40,
        missing: Some(8),
        string_limit: 64,
        arguments: vec![
            RawArgument::Field(field(12, 4, true)),
            RawArgument::Field(RawField {
                string: Some(text),
                ..field(16, 8, false)
            }),
            RawArgument::Field(RawField {
                fault: Some(1),
                ..field(32, 8, false)
            }),
            RawArgument::NotCaptured {
                reason: "xmm0 not captured".to_owned(),
            },
            RawArgument::Constant,
        ],
        listed: false,
        thread_context: None,
        thread_waits: None,
    }
}

/// A small trace in three rounds.
pub fn trace(compression: Compression, finish: bool) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = TraceWriter::create(file.reopen().unwrap(), &info(), compression).unwrap();
    for round in 0..3 {
        writer.push(&process(100 * round));
        writer.push(&hits(100 * round));
        writer.flush().unwrap();
    }
    if finish {
        let loss = Loss {
            event: 0,
            id: 1,
            lost: 3,
        };
        writer.finish(&[loss]).unwrap();
    }
    std::fs::read(file.path()).unwrap()
}

/// A file that process 7 has mapped at 0x55_0000_0000.
pub fn mapping(path: &[u8]) -> Mmap<'_> {
    Mmap {
        pid: 7,
        tid: 7,
        start: 0x55_0000_0000,
        len: 0x2000,
        offset: 0,
        file: MmapFile::Unknown,
        protection: 5,
        flags: 2,
        cpu_mode: Mmap::USER,
        path,
        id: SampleId::default(),
    }
}

/// Records of a process and its thread, as a trace of [`info`] holds them.
pub fn process(time: u64) -> Vec<u8> {
    let id_type = info().events[0].attr.id_type();
    let id = SampleId {
        pid: 7,
        tid: 7,
        time,
        identifier: 1,
        ..SampleId::default()
    };
    let mut out = Vec::new();
    let comm = Comm {
        pid: 7,
        tid: 7,
        exec: time != 0,
        name: b"app",
        id,
    };
    comm.encode(id_type, &mut out);
    for file in [
        MmapFile::Unknown,
        BuildId::new(&[7; 20]).map_or(MmapFile::Unknown, MmapFile::BuildId),
    ] {
        let map = Mmap {
            file,
            id,
            ..mapping(b"/bin/app")
        };
        map.encode(id_type, &mut out);
    }
    let task = Task {
        pid: 8,
        parent_pid: 7,
        tid: 8,
        parent_tid: 7,
        time,
        already_ran: time == 0,
        id,
    };
    task.encode_fork(id_type, &mut out);
    task.encode_exit(id_type, &mut out);
    out
}

/// A sample of each event of [`info`].
pub fn hits(time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let regs = [2, 1, 2, 3, 4, 0x7ffc_0000, 6, 7];
    let front = |id: u64| [id, 0x55_0000_1000, 7 | 8 << 32, time + id, 1];
    let bodies: [Vec<u64>; 5] = [
        front(1).to_vec(),
        [&front(2)[..], &regs, &[16, 0xabc, 0xdef, 16]].concat(),
        [&front(103)[..], &[2, 0xaaa, 0xbbb], &regs].concat(),
        [
            // ADDR and PERIOD stand between the parts of the others.
            &[4, 0x55_0000_1000, 7 | 8 << 32, time + 4, 0, 1, 1][..],
            // READ with ID and LOST, CALLCHAIN, RAW of 4 bytes, BRANCH_STACK, registers, stack.
            &[5, 4, 0, 1, 0xccc, 4 | 0x64636261 << 32, 1, 10, 11, 12],
            &regs,
            &[8, 0x123, 8],
        ]
        .concat(),
        [
            &front(5)[..],
            // RAW: a word of faults, an integer, a string's address, place and length, a value, the string.
            &[
                52 | 60_001 << 32,
                7,
                0xffff_fffe | 0x7ffc_1000 << 32,
                (6 << 16 | 40) << 32,
                5 | 9 << 32,
                0x6c6c_6568 << 32,
                0x6f,
            ],
        ]
        .concat(),
    ];
    for body in bodies {
        let size = 8 + 8 * body.len() as u64;
        out.extend((9 | 2 << 32 | size << 48).to_le_bytes());
        out.extend(body.iter().flat_map(|word| word.to_le_bytes()));
    }
    out
}

/// The definitions of its events.
pub fn definitions() -> Definitions {
    let probe = |(at, (event, _, args, _)): (usize, &(&str, u64, &str, Arch))| {
        let site = |site: u64| SiteDefinition {
            site: Site {
                pc: 0x1000 + site,
                base: 0,
                semaphore: 0,
                offset: Some(0x1000 + site),
                semaphore_offset: None,
                args: (*args).to_owned(),
            },
            ids: vec![at as u64 + 1 + site * 100],
            place: CodePlace::default(),
        };
        ProbeDefinition {
            event: (*event).to_owned(),
            provider: "app".to_owned(),
            name: "probe".to_owned(),
            description: None,
            needs: None,
            call: None,
            lock: None,
            telemetry: Telemetry::default(),
            filter: None,
            file: at,
            plan: CapturePlan {
                registers: REGISTERS,
                stack: 64,
                raw: (*event == VALUES).then(raw_layout),
                user: *event == VALUES,
            },
            arguments: (0..8).map(Argument::unnamed).collect(),
            shown: None,
            sites: vec![site(0), site(1)],
        }
    };
    let file = |(_, _, _, arch): &(&str, u64, &str, Arch)| FileDefinition {
        path: "/bin/app".into(),
        build_id: None,
        arch: Some(*arch),
        by_any_pattern: false,
    };
    Definitions {
        version: Definitions::VERSION,
        producer: "usdtrec".to_owned(),
        engine: "perf".to_owned(),
        uncounted: None,
        boot: None,
        files: EVENTS.iter().map(file).collect(),
        probes: EVENTS.iter().enumerate().map(probe).collect(),
    }
}
