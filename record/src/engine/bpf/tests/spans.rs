//! Programs that match spans: open spans beyond those that have room are counted.

use std::os::fd::AsFd;
use std::thread;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Arch;

use super::keys::probe;
use super::{Planned, Strings};
use crate::engine::bpf::control::Control;
use crate::engine::bpf::insn::Map;
use crate::engine::bpf::kernel::version::tells_processes;
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::preemption::Preemption;
use crate::engine::bpf::program::{Common, Spec, generate};
use crate::engine::bpf::spans::{SpanMaps, SpanRole, SpanTask, memory_for};
use crate::engine::bpf::sys::{self, ProgramKind, Uprobes};
use crate::engine::outcome::SlowSpanCounts;
use crate::host::privilege;

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

/// Three threads begin a span each, of which two have room.
#[test]
fn begins_without_room_are_counted() {
    if !privilege::has_admin() || !tells_processes() {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!is_ci, "expected root and Linux 6.11 or later");
        return;
    }
    let file = ObjectFile::open("/proc/self/exe".as_ref()).unwrap();
    let binary = file.binary().unwrap();
    let mut probes = binary.probes.iter();
    let probe = probes.find(|known| known.provider == probe::PROVIDER);
    let site = &probe.unwrap().sites[0];
    let arch = Arch::host().unwrap();
    let args = match arch {
        Arch::X86_64 => site.args.clone(),
        _ => site.args.replace('%', ""),
    };
    let planned = Planned::new(&args, arch, STRINGS);
    let role = SpanRole {
        number: 7,
        begins: true,
        task: SpanTask::Thread,
        value: None,
        agreed: Vec::new(),
    };
    let memory = memory_for(&[], 1);
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
    let maps = SpanMaps::new(memory, Some(2)).unwrap();
    let spec = Spec {
        role: Some(&role),
        ..planned.spec()
    };
    let code = generate(&[&spec], &common).unwrap();
    let code = code.with_maps(|map| match map {
        Map::Spans => maps.descriptors().spans,
        Map::SpanZeros => maps.descriptors().zeros,
        _ => control.as_fd(),
    });
    let program = sys::load(ProgramKind::UprobeMulti, &code).unwrap();
    let sites = Uprobes {
        offsets: vec![site.offset.unwrap()],
        ref_ctrs: vec![0],
        cookies: vec![0],
    };
    let path = file.kernel_path();
    // Threads of other tests may hit the probe, too.
    let link = sys::link_uprobes(program.as_fd(), &path, &sites, std::process::id()).unwrap();
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
