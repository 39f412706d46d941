//! Recordings that questions are asked about.

use std::path::Path;
use std::sync::Arc;

use usdtrec_format::schema::Labels;
use usdtrec_format::trace::{
    ClockReading, FiredTrigger, Pause, Shortfall, ShortfallKind, TriggerKind, WallQuality,
};

use usdtrec_report::{Sources, TraceSession};

use crate::support::{
    DONE, HIT, Hit, REQUEST, REQUEST_INLINED, Recorded, RecordedWait, Recording, with_wait_events,
    with_waits,
};

/// A recording whose `request` lacks an argument at one of its sites, and whose `done` has words for its argument.
pub(super) fn start() -> Recording {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        let [request, done] = &mut info.definitions.as_mut().unwrap().probes[..] else {
            panic!("expected two probes");
        };
        // A register that is not sampled.
        request.sites[1].site.args = "-4@$-5 8@%rdx 2@16(%rsp) 4@-4(%rsp)".to_owned();
        let words = [(5, "late".to_owned())];
        done.arguments[0].labels = Some(Labels::Enum(Arc::new(words.into())));
    });
    recording.comm(0, (100, 100), "server", false);
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap(0, 100, "/opt/app");
    recording
}

/// Two requests that are done.
pub(super) fn few() -> Recorded {
    let mut recording = start();
    for at in 0..4 {
        recording.hit(Hit {
            id: if at % 2 == 0 { REQUEST } else { DONE },
            time: HIT.time + at * at * 1000,
            ax: 5 + at / 3,
            si: 512 << at,
            ..HIT
        });
    }
    recording.finish()
}

/// Requests in each other and after each other, with how long their threads had waited, or without that.
pub(super) fn waiting() -> Recorded {
    waits(false)
}

/// The same with an event of a wait after each hit.
pub(super) fn waits_as_events() -> Recorded {
    waits(true)
}

fn waits(are_events: bool) -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        with_waits(info);
        if are_events {
            with_wait_events(info);
        }
    });
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap(0, 100, "/opt/app");
    let hits = [
        (REQUEST, [0, 0, 0]),
        (REQUEST, [100, 0, 0]),
        (DONE, [200, 0, 500]),
        (DONE, [300, 5, 600]),
        (REQUEST, [400, 5, 700]),
        (DONE, [u64::MAX; 3]),
    ];
    for (at, (id, waits)) in (0..).zip(hits) {
        let hit = Hit {
            id,
            time: HIT.time + at * 1000,
            cpu: at as u32 / 4,
            si: 3,
            ..HIT
        };
        recording.waited(hit, waits);
        if are_events {
            recording.wait(RecordedWait {
                pid: hit.pid,
                tid: hit.tid,
                time: hit.time + 500,
                ns: 400,
                runnable: 0,
                state: "blocked",
                wait: if at == 1 { "" } else { "futex" },
            });
        }
    }
    recording.finish()
}

/// The same as [`few`] with a pause after them, in which nothing was recorded to the end, or all the time.
pub(super) fn paused(all: bool) -> Recorded {
    let mut recording = start();
    for at in 0..4 {
        recording.hit(Hit {
            id: if at % 2 == 0 { REQUEST } else { DONE },
            time: HIT.time + at * 1000,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: vec![REQUEST, REQUEST_INLINED, DONE],
        from_ns: HIT.time + if all { 0 } else { 3000 },
        to_ns: None,
    });
    recording.recorded(HIT.time, HIT.time + 9000);
    recording.finish()
}

/// Eight seconds with a burst, a pause, and losses.
pub(super) fn many() -> Recorded {
    let mut recording = start();
    for (clock_ns, wall_ns) in [(0, 1), (HIT.time, 2)] {
        recording.clocks(&[ClockReading {
            clock_ns,
            wall_ns,
            error_ns: 20,
            wall_quality: Some(WallQuality {
                is_synchronized: true,
                estimated_us: 1,
                maximum_us: 2,
            }),
        }]);
    }
    for at in 0..8000_u64 {
        let hits = match at {
            3000..3250 => 5,
            6000..6500 => 0,
            _ => 1,
        };
        for hit in 0..hits {
            recording.hit(Hit {
                id: if at % 4 == 3 {
                    REQUEST_INLINED
                } else {
                    REQUEST
                },
                time: HIT.time + at * 1_000_000 + hit,
                ax: at,
                si: at % 3,
                ..HIT
            });
        }
        if at % 2 == 0 {
            recording.hit(Hit {
                id: DONE,
                time: HIT.time + at * 1_000_000 + 1000 + at,
                ax: 5 + at % 3,
                ..HIT
            });
        }
        if at % 500 == 0 {
            recording.flush();
        }
    }
    recording.finish_with(&[(1, DONE, 17), (0, REQUEST, 0)])
}

/// A recording with a byte changed in one of its blocks.
pub(super) fn damaged() -> Recorded {
    let recorded = many();
    let session = recorded.session();
    let blocks = session.trace().blocks().iter();
    let block = blocks.max_by_key(|block| block.samples).unwrap();
    let middle = (block.offset + block.len / 2) as usize;
    let mut bytes = std::fs::read(&recorded.path).unwrap();
    bytes[middle] ^= 0xff;
    std::fs::write(&recorded.path, bytes).unwrap();
    recorded
}

/// Two files with a time between them in which nothing was recorded, the first of which is damaged.
pub(super) fn joined() -> Recorded {
    let file = |begin: u64| {
        let mut recording = start();
        for at in 0..1000 {
            recording.hit(Hit {
                time: begin + at,
                ..HIT
            });
        }
        recording.recorded(begin, begin + 1000);
        recording.finish()
    };
    let recorded = Recorded::together(&[file(HIT.time + 2000), file(HIT.time)]);
    let damaged = recorded.path.join("trace.1");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let session = TraceSession::open(&damaged, &Sources::default()).unwrap();
    let block = session.blocks()[0].block;
    bytes[(block.offset + block.len / 2) as usize] ^= 0xff;
    std::fs::write(&damaged, bytes).unwrap();
    recorded
}

/// A recording without events: a process runs another version of a file, and no process maps the other file. A span had it written.
pub(super) fn silent() -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        let definitions = info.definitions.as_mut().unwrap();
        let mut gone = definitions.files[0].clone();
        gone.path = "/opt/gone".into();
        definitions.files.push(gone);
        let [request, done] = &mut definitions.probes[..] else {
            panic!("expected two probes");
        };
        request.needs = Some("SWITCH=1".to_owned());
        request.filter = Some("arg1 > 5".to_owned());
        done.file = 1;
    });
    recording.mmap(0, 100, "/opt/app (deleted)");
    let unchecked = Shortfall {
        kind: ShortfallKind::NotChecked,
        processes: 3,
        found: "could not be checked".to_owned(),
        effect: "not known".to_owned(),
        ..Shortfall::default()
    };
    recording.shortfall(1, &unchecked);
    let no_breakpoint = Shortfall {
        number: 1,
        kind: ShortfallKind::NoBreakpoint,
        path: "/opt/app".into(),
        events: vec!["sdt_app:request".to_owned()],
        sites: 1,
        pids: vec![100],
        processes: 1,
        build_id: Some("00ff".parse().unwrap()),
        gap_ns: Some(1),
        found: "no breakpoint".to_owned(),
        effect: "no hits".to_owned(),
        remedy: "record again".to_owned(),
    };
    recording.shortfall(2, &no_breakpoint);
    recording.fired(&FiredTrigger {
        kind: TriggerKind::Span,
        condition: "span:request > 1ms".to_owned(),
        time_ns: 3,
        event: "sdt_app:done".to_owned(),
        pid: 100,
        tid: 101,
        span: "sdt_app:request".to_owned(),
        duration_ns: Some(1_000_001),
        uid: None,
        more: 2,
    });
    recording.finish()
}
