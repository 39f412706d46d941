//! Programs that match spans: by the rule of readers, and open spans beyond those that have room are counted.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use usdtrec_format::spans::{Marks, OpenBegins, PROGRAM_LEVELS, PlainBegin};
use usdtrec_format::{Arch, RawArgument};
use usdtrec_kernel::bpf::insn::Code;
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::sys::{self, ProgramKind};
use usdtrec_testing::repetitions;

use super::filters::condition;
use super::keys::probe::{self, OwnSite};
use super::machine::{Hit, PREEMPTION, make_spans};
use super::{Planned, Strings, common, register_offset, value_of, word};
use crate::engine::bpf::aggregate::hit_counts::{CountedIds, HitCounts, HitWord};
use crate::engine::bpf::control::{self, Control};
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::program::generate;
use crate::engine::bpf::program::spec::{Common, Spec};
use crate::engine::bpf::spans::planner::memory_for;
use crate::engine::bpf::spans::role::{KeyValue, MarkField, SpanRole, SpanTask};
use crate::engine::bpf::spans::span_map::{MAX_BYTES, SpanMaps};
use crate::engine::outcome::SlowSpanCounts;

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

/// What hits are to spans of their thread.
fn role(begins: bool, agreed: Vec<MarkField>, must_agree: bool) -> SpanRole {
    SpanRole {
        name: "tests:hit".to_owned(),
        number: 7,
        begins,
        task: SpanTask::Thread,
        value: None,
        agreed,
        must_agree,
        gives_up: false,
        places: Vec::new(),
        others: Vec::new(),
    }
}

/// Maps for so many open spans, and a program that begins one at each hit of a probe, which other tests may hit, too.
struct Begins {
    maps: SpanMaps,
    control: Control,
    _link: OwnedFd,
}

impl Begins {
    /// `None` if the kernel cannot do it.
    fn attach(most: usize) -> Option<Self> {
        let site = OwnSite::find(STRINGS)?;
        let role = role(true, Vec::new(), false);
        let memory = memory_for(&[], 1, None);
        let common = Common {
            touch: Touch::Always,
            ids: 1,
            strings: 1,
            spans: Some(memory),
            preemption: Preemption::from_btf(None).unwrap(),
            ..Common::default()
        };
        let control = Control::new(1, 1, None).unwrap();
        control.set_enabled(true);
        let maps = SpanMaps::new(memory, MAX_BYTES, Some(most)).unwrap();
        let spec = Spec {
            role: Some(&role),
            ..site.planned.spec()
        };
        let code = generate(&[&spec], &common).unwrap();
        let descriptors = HashMap::from(maps.descriptors());
        let code = code.with_maps(|map| *descriptors.get(&map).unwrap_or(&control.as_fd()));
        let program = sys::load(ProgramKind::UprobeMulti, &code).unwrap();
        Some(Self {
            _link: site.attach(program.as_fd()),
            maps,
            control,
        })
    }
}

/// So many threads hit the probe, one after the other.
fn hit_in_threads(threads: usize) {
    for _ in 0..threads {
        thread::spawn(|| probe::hit(-3, "select")).join().unwrap();
    }
}

/// Three threads begin a span each, of which two have room.
#[test]
fn begins_without_room_are_counted() {
    let Some(begins) = Begins::attach(2) else {
        return;
    };
    hit_in_threads(3);
    let counts = begins.control.span_counts();
    assert!(counts.full >= 1, "{counts:?}");
    let SlowSpanCounts {
        short,
        deep,
        unmatched,
        ..
    } = counts;
    assert_eq!((short, deep, unmatched), (0, 0, 0));
}

/// Threads that have ended leave nothing once others need the room.
#[test]
fn ended_threads_leave_room() {
    let Some(mut begins) = Begins::attach(64) else {
        return;
    };
    let room = |begins: &Begins| begins.maps.room_for_threads();
    hit_in_threads(32);
    let left = room(&begins);
    assert!(left <= 0, "{left}");
    hit_in_threads(8);
    begins.maps.forget_ended_threads().unwrap();
    let left = room(&begins);
    assert!(left > 24, "{left}");
    assert_eq!(begins.control.span_counts().full, 0);
}

/// What readers know of a thread's open spans.
#[derive(Default)]
struct Reader {
    open: OpenBegins<PlainBegin>,
    /// Number of those that are beyond what programs keep.
    beyond: u64,
}

/// What the end of a span did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ended {
    /// When the span began that it ended.
    began: Option<u64>,
    is_of_older: bool,
    unmatched: u64,
}

impl Reader {
    /// A span begins; `false` if programs keep no more of its thread.
    fn begin(&mut self, begin: PlainBegin) -> bool {
        let is_kept = self.open.len() < PROGRAM_LEVELS as usize;
        if is_kept {
            self.open.push(begin);
        }
        self.beyond += u64::from(!is_kept);
        is_kept
    }

    fn end(&mut self, marks: Marks, time: u64, must_agree: bool) -> Ended {
        if self.beyond > 0 {
            self.beyond -= 1;
            return Ended::default();
        }
        let found = match must_agree {
            true => self.open.find(marks, time),
            false => self.open.find_newest(time),
        };
        match found {
            Some(at) => Ended {
                is_of_older: !must_agree && self.open.is_of_older(marks, time, at),
                began: self.open.close(at, time),
                unmatched: 0,
            },
            None => Ended {
                unmatched: 1,
                ..Ended::default()
            },
        }
    }
}

/// Begins and ends of three threads at random: nested, overlapping, of equal and unknown values, without an end, and deep.
fn match_at_random(seed: u64, must_agree: bool) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let planned = Planned::new("-4@(%rsi)", Arch::X86_64, Strings::default());
    let RawArgument::Field(field) = planned.layout.arguments[0] else {
        panic!("it is a field");
    };
    let number = MarkField::Number {
        field,
        bytes: 4,
        signed: true,
    };
    let roles = [true, false].map(|begins| role(begins, vec![number], must_agree));
    let memory = memory_for(&[], 0, None);
    let common = super::Common {
        spans: Some(memory),
        ..common()
    };
    let codes = roles.each_ref().map(|role| {
        let spec = Spec {
            role: Some(role),
            ..planned.spec()
        };
        generate(&[&spec], &common).unwrap()
    });
    make_spans(64, memory.bytes() as usize + 8);
    let rsi = register_offset(Arch::X86_64, Arch::X86_64.register("rsi").unwrap()).unwrap();
    let (values, begins) = (1 + random(6), 45 + random(12));
    let mut readers: HashMap<u64, Reader> = HashMap::new();
    for time in 1000..1400 {
        let (tid, is_known) = (2000 + random(3), random(8) > 0);
        let value = random(values);
        let address = 0x7f00_0000_1000 + 64 * value;
        let mut hit = Hit {
            now: time,
            pid_tgid: 1234 << 32 | tid,
            ..Hit::default()
        };
        hit.context[rsi as usize / 8] = address;
        if !is_known {
            hit.forbidden.push(address..address + 4);
        }
        let marks = match is_known {
            true => Marks::from_words([1 + value, 1, 1, 1]),
            false => Marks::unknown(1),
        };
        let reader = readers.entry(tid).or_default();
        let begins = random(100) < begins;
        let ran = hit.run_all(&codes[usize::from(!begins)]);
        let count = |offset: u32| ran.control[offset as usize / 8];
        let place = format!("{seed} {must_agree} {time}");
        assert_eq!((ran.lost, count(control::FULL_SPANS)), (0, 0), "{place}");
        if begins {
            let is_deep = !reader.begin(PlainBegin { time, marks });
            assert_eq!(count(control::DEEP_SPANS), u64::from(is_deep), "{place}");
            assert!(ran.put.is_empty(), "{place}");
            continue;
        }
        let times: Vec<u64> = ran.put.iter().map(|record| word(record, 32, 8)).collect();
        let ended = Ended {
            began: times.first().copied(),
            is_of_older: count(control::OLDER_ENDS) == 1,
            unmatched: count(control::UNMATCHED_ENDS),
        };
        assert_eq!(ended, reader.end(marks, time, must_agree), "{place}");
        assert!(times.is_empty() || times[1..] == [time], "{place}");
    }
}

/// Programs find the begins that readers find.
#[test]
fn programs_match_as_readers_do() {
    for seed in 0..repetitions("USDTREC_SPAN_SCHEDULES", 20) {
        for must_agree in [false, true] {
            match_at_random(seed, must_agree);
        }
    }
}

/// What the filter says of a begin is kept while the program sleeps to bring in memory, in which another thread writes to its stack.
#[test]
fn a_filter_is_remembered_over_a_sleep() {
    let planned = Planned::new("-4@(%rsi) 8@%rdi", Arch::X86_64, Strings::default());
    let value = |name| value_of(Arch::X86_64.register(name).unwrap(), Arch::X86_64);
    let roles = [true, false].map(|begins| role(begins, Vec::new(), false));
    let memory = memory_for(&[], 0, None);
    let common = Common {
        spans: Some(memory),
        preemption: Some(PREEMPTION),
        touch: Touch::Always,
        ..common()
    };
    let rsi = value("rsi");
    for (filter, puts) in [("==", 2), ("!=", 0)] {
        let filter = format!("arg2 {filter} {}", value("rdi"));
        let condition = condition(&planned, &filter).unwrap();
        let codes = roles.each_ref().map(|role| {
            let spec = Spec {
                role: Some(role),
                condition: role.begins.then_some(&condition),
                ..planned.spec()
            };
            generate(&[&spec], &common).unwrap()
        });
        make_spans(64, memory.bytes() as usize + 8);
        let hit = |now: u64, is_absent: bool| Hit {
            now,
            absent: is_absent.then(|| rsi..rsi + 4).into_iter().collect(),
            ..Hit::default()
        };
        let begun = hit(1000, true).run_all(&codes[0]);
        assert!(!begun.touched.is_empty(), "{filter}: it sleeps");
        let ended = hit(1400, false).run_all(&codes[1]);
        assert_eq!(ended.put.len(), puts, "{filter}");
    }
}

/// The programs of a begin and of an end, whose spans are of threads.
struct Pair {
    begin: Code,
    end: Code,
}

/// A thread, which is in no other process.
const THREAD: u64 = 2000;
const OTHER: u64 = 2001;

impl Pair {
    /// With room for so many open spans; `counts` if begins that are not kept are given up.
    fn new(room: usize, counts: Option<HitCounts>) -> Self {
        let planned = Planned::new("-4@%edi", Arch::X86_64, Strings::default());
        let memory = memory_for(&[], 0, None);
        let common = Common {
            spans: Some(memory),
            hit_counts: counts,
            ..common()
        };
        let program = |begins| {
            let role = SpanRole {
                gives_up: counts.is_some(),
                ..role(begins, Vec::new(), false)
            };
            let spec = Spec {
                role: Some(&role),
                ..planned.spec()
            };
            generate(&[&spec], &common).unwrap()
        };
        make_spans(room, memory.bytes() as usize + 8);
        Self {
            begin: program(true),
            end: program(false),
        }
    }

    /// A begin at a time; the words of the control map.
    fn begin(&self, tid: u64, now: u64) -> Vec<u64> {
        hit_of(tid, now).run_all(&self.begin).control
    }

    /// When the span began that an end at a time ended, with the words of the control map.
    fn end(&self, tid: u64, now: u64) -> (Option<u64>, Vec<u64>) {
        let ran = hit_of(tid, now).run_all(&self.end);
        let begin = ran.put.first().map(|record| word(record, 32, 8));
        (begin, ran.control)
    }
}

fn hit_of(tid: u64, now: u64) -> Hit {
    Hit {
        now,
        pid_tgid: 1234 << 32 | tid,
        ..Hit::default()
    }
}

/// Ends are those of their begins, also where a nested begin had no room, and there is room again for one within it.
#[test]
fn a_begin_without_room_keeps_its_end() {
    let pair = Pair::new(3, None);
    let full = |control: Vec<u64>| control[control::FULL_SPANS as usize / 8];
    let begins = [
        (OTHER, 10, 0),
        (OTHER, 20, 0),
        (THREAD, 30, 0),
        (THREAD, 40, 1),
    ];
    for (tid, now, count) in begins {
        assert_eq!(full(pair.begin(tid, now)), count, "{now}");
    }
    assert_eq!(pair.end(OTHER, 50).0, Some(20));
    assert_eq!(full(pair.begin(THREAD, 60)), 1, "it is within one without");
    for (now, begin) in [(70, None), (80, None), (90, Some(30))] {
        let (ended, control) = pair.end(THREAD, now);
        assert_eq!(ended, begin, "{now}");
        assert_eq!(control[control::UNMATCHED_ENDS as usize / 8], 0, "{now}");
    }
    pair.begin(THREAD, 100);
    assert_eq!(full(pair.begin(THREAD, 110)), 0, "there is room");
    assert_eq!(pair.end(THREAD, 120).0, Some(110));
}

/// Where a begin may have no end, those around one without room are given up, and the next one is kept.
#[test]
fn a_begin_without_room_and_end_is_given_up() {
    let first = control::words_end(1, 16);
    let ids = CountedIds {
        ids: 1,
        each: HitWord::ALL,
    };
    let counts = HitCounts::new(first, ids, 1);
    let pair = Pair::new(3, Some(counts));
    let counted = |control: &[u64], word| {
        let mut at = counts.word(0, word);
        control[at.next().unwrap() as usize / 8]
    };
    for (tid, now) in [(OTHER, 10), (THREAD, 20), (THREAD, 30)] {
        assert_eq!(counted(&pair.begin(tid, now), HitWord::Begun), 1, "{now}");
    }
    let control = pair.begin(THREAD, 40);
    assert_eq!(counted(&control, HitWord::Full), 1);
    assert_eq!(counted(&control, HitWord::Unfinished), 2);
    for now in [50, 60] {
        let (ended, control) = pair.end(THREAD, now);
        assert_eq!((ended, counted(&control, HitWord::Unmatched)), (None, 1));
    }
    assert_eq!(counted(&pair.begin(THREAD, 70), HitWord::Begun), 1);
    assert_eq!(pair.end(THREAD, 80).0, Some(70));
}

/// A key is a number of one value, whatever size the sites have it in.
#[test]
fn keys_are_sign_extended() {
    let rsi = register_offset(Arch::X86_64, Arch::X86_64.register("rsi").unwrap()).unwrap();
    let address = 0x7f00_0000_1000_u64;
    let memory = memory_for(&[], 0, None);
    let common = Common {
        spans: Some(memory),
        ..common()
    };
    for args in ["-2@%si", "-1@%sil", "-2@(%rsi)", "-4@(%rsi)", "-8@%rsi"] {
        make_spans(64, memory.bytes() as usize + 8);
        let run = |args: &str, begins: bool| {
            let planned = Planned::new(args, Arch::X86_64, Strings::default());
            let role = SpanRole {
                value: Some(KeyValue {
                    place: 0,
                    bytes: 4,
                    signed: true,
                }),
                ..role(begins, Vec::new(), false)
            };
            let spec = Spec {
                role: Some(&role),
                ..planned.spec()
            };
            let mut hit = hit_of(THREAD, 10);
            let in_memory = args.contains('(');
            let value = if in_memory { address } else { -3_i64 as u64 };
            hit.context[rsi as usize / 8] = value;
            hit.stored.extend((address..).zip((-3_i64).to_le_bytes()));
            hit.run_all(&generate(&[&spec], &common).unwrap())
        };
        run(args, true);
        assert_eq!(run("-4@%esi", false).put.len(), 2, "{args}");
    }
}
