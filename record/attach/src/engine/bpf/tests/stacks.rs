//! What the callers are found from, at the end of a record.

use std::num::NonZeroU32;

use usdtrec_format::perf::{Attr, ChainCut, SampleLayout, SampleType};
use usdtrec_format::{Arch, Register};

use super::super::contract::END_SIZE;
use super::super::program::generate;
use super::super::program::spec::{Common, Spec};
use super::super::program::stack::{EndKind, stack_ends};
use super::super::samples::with_stack;
use super::machine::{Hit, NOW, PREEMPTION, Ran, byte_at};
use super::{Planned, STRINGS, compact, register_offset};
use crate::engine::bpf::samples::compact::Shape;
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};
use crate::plan::frame::ReturnAddress;

const ARCH: Arch = Arch::X86_64;
/// Size of the ring.
const RING: u32 = 1 << 20;

/// The register's value in a hit.
fn value(hit: &Hit, register: Register) -> u64 {
    hit.context[register_offset(ARCH, register).unwrap() as usize / 8]
}

/// The record of the ring for a hit.
fn record(graph: CallGraph, hit: &Hit, planned: &Planned) -> Vec<u8> {
    ran(graph, hit, planned).record.unwrap()
}

/// What the program does at a hit.
fn ran(graph: CallGraph, hit: &Hit, planned: &Planned) -> Ran {
    let spec = Spec {
        graph: Some(graph),
        ..planned.spec()
    };
    ran_of(&spec, hit)
}

/// What the program of a site does at a hit, which is the same where functions may not take memory.
fn ran_of(spec: &Spec<'_>, hit: &Hit) -> Ran {
    let [inline, function] = [false, true].map(|functions_take_memory| {
        let common = Common {
            first_id: 0x42,
            ids: 1,
            strings: 4,
            ring_bytes: RING,
            functions_take_memory,
            preemption: Some(PREEMPTION),
            ..Common::default()
        };
        hit.run_all(&generate(&[spec], &common).unwrap())
    });
    assert_eq!(inline.record, function.record);
    function
}

/// A hit at a site whose word says this size of stack.
fn hit_with_size(index: u64) -> Hit {
    // The word is after those of four strings and one for the lengths of strings.
    let mut habits = vec![0; 4 * 2 + 1];
    habits.push(index | index << 8);
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
    assert!(compact(record, shape, &mut plain));
    with_stack::put(&plain, end, EndKind::for_graph(graph, ARCH), &mut whole).unwrap();
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

/// The mark of a cut and the callers that a program writes, which follows frame pointers.
fn chain_of(
    arch: Arch,
    frames: u16,
    hit: &Hit,
    return_address: Option<ReturnAddress>,
) -> (u64, Vec<u64>) {
    let graph = CallGraph {
        method: CallGraphMethod::FramePointers,
        frames,
        rate: None,
    };
    let planned = Planned::new("", arch, STRINGS);
    let spec = Spec {
        graph: Some(graph),
        return_address,
        ..planned.spec()
    };
    let record = ran_of(&spec, hit).record.unwrap();
    let size = u32::from_ne_bytes(*record[END_SIZE..].first_chunk().unwrap()) as usize;
    let (_, end) = record.split_at(record.len() - size);
    let words: Vec<u64> = end
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_ne_bytes(*word))
        .collect();
    let count = words[1] as usize;
    (words[0], words[2..2 + count].to_vec())
}

/// A function that calls nothing may have no frame: the frame pointer is its caller's, and its own return address is elsewhere.
#[test]
fn the_return_address_of_a_function_without_a_frame_is_the_first_caller() {
    let limit = ChainCut::Limit.marks() as u64;
    let check = |arch, hit: &Hit, place, address| {
        let (cut, callers) = chain_of(arch, 10, hit, None);
        assert!(!callers.is_empty());
        let (cut_with, with) = chain_of(arch, 11, hit, Some(place));
        assert_eq!((with[0], cut_with), (address, cut));
        assert_eq!(with[1..], callers);
        // The hit itself counts.
        for frames in [1, 2] {
            let found = chain_of(arch, frames, hit, Some(place));
            assert_eq!(found, (limit, with[..usize::from(frames) - 1].to_vec()));
        }
    };
    let arm64 = Arch::Aarch64;
    let register = arm64.return_register().unwrap();
    let place = register_offset(arm64, register).unwrap() as usize / 8;
    let returns = ReturnAddress::Register(register);
    let mut hit = Hit::default();
    // With an authentication code.
    hit.context[place] = 0x007f_aaaa_bbbb_cccc;
    check(arm64, &hit, returns, 0xaaaa_bbbb_cccc);
    // As where a thread begins.
    hit.context[place] = 0;
    assert_eq!(chain_of(arm64, 10, &hit, Some(returns)), (0, Vec::new()));

    let hit = Hit::default();
    let at = value(&hit, ARCH.stack_pointer()) + 24;
    let bytes: [u8; 8] = std::array::from_fn(|index| byte_at(at + index as u64));
    let returns = ReturnAddress::Stack(24);
    check(ARCH, &hit, returns, u64::from_ne_bytes(bytes));
    let unreadable = Hit {
        forbidden: std::iter::once(at..at + 8).collect(),
        ..hit.clone()
    };
    // The frame pointer is the function's: the return address is read with its frame.
    let mut framed = hit;
    let pointer = ARCH.frame_pointer().unwrap();
    framed.context[register_offset(ARCH, pointer).unwrap() as usize / 8] = at - 8;
    let found = chain_of(ARCH, 10, &framed, Some(returns));
    assert_eq!(found, chain_of(ARCH, 10, &framed, None));
    assert!(!found.1.is_empty());
    let cut = ChainCut::Unreadable.marks() as u64;
    let found = chain_of(ARCH, 10, &unreadable, Some(returns));
    assert_eq!(found, (cut, Vec::new()));
}

/// Frames in memory: from the frame pointer of a hit upwards, each so many bytes above the one before.
struct Frames {
    hit: Hit,
    first: u64,
}

impl Frames {
    fn new(first: u64, distances: impl IntoIterator<Item = u64>) -> Self {
        let mut hit = hit_with_size(1);
        let register = register_offset(ARCH, ARCH.frame_pointer().unwrap()).unwrap();
        hit.context[register as usize / 8] = first;
        let mut frame = first;
        for (index, distance) in distances.into_iter().enumerate() {
            let above = frame + distance;
            for (at, word) in [(frame, above), (frame + 8, 0x5000 + index as u64)] {
                hit.stored.extend((at..).zip(word.to_le_bytes()));
            }
            frame = above;
        }
        hit.stored.extend((frame..).zip([0; 8]));
        Self { hit, first }
    }

    fn word(&self, at: u64) -> u64 {
        let byte = |at| self.hit.stored.get(&at).copied();
        let bytes: [u8; 8] = std::array::from_fn(|index| {
            let at = at.wrapping_add(index as u64);
            byte(at).unwrap_or_else(|| byte_at(at))
        });
        u64::from_le_bytes(bytes)
    }

    /// The callers, read frame by frame, and why they end.
    fn callers(&self, most: usize) -> (Vec<u64>, Option<ChainCut>) {
        let (mut callers, mut at) = (Vec::new(), self.first);
        let cut = loop {
            if at == 0 {
                break None;
            }
            if callers.len() == most {
                break Some(ChainCut::Limit);
            }
            let (above, address) = (self.word(at), self.word(at.wrapping_add(8)));
            if address == 0 {
                break None;
            }
            callers.push(address);
            if above != 0 && above <= at {
                break Some(ChainCut::NoFrame);
            }
            at = above;
        };
        (callers, cut)
    }
}

/// Frames that are close, overlap, are at odd addresses, cross pages or are far apart, as an attacker may store them.
#[test]
fn frames_of_pieces_are_those_of_memory() {
    let graph = CallGraph {
        method: CallGraphMethod::FramePointers,
        frames: 127,
        rate: None,
    };
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for farthest in [1, 8, 17, 40, 150, 700, 5000] {
        for count in [0, 1, 3, 30, 125, 126, 127] {
            let first = 0x7ffd_0000_0000 + random(8192);
            let distances: Vec<u64> = (0..count).map(|_| 1 + random(farthest)).collect();
            let frames = Frames::new(first, distances);
            let (record, attr) = sample_of(graph, &frames.hit);
            let sample = SampleLayout::new(&attr).parse(&record[8..]).unwrap();
            let found: Vec<u64> = sample.callers().skip(1).collect();
            let expected = frames.callers(126);
            assert_eq!((found, sample.chain_cut()), expected, "{farthest} {count}");
        }
    }
    // Frames of usual size are read several at a time.
    let planned = Planned::new("8@%rax", ARCH, STRINGS);
    let reads = |count: usize| {
        let frames = Frames::new(0x7ffd_0000_0100, std::iter::repeat_n(100, count));
        assert_eq!(frames.callers(126).0.len(), count + 1);
        ran(graph, &frames.hit, &planned).reads
    };
    assert!(reads(50) - reads(0) < 15);
}

#[test]
fn a_copy_has_the_size_of_the_site_or_ends_with_the_memory() {
    let graph = CallGraph {
        method: CallGraphMethod::CopyNeeded,
        frames: 10,
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
        rate: None,
    };
    assert_eq!(graph(10).sizes().all, [10]);
    assert_eq!(graph(127).sizes().all, [64, 127]);
    let planned = Planned::new("8@%rax", ARCH, STRINGS);
    for (index, frames) in [(0, 64), (1, 127)] {
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

/// In a crowded ring the stack has the second size of the site's word, which says from which fill level on a ring is.
#[test]
fn a_crowded_ring_gets_smaller_stacks() {
    let graph = CallGraph {
        method: CallGraphMethod::CopyNeeded,
        frames: 10,
        rate: None,
    };
    let planned = Planned::new("8@%rax", ARCH, STRINGS);
    let ends = stack_ends(graph, ARCH);
    let (half, eighth) = (u64::from(RING) / 2, u64::from(RING) / 8);
    for (word, filled, index) in [
        (0x80_0205, half - 8, 5),
        (0x80_0205, half, 2),
        (0x80_0505, half, 5),
        (0x80_0101, 0, 1),
        (0x20_0205, eighth - 8, 5),
        (0x20_0205, eighth, 2),
        (0x20_0205, u64::from(RING), 2),
    ] {
        let mut hit = hit_with_size(0);
        *hit.habits.last_mut().unwrap() = word;
        hit.filled = filled;
        let record = record(graph, &hit, &planned);
        let size = u32::from_ne_bytes(*record[END_SIZE..].first_chunk().unwrap());
        assert_eq!(size as usize, ends[index], "{word:#x} {filled}");
    }
}
