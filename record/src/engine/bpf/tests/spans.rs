//! Programs that match spans: open spans beyond those that have room are counted.

use std::os::fd::AsFd;
use std::thread;

use super::Strings;
use super::keys::probe::{self, OwnSite};
use crate::engine::bpf::control::Control;
use crate::engine::bpf::insn::Map;
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::preemption::Preemption;
use crate::engine::bpf::program::{Common, Spec, generate};
use crate::engine::bpf::spans::{MAX_BYTES, SpanMaps, SpanRole, SpanTask, memory_for};
use crate::engine::bpf::sys::{self, ProgramKind};
use crate::engine::outcome::SlowSpanCounts;

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

/// Three threads begin a span each, of which two have room.
#[test]
fn begins_without_room_are_counted() {
    let Some(site) = OwnSite::find(STRINGS) else {
        return;
    };
    let role = SpanRole {
        name: "tests:hit".to_owned(),
        number: 7,
        begins: true,
        task: SpanTask::Thread,
        value: None,
        agreed: Vec::new(),
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
    let maps = SpanMaps::new(memory, MAX_BYTES, Some(2)).unwrap();
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
    // Threads of other tests may hit the probe, too.
    let link = site.attach(program.as_fd());
    for _ in 0..3 {
        thread::spawn(|| probe::hit(-3, "select")).join().unwrap();
    }
    drop(link);
    let counts = control.span_counts();
    assert!(counts.full >= 1, "{counts:?}");
    let SlowSpanCounts {
        short,
        deep,
        unmatched,
        ..
    } = counts;
    assert_eq!((short, deep, unmatched), (0, 0, 0));
}
