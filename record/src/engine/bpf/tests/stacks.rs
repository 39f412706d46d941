//! What the callers are found from, at the end of a record.

use usdtrec_format::perf::{Attr, ChainCut, SampleLayout, SampleType};
use usdtrec_format::{Arch, Register};

use super::super::program::{Common, Spec, generate, rooms, stack_bytes};
use super::super::with_stack;
use super::machine::{Hit, byte_at};
use super::{Planned, STRINGS, register_offset};
use crate::engine::bpf::compact::compact;
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};

const ARCH: Arch = Arch::X86_64;

/// The register's value in a hit.
fn value(hit: &Hit, register: Register) -> u64 {
    hit.context[register_offset(ARCH, register).unwrap() as usize / 8]
}

/// The sample of a hit, and its attr.
fn sample(method: CallGraphMethod, hit: &Hit) -> (Vec<u8>, Attr) {
    let graph = CallGraph {
        method,
        frames: 10,
        keeps_copies: true,
    };
    let planned = Planned::new("8@%rax 8@%rdi -4@%edx", ARCH, STRINGS);
    let common = Common {
        ids: 1,
        strings: 4,
        ..Common::default()
    };
    let spec = Spec {
        graph: Some(graph),
        ..planned.spec()
    };
    let record = hit.run(&generate(&spec, &common).unwrap()).unwrap();
    let rooms = rooms(&planned.layout, stack_bytes(graph, ARCH));
    let (mut plain, mut whole) = (Vec::new(), b"before".to_vec());
    assert!(compact(
        &record,
        &planned.layout,
        rooms,
        &mut [],
        &mut plain
    ));
    let end = &record[record.len() - rooms.stack..];
    with_stack::put(&plain, end, graph, ARCH, &mut whole).unwrap();
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
