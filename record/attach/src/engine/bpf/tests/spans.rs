//! Programs that match spans: open spans beyond those that have room are counted.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

use super::Strings;
use super::keys::probe::{self, OwnSite};
use crate::engine::bpf::control::Control;
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::program::generate;
use crate::engine::bpf::program::spec::{Common, Spec};
use crate::engine::bpf::spans::planner::memory_for;
use crate::engine::bpf::spans::role::{SpanRole, SpanTask};
use crate::engine::bpf::spans::span_map::{MAX_BYTES, SpanMaps};
use crate::engine::outcome::SlowSpanCounts;

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

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
        let role = SpanRole {
            name: "tests:hit".to_owned(),
            number: 7,
            begins: true,
            task: SpanTask::Thread,
            value: None,
            agreed: Vec::new(),
            must_agree: false,
            gives_up: false,
            places: Vec::new(),
            others: Vec::new(),
        };
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
        let code = code.with_maps(|map| match map {
            Map::Spans => maps.descriptors().spans,
            Map::SpanZeros => maps.descriptors().zeros,
            _ => control.as_fd(),
        });
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
