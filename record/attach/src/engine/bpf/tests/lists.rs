//! Lists of arguments: what the program writes must be what a walk over the expression by hand gives.

use usdtrec_format::Arch;
use usdtrec_format::expr;
use usdtrec_format::schema::Argument;
use usdtrec_format::{RawArgument, RawField};

use super::machine::Hit;
use super::{Planned, RAW, STRINGS, Strings, common, memory, value_of};
use crate::engine::bpf::contract::rooms;
use crate::plan::condition::site::Site;
use crate::plan::layout::{OfThread, layout};

const ARGS: &str = "8@%rdi -4@%esi 8@%rbx 4@$7";

/// The site with a list in place of the note's arguments.
fn listed(list: &str, strings: Strings) -> Planned {
    let mut planned = Planned::new(ARGS, Arch::X86_64, Strings::default());
    let known: Vec<_> = (0..4).map(Argument::unnamed).collect();
    let site = Site {
        arch: planned.arch,
        event: "sdt_a:b",
        operands: &planned.operands,
        captures: &planned.captures,
        addresses: &planned.addresses,
        arguments: &known,
        captures_schema: false,
    };
    let items = expr::Capture::parse_list(list).unwrap();
    let listed = site.list(&items).unwrap().into_iter();
    let (captures, arguments): (Vec<_>, Vec<_>) = listed
        .map(|listed| (listed.capture, listed.argument))
        .unzip();
    planned.layout = layout(&captures, strings, &arguments, OfThread::default());
    planned.captures = captures;
    planned
}

fn field(planned: &Planned, place: usize) -> RawField {
    match planned.layout.arguments[place] {
        RawArgument::Field(field) => field,
        ref other => panic!("{other:?} is no field"),
    }
}

/// A field's value, and whether its fault bit is set.
fn read(planned: &Planned, record: &[u8], place: usize) -> (u64, bool) {
    let field = field(planned, place);
    let word = |at: u16, len: usize| {
        let at = RAW + usize::from(at);
        let mut word = [0; 8];
        word[..len].copy_from_slice(&record[at..at + len]);
        u64::from_ne_bytes(word)
    };
    let faults = planned.layout.missing.map_or(0, |at| word(at, 4));
    let fault = field.fault.is_some_and(|bit| faults >> bit & 1 == 1);
    (word(field.offset, field.size.into()), fault)
}

#[test]
fn chains_are_walked() {
    let rdi = value_of(Arch::X86_64.register("rdi").unwrap(), Arch::X86_64);
    let rbx = value_of(Arch::X86_64.register("rbx").unwrap(), Arch::X86_64);
    let rsi = value_of(Arch::X86_64.register("rsi").unwrap(), Arch::X86_64);
    let deep = memory(rdi.wrapping_add(8), 8).wrapping_add(4);
    let short = memory(rbx.wrapping_sub(6), 2) as u16 as i16;
    let cases = [
        ("a=*(arg1+8)", memory(rdi + 8, 8), 8),
        ("a=*(u32*)(*(arg1+8)+4)", memory(deep, 4), 4),
        (
            "a=*(s16*)(arg3-6)",
            u64::from(i32::from(short).cast_unsigned()),
            4,
        ),
        ("a=(u8)arg1", rdi & 0xff, 1),
        ("a=arg2", rsi & 0xffff_ffff, 4),
        (
            "a=arg2+5",
            i64::from(rsi as i32).wrapping_add(5).cast_unsigned(),
            8,
        ),
        ("a=arg3&0xff0", rbx & 0xff0, 8),
        ("a=*(f64*)arg3", memory(rbx, 8), 8),
        ("a=(ptr)arg1", rdi, 8),
        ("a=arg4", 7, 8),
    ];
    for (list, expected, size) in cases {
        let planned = listed(list, Strings::default());
        let record = planned.run(&Hit::default(), &common()).unwrap();
        assert_eq!(field(&planned, 0).size, size, "{list}");
        assert_eq!(read(&planned, &record, 0), (expected, false), "{list}");
    }
}

/// A difference is below 0 where the trace's expressions say so, but for those of 8 unsigned bytes, which wrap as in C.
#[test]
fn sums_have_the_sign_of_what_they_can_be() {
    for (list, signed) in [
        ("a=(u32)arg1-7", true),
        ("a=(u32)arg1+7", false),
        ("a=(u32)arg1+7-7", false),
        ("a=arg2-7", true),
        ("a=arg2+7", true),
        ("a=arg1-7", false),
        ("a=arg1+7", false),
        ("a=(s64)arg1-7", true),
        ("a=(arg1&0xff)-1", true),
        ("a=(arg1-7)&0xff", false),
        ("a=(s32)arg1+2147483648", false),
    ] {
        let planned = listed(list, Strings::default());
        assert_eq!(field(&planned, 0).signed, signed, "{list}");
    }
}

#[test]
fn a_fault_on_the_way_is_the_fields_own() {
    let rdi = value_of(Arch::X86_64.register("rdi").unwrap(), Arch::X86_64);
    let planned = listed(
        "a=*(arg1+8), b=*(s32*)(*arg1+4), t=str(*(arg1+8)), c=arg2",
        STRINGS,
    );
    let mut hit = Hit::default();
    hit.forbidden.push(rdi + 8..rdi + 16);
    let record = planned.run(&hit, &common()).unwrap();
    let faults = [0, 1, 2, 3].map(|place| read(&planned, &record, place).1);
    assert_eq!(faults, [true, false, true, false]);
}

#[test]
fn bytes_end_where_their_length_says() {
    let list = "a=bytes(arg1, arg2), n=arg2, b=bytes(arg3, 3), t=str(arg3, arg4), l=arg4";
    let rdi = value_of(Arch::X86_64.register("rdi").unwrap(), Arch::X86_64);
    let rbx = value_of(Arch::X86_64.register("rbx").unwrap(), Arch::X86_64);
    let planned = listed(list, STRINGS);
    let status = |record: &[u8], place: usize| {
        let string = field(&planned, place).string.unwrap();
        let at = RAW + usize::from(string.status);
        i16::from_ne_bytes([record[at], record[at + 1]])
    };
    let record = planned.run(&Hit::default(), &common()).unwrap();
    let limit = planned.layout.string_limit as i16;
    // `esi` as the machine has it is negative or longer than the limit; the constant is 7.
    let long = (value_of(Arch::X86_64.register("rsi").unwrap(), Arch::X86_64) as i32) >= 0;
    let expected = if long {
        limit + 2
    } else {
        -(libc::EINVAL as i16)
    };
    assert_eq!(
        [0, 2, 3].map(|place| status(&record, place)),
        [expected, 4, 8]
    );
    let room = rooms(&planned.layout).of_record(record.len());
    let string = |index: usize| {
        let at = RAW + usize::from(planned.layout.size) + index * room.unwrap().each;
        &record[at..at + 3]
    };
    let bytes: Vec<u8> = (0..3).map(|at| memory(rbx + at, 1) as u8).collect();
    assert_eq!(string(1), bytes);
    let mut hit = Hit::default();
    hit.forbidden.push(rbx..rbx + 2);
    hit.forbidden.push(rdi..rdi + 2);
    let record = planned.run(&hit, &common()).unwrap();
    assert_eq!(status(&record, 2), -(libc::EFAULT as i16));
}
