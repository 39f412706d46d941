use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use usdtrec_format::perf::{Attr, Comm, EventAttr, Mmap, MmapFile, SampleId, SampleType, Task};
use usdtrec_format::trace::*;
use usdtrec_report::question::{Question, SpanQuestion};
use usdtrec_report::{AnswerQuestions as _, EventSelection, Sources, TraceSession};

fn info() -> TraceInfo {
    let attr = |id: u64| EventAttr {
        attr: Attr {
            kind: 8,
            config: id,
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::REGS_USER,
            sample_regs_user: 1,
            flags: Attr::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        name: ["sdt_app:request__start", "sdt_app:request__done"][id as usize - 1].into(),
        ids: vec![id],
    };
    TraceInfo {
        hostname: "h".into(),
        events: vec![attr(1), attr(2)],
        ..TraceInfo::default()
    }
}
fn write(path: &Path, from: u64, to: u64) {
    let info = info();
    let id_type = info.events[0].attr.id_type();
    let mut w =
        TraceWriter::create(File::create(path).unwrap(), &info, Compression::Zstd(1)).unwrap();
    let mut out = Vec::new();
    for pid in 100..300 {
        let id = SampleId {
            pid,
            tid: pid,
            ..SampleId::default()
        };
        Task {
            pid,
            parent_pid: 1,
            tid: pid,
            parent_tid: 1,
            time: 0,
            already_ran: true,
            id,
        }
        .encode_fork(id_type, &mut out);
        Comm {
            pid,
            tid: pid,
            exec: false,
            name: b"server",
            id,
        }
        .encode(id_type, &mut out);
        for map in 0..10 {
            Mmap {
                pid,
                tid: pid,
                start: 0x7000_0000_0000 + map * 0x100000,
                len: 0x10000,
                offset: 0,
                file: MmapFile::Inode {
                    major: 8,
                    minor: 1,
                    inode: map,
                    generation: 0,
                },
                protection: 5,
                flags: 2,
                cpu_mode: Mmap::USER,
                path: format!("/usr/lib/x86_64-linux-gnu/lib{map}.so.1").as_bytes(),
                id,
            }
            .encode(id_type, &mut out);
        }
    }
    w.push(&out);
    w.flush().unwrap();
    let mut n = from;
    while n < to {
        out.clear();
        for k in n..(n + 20_000).min(to) {
            let tid = 100 + (k / 2 % 8);
            let time = 5_000_000_000 + k * 500;
            for word in [
                9u64 | 2 << 32 | (64 << 48),
                1 + k % 2,
                0x5555_0000_1000 + k % 2,
                tid | tid << 32,
                time,
                k / 2 % 2,
                2,
                k * 7919 % 1000,
            ] {
                out.extend(word.to_le_bytes());
            }
        }
        n = (n + 20_000).min(to);
        w.push(&out);
        w.flush().unwrap();
    }
    w.set_recorded(5_000_000_000 + from * 500, 5_000_000_000 + to * 500);
    w.finish(&[]).unwrap();
}
fn main() {
    let events: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let files: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let dir = PathBuf::from("/root/w/files-lab/many");
    let parts = dir.join("parts");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&parts).unwrap();
    write(&dir.join("one"), 0, events);
    for f in 0..files {
        write(
            &parts.join(format!("t.{f}")),
            events / files * f,
            events / files * (f + 1),
        );
    }
    let q = Question::Spans(SpanQuestion {
        span: "request".into(),
        ..SpanQuestion::default()
    });
    for round in 0..5 {
        for path in [dir.join("one"), parts.clone()] {
            let cpu = || {
                let s = std::fs::read_to_string("/proc/self/stat").unwrap();
                let f: Vec<f64> = s
                    .rsplit(")")
                    .next()
                    .unwrap()
                    .split_whitespace()
                    .skip(11)
                    .take(2)
                    .map(|x| x.parse().unwrap())
                    .collect();
                (f[0] + f[1]) / 100.0
            };
            let (begun, c) = (Instant::now(), cpu());
            let session = TraceSession::open(&path, &Sources::default()).unwrap();
            let opened = begun.elapsed();
            let answer = session.answer(&EventSelection::default(), &q).unwrap();
            println!(
                "{round} {} open {:.3} all {:.3} s cpu {:.3} s {}",
                path.display(),
                opened.as_secs_f64(),
                begun.elapsed().as_secs_f64(),
                cpu() - c,
                serde_json::to_string(&answer).unwrap().len()
            );
        }
    }
}
