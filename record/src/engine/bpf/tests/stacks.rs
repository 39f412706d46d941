//! What the callers are found from, at the end of a record.

use std::num::NonZeroU32;

use usdtrec_format::perf::{Attr, ChainCut, SampleLayout, SampleType};
use usdtrec_format::{Arch, Register};

use super::super::program::{Common, END_SIZE, EndKind, Spec, generate, stack_ends};
use super::super::with_stack;
use super::machine::{Hit, NOW, byte_at};
use super::{Planned, STRINGS, register_offset};
use crate::engine::bpf::compact::{Shape, compact};
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};

const ARCH: Arch = Arch::X86_64;

/// The register's value in a hit.
fn value(hit: &Hit, register: Register) -> u64 {
    hit.context[register_offset(ARCH, register).unwrap() as usize / 8]
}

/// The record of the ring for a hit.
fn record(graph: CallGraph, hit: &Hit, planned: &Planned) -> Vec<u8> {
    let common = Common {
        first_id: 0x42,
        ids: 1,
        strings: 4,
        ..Common::default()
    };
    let spec = Spec {
        graph: Some(graph),
        ..planned.spec()
    };
    hit.run(&generate(&spec, &common).unwrap()).unwrap()
}

/// A hit at a site whose word says this size of stack.
fn hit_with_size(index: u64) -> Hit {
    // The word is after those of four strings and one for the lengths of texts.
    let mut habits = vec![0; 4 * 2 + 1];
    habits.push(index);
    Hit {
        // Where the words of the site begin.
        habits,
        ..Hit::default()
    }
}

/// The sample of a hit, and its attr.
fn sample(method: CallGraphMethod, hit: &Hit) -> (Vec<u8>, Attr) {
    let graph = CallGraph {
        method,
        frames: 10,
        keeps_copies: false,
        rate: None,
    };
    sample_of(graph, hit)
}

fn sample_of(graph: CallGraph, hit: &Hit) -> (Vec<u8>, Attr) {
    let planned = Planned::new("8@%rax 8@%rdi -4@%edx", ARCH, STRINGS);
    let record = record(graph, hit, &planned);
    let size = u32::from_ne_bytes(*record[END_SIZE..].first_chunk().unwrap()) as usize;
    assert!(stack_ends(graph, ARCH).contains(&size));
    let (record, end) = record.split_at(record.len() - size);
    let shape = Shape {
        end: size,
        ..planned.shape()
    };
    let (mut plain, mut whole) = (Vec::new(), b"before".to_vec());
    assert!(compact(record, shape, &mut [], &mut plain));
    with_stack::put(&plain, end, EndKind::of(graph, ARCH), &mut whole).unwrap();
    let whole = whole.split_off(6);
    let size = u16::from_ne_bytes([whole[6], whole[7]]);
    assert_eq!(usize::from(size), whole.len());
    assert_eq!(whole.len() % 8, 0);
    let mut attr = Attr {
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::RAW,
        ..Attr::default()
    };
    graph.sample(ARCH, &mut attr);
    (whole, attr)
}

#[test]
fn registers_and_stack_are_copied_as_far_as_they_are_resident() {
    const BYTES: u32 = 10_000;
    let whole = Hit::default();
    let sp = value(&whole, ARCH.stack_pointer());
    let page = sp.next_multiple_of(4096);
    for (forbidden, copied) in [
        (None, u64::from(BYTES)),
        (Some(page + 4096), page + 4096 - sp),
        (Some(page), page - sp),
        (Some(sp), 0),
    ] {
        let hit = Hit {
            forbidden: forbidden.iter().map(|from| *from..from + 4096).collect(),
            ..whole.clone()
        };
        let (record, attr) = sample(CallGraphMethod::Copy { bytes: BYTES }, &hit);
        let sample = SampleLayout::new(&attr).parse(&record[8..]).unwrap();
        assert_eq!(sample.stack.len() as u64, copied, "{forbidden:x?}");
        let bytes: Vec<u8> = (sp..sp + copied).map(byte_at).collect();
        assert_eq!(sample.stack, bytes);
        let words = registers(ARCH)
            .into_iter()
            .map(|register| value(&hit, register));
        let words: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        assert_eq!((sample.regs_abi, sample.regs), (2, words.as_slice()));
        assert!(sample.callchain.is_empty());
        assert!(!sample.raw.is_empty());
    }
}

#[test]
fn frame_pointers_are_followed_upwards_only() {
    let hit = Hit::default();
    let frame = value(&hit, ARCH.frame_pointer().unwrap());
    let word = |at: u64| {
        let bytes: [u8; 8] = std::array::from_fn(|index| byte_at(at + index as u64));
        u64::from_ne_bytes(bytes)
    };
    let unreadable = Hit {
        forbidden: std::iter::once(frame + 8..frame + 9).collect(),
        ..hit.clone()
    };
    let mut outermost = hit.clone();
    outermost.context[register_offset(ARCH, ARCH.frame_pointer().unwrap()).unwrap() as usize / 8] =
        0;
    // The memory at any address is a number by chance: in the end the next frame is below the last, or there are too many.
    let mut expected = vec![value(&hit, Register::PROGRAM_COUNTER)];
    let mut at = frame;
    let cut = loop {
        if expected.len() == 10 {
            break ChainCut::Limit;
        }
        expected.push(word(at.wrapping_add(8)));
        if word(at) <= at {
            break ChainCut::NoFrame;
        }
        at = word(at);
    };
    for (hit, callers, cut) in [
        (hit, &expected[1..], Some(cut)),
        (unreadable, &[][..], Some(ChainCut::Unreadable)),
        (outermost, &[], None),
    ] {
        let (record, attr) = sample(CallGraphMethod::FramePointers, &hit);
        let sample = SampleLayout::new(&attr).parse(&record[8..]).unwrap();
        let found: Vec<u64> = sample.callers().skip(1).collect();
        assert_eq!((found.as_slice(), sample.chain_cut()), (callers, cut));
        assert_eq!(sample.callers().next(), Some(sample.ip));
    }
}

#[test]
fn a_copy_has_the_size_of_the_site_or_ends_with_the_memory() {
    let graph = CallGraph {
        method: CallGraphMethod::CopyNeeded,
        frames: 10,
        keeps_copies: false,
        rate: None,
    };
    let planned = Planned::new("8@%rax 8@%rdi -4@%edx", ARCH, STRINGS);
    let sp = value(&Hit::default(), ARCH.stack_pointer());
    let sizes = graph.sizes().all;
    for (index, size) in sizes.iter().copied().enumerate() {
        for pages in [1, 2, 9] {
            let there = ((sp & !0xfff) + pages * 4096 - sp) as u32;
            let hit = Hit {
                forbidden: std::iter::once(sp + u64::from(there)..sp + (1 << 20)).collect(),
                ..hit_with_size(index as u64)
            };
            let (whole, attr) = sample(graph.method, &hit);
            let sample = SampleLayout::new(&attr).parse(&whole[8..]).unwrap();
            let copied = u64::from(size.min(there));
            let bytes: Vec<u8> = (sp..sp + copied).map(byte_at).collect();
            assert_eq!(sample.stack, bytes, "{size} of {there}");
            // Copies of less than a page are not shortened before they are read.
            let enough = sizes.iter().copied().find(|size| *size >= there.max(2048));
            let room = enough.unwrap_or(size).min(size);
            let record = record(graph, &hit, &planned);
            let end = u32::from_ne_bytes(*record[END_SIZE..].first_chunk().unwrap());
            let expected = 16 + 8 * registers(ARCH).len() + room as usize;
            assert_eq!(end as usize, expected, "{size} of {there}");
        }
    }
}

#[test]
fn a_chain_has_the_room_of_the_site() {
    let frame = value(&Hit::default(), ARCH.frame_pointer().unwrap());
    let graph = |frames| CallGraph {
        method: CallGraphMethod::FramePointers,
        frames,
        keeps_copies: false,
        rate: None,
    };
    assert_eq!(graph(10).sizes().all, [10]);
    assert_eq!(graph(127).sizes().all, [16, 32, 64, 127]);
    let planned = Planned::new("8@%rax", ARCH, STRINGS);
    for (index, frames) in [(0, 16), (2, 64), (3, 127)] {
        let hit = Hit {
            forbidden: std::iter::once(frame..frame + 16).collect(),
            ..hit_with_size(index)
        };
        let record = record(graph(127), &hit, &planned);
        let end = u32::from_ne_bytes(*record[END_SIZE..].first_chunk().unwrap());
        assert_eq!(end, 16 + 8 * frames);
        assert_eq!(
            record.len() - end as usize,
            planned
                .shape()
                .rooms
                .short
                .map_or(planned.shape().rooms.whole.record, |short| short.record)
        );
    }
}

#[test]
fn no_more_stacks_are_taken_in_a_second() {
    const SECOND: u64 = 1_000_000_000;
    for method in [
        CallGraphMethod::FramePointers,
        CallGraphMethod::Copy { bytes: 64 },
        CallGraphMethod::CopyNeeded,
    ] {
        let graph = CallGraph {
            method,
            frames: 10,
            keeps_copies: false,
            rate: NonZeroU32::new(3),
        };
        for (rate, is_taken) in [
            (None, true),
            (Some([NOW - 5, 2]), true),
            (Some([NOW - 5, 3]), false),
            (Some([NOW - SECOND + 1, 1000]), false),
            (Some([NOW - SECOND, 1000]), true),
        ] {
            let hit = Hit {
                rate,
                ..hit_with_size(0)
            };
            let (whole, attr) = sample_of(graph, &hit);
            let sample = SampleLayout::new(&attr).parse(&whole[8..]).unwrap();
            let cut = sample.chain_cut();
            assert_eq!(cut == Some(ChainCut::Rate), !is_taken, "{graph:?} {rate:?}");
            let has_copy = !sample.stack.is_empty();
            let copies = method != CallGraphMethod::FramePointers;
            assert_eq!(has_copy, is_taken && copies, "{graph:?} {rate:?}");
            if !is_taken {
                assert!(sample.callers().eq([sample.ip]), "{graph:?} {rate:?}");
                assert_eq!(sample.regs_abi, 0);
            }
            assert!(!sample.raw.is_empty());
        }
    }
}
