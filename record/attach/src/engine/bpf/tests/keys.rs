//! Programs that count hits by the values of arguments: values are written to the key of a map as they are to a record.

pub(super) mod probe;

use std::collections::HashMap;
use std::os::fd::AsFd;

use usdtrec_format::{Arch, RawArgument, RawField, RawLayout};
use usdtrec_kernel::bpf::features::trials::functions_take_memory;
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

use self::probe::OwnSite;
use super::machine::Hit;
use super::{Planned, Strings, common, memory, value_of};
use crate::aggregation::{AggregateKey, Aggregation};
use crate::engine::bpf::aggregate::group_map::{GroupElement, GroupMaps};
use crate::engine::bpf::aggregate::grouping::Grouping;
use crate::engine::bpf::aggregate::hit_counts::{CountedIds, HitCounts};
use crate::engine::bpf::aggregate::number_layout::NumberLayout;
use crate::engine::bpf::aggregate::stack_layout::StackLayout;
use crate::engine::bpf::aggregate::thread_keys::KeyLayout;
use crate::engine::bpf::contract::RecordedProcesses;
use crate::engine::bpf::contract::rooms;
use crate::engine::bpf::control::{self, Control};
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::program::generate;
use crate::engine::bpf::program::spec::{Common, Spec};
use crate::plan::call_graph::{CallGraph, CallGraphMethod};

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

/// Size of the keys, bytes: a layout and the room for a string have room in it.
const KEY: usize = 128;
/// Offset of the raw part in a key that has the CPU, and nothing about the thread.
const RAW_AFTER_CPU: usize = 8;

/// How hits are counted: by the values of all arguments, on each CPU or on all of them.
fn grouping(is_of_cpu: bool) -> Grouping {
    let by = ["arg1", "arg2"].map(|name| AggregateKey::Argument(name.to_owned()));
    Grouping {
        aggregation: Aggregation {
            interval: None,
            by: by.into(),
            measured: Vec::new(),
        },
        key: KeyLayout::new(&[], is_of_cpu),
        stacks: None,
        bytes: KEY as u32,
        room: KEY as u32,
        rows: 64,
        numbers: NumberLayout::default(),
    }
}

/// Settings of programs that count hits.
fn counting(common: Common) -> Common {
    let words = control::words_end(1, 1);
    Common {
        grouping: Some(grouping(false)),
        hit_counts: Some(HitCounts::new(words, CountedIds { ids: 1, each: 1 }, 1)),
        ..common
    }
}

/// What a key says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    number: i32,
    /// The string, or why it was not read.
    string: Result<String, i16>,
}

/// The first field of this size.
fn field(layout: &RawLayout, size: u8) -> RawField {
    let mut arguments = layout.arguments.iter();
    let found = arguments.find_map(|argument| match argument {
        RawArgument::Field(field) if field.size == size => Some(*field),
        _ => None,
    });
    found.unwrap()
}

fn decode(raw: &[u8], layout: &RawLayout) -> Counted {
    let from = |offset: u16| &raw[usize::from(offset)..];
    let address = field(layout, 8);
    let status = from(address.string.unwrap().status);
    let status = i16::from_ne_bytes([status[0], status[1]]);
    let room = &from(layout.size)[..rooms(layout).whole.each];
    let string = usize::try_from(status).map_err(|_| status).map(|bytes| {
        assert_eq!(from(address.offset)[..8], [0; 8]);
        assert!(room[bytes - 1..].iter().all(|byte| *byte == 0), "{raw:?}");
        String::from_utf8(room[..bytes - 1].to_vec()).unwrap()
    });
    Counted {
        number: i32::from_ne_bytes(*from(field(layout, 4).offset).first_chunk().unwrap()),
        string,
    }
}

#[test]
fn a_key_has_the_values_that_a_record_has() {
    let planned = Planned::new("-2@%si 8@%rdi", Arch::X86_64, STRINGS);
    let code = generate(&[&planned.spec()], &counting(common())).unwrap();
    let mut hit = Hit {
        key_size: KEY,
        ..Hit::default()
    };
    let mut run = |number: i16, address: u64| {
        for (name, value) in [("rsi", number as u16 as u64), ("rdi", address)] {
            let register = Arch::X86_64.register(name).unwrap();
            let offset = super::register_offset(Arch::X86_64, register).unwrap();
            hit.context[offset as usize / 8] = value;
        }
        let ran = hit.run_all(&code);
        assert!(ran.record.is_none());
        let (key, count) = ran.counted.unwrap();
        assert_eq!(count, 1);
        (decode(&key, &planned.layout), key)
    };
    let counted = |number: i32, string: &str| Counted {
        number,
        string: Ok(string.to_owned()),
    };
    // The length of the string at an address is in its lowest bits.
    let (first, key) = run(-3, 0x7f00_0000_1005);
    assert_eq!(first, counted(-3, "abcde"));
    assert_eq!(run(-3, 0x7f00_0000_2005).1, key, "another address");
    assert_eq!(run(i16::MAX, 0x7f00_0000_1000).0, counted(32767, ""));
    let (nowhere, _) = run(5, 0x10);
    assert_eq!(nowhere.string, Err(-libc::EFAULT as i16));
}

/// While memory is brought in, another thread writes to the stack: the key is written again.
#[test]
fn a_key_is_written_again_after_memory_was_brought_in() {
    let planned = Planned::new("-2@8(%rsi) 8@%rdi", Arch::X86_64, STRINGS);
    let value = |name| value_of(Arch::X86_64.register(name).unwrap(), Arch::X86_64);
    let (number_at, string_at) = (value("rsi") + 8, value("rdi"));
    let common = counting(Common {
        recorded: RecordedProcesses::Processes,
        ..common()
    });
    let code = generate(&[&planned.spec()], &common).unwrap();
    let resident = Hit {
        key_size: KEY,
        tracked: [1234].into(),
        ..Hit::default()
    };
    let absent = Hit {
        absent: vec![number_at..number_at + 2, string_at..string_at + 1],
        ..resident.clone()
    };
    let (resident, absent) = (resident.run_all(&code), absent.run_all(&code));
    assert_eq!(resident.touched, [0; 0]);
    assert!(absent.touched.contains(&number_at) && absent.touched.contains(&string_at));
    assert_eq!(absent.counted, resident.counted);
    let (key, _) = absent.counted.unwrap();
    let number = i32::from(memory(number_at, 2) as u16 as i16);
    assert_eq!(decode(&key, &planned.layout).number, number);
}

/// The kernel counts the hits of a probe of this program.
#[test]
fn the_kernel_counts_hits_by_key() {
    let Some(site) = OwnSite::find(STRINGS) else {
        return;
    };
    let on_old_kernels = (Touch::Never, true);
    for (touch, is_of_cpu) in [
        (Touch::Never, false),
        (Touch::Always, false),
        on_old_kernels,
    ] {
        let counts = count_live(&site, touch, is_of_cpu);
        let counted = |number: i32, string: &str, hits: u64| {
            let string = Ok(string.to_owned());
            (Counted { number, string }, hits)
        };
        let right = [
            counted(-3, "select", 3),
            counted(-3, "insert", 1),
            counted(300, "select", 2),
            counted(0, "", 1),
        ];
        assert_eq!(counts, HashMap::from(right), "{touch:?} {is_of_cpu}");
    }
}

/// A stack whose hash is that of another one: its hits are in no group.
#[test]
fn stacks_of_one_hash_are_not_mixed() {
    let preemption = Preemption::from_btf(None).unwrap();
    let Some(site) = OwnSite::find(STRINGS) else {
        return;
    };
    if !functions_take_memory(preemption) {
        return;
    }
    let graph = CallGraph {
        method: CallGraphMethod::FramePointers,
        // That of the hit.
        frames: 1,
        rate: None,
    };
    let mut grouping = grouping(false);
    grouping.aggregation.by = vec![AggregateKey::Stack];
    grouping.key = KeyLayout::new(&grouping.aggregation.by, false);
    grouping.stacks = Some(StackLayout::new(graph));
    grouping.bytes += 8;
    let common = Common {
        ids: 1,
        strings: 1,
        preemption,
        functions_take_memory: true,
        grouping: Some(grouping.clone()),
        ..counting(Common::default())
    };
    let control = Control::new(1, 1, common.hit_counts).unwrap();
    control.set_enabled(true);
    let maps = GroupMaps::new(grouping).unwrap();
    let planned = &site.planned;
    let spec = Spec {
        graph: Some(graph),
        ..planned.spec()
    };
    let code = generate(&[&spec], &common).unwrap();
    let descriptors = maps.descriptors();
    let code = code.with_maps(|map| *descriptors.get(&map).unwrap_or(&control.as_fd()));
    let program = sys::load(ProgramKind::UprobeMulti, &code).unwrap();
    let link = site.attach(program.as_fd());
    let string = c"select";
    for round in 0..2 {
        (0..3).for_each(|_| probe::hit_string(7, string));
        let mut groups = Vec::new();
        let read = maps.read(|GroupElement { key, count, .. }| {
            groups.push((u64::from_ne_bytes(*key.first_chunk().unwrap()), count));
        });
        read.unwrap();
        let [(number, count)] = groups[..] else {
            panic!("one stack: {groups:?}");
        };
        assert_eq!((count, control.counted(0)), (3, 3 * round));
        if round > 0 {
            break;
        }
        let mut element = [0; 32 + 16 + 8];
        let stacks = descriptors[&Map::Stacks];
        sys::read_element(stacks, number, &mut element).unwrap();
        let pid = u64::from(std::process::id());
        assert_eq!(element[16..24], pid.to_ne_bytes());
        // Another process.
        element[16] ^= 1;
        sys::change(stacks, number, element).unwrap();
    }
    drop(link);
}

/// Counts hits with a program that is attached to the site.
fn count_live(site: &OwnSite, touch: Touch, is_of_cpu: bool) -> HashMap<Counted, u64> {
    let planned = &site.planned;
    let common = counting(Common {
        touch,
        ids: 1,
        strings: 1,
        preemption: Preemption::from_btf(None).unwrap(),
        ..Common::default()
    });
    let common = Common {
        grouping: Some(grouping(is_of_cpu)),
        ..common
    };
    let control = Control::new(1, 1, common.hit_counts).unwrap();
    control.set_enabled(true);
    let maps = GroupMaps::new(grouping(is_of_cpu)).unwrap();
    let code = generate(&[&planned.spec()], &common).unwrap();
    let descriptors = maps.descriptors();
    let code = code.with_maps(|map| *descriptors.get(&map).unwrap_or(&control.as_fd()));
    let program = sys::load(ProgramKind::UprobeMulti, &code);
    let program = program.unwrap();
    let link = site.attach(program.as_fd());
    let elsewhere = String::from("select");
    for string in ["select", elsewhere.as_str(), "select", "insert"] {
        probe::hit(-3, string);
    }
    probe::hit(300, "select");
    probe::hit(300, &elsewhere);
    probe::hit(0, "");
    drop(link);
    probe::hit(300, "select");
    assert_eq!((control.lost(0), control.counted(0)), (0, 0));
    let mut counts = HashMap::new();
    let read = maps.read(|GroupElement { key, count, .. }| {
        let raw = if is_of_cpu { RAW_AFTER_CPU } else { 0 };
        *counts
            .entry(decode(&key[raw..], &planned.layout))
            .or_default() += count;
    });
    read.unwrap();
    counts
}
