//! Programs that count hits by the values of arguments: values are written to the key of a map as they are to a record.

mod probe;

use std::collections::HashMap;
use std::os::fd::AsFd;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::{Arch, RawArgument, RawField, RawLayout};

use super::machine::Hit;
use super::{Planned, Strings, common, memory, value_of};
use crate::engine::bpf::control::Control;
use crate::engine::bpf::insn::{Code, Helper, If, Label, Map, Reg, Width};
use crate::engine::bpf::kernel::version::tells_processes;
use crate::engine::bpf::nonresident::Touch;
use crate::engine::bpf::preemption::Preemption;
use crate::engine::bpf::program::target::Target;
use crate::engine::bpf::program::{Common, Program, Spec, Who, rooms, slots};
use crate::engine::bpf::sys::{self, MapKind, MapShape, ProgramKind, Uprobes};
use crate::host::privilege;

const STRINGS: Strings = Strings {
    limit: 30,
    known: true,
};

/// Size of the keys, bytes: a layout without its head, and the room for a text, have room in it.
const KEY: usize = 64;

/// The head of a raw part, which keys do not have.
const HEAD: i16 = RawLayout::FIELDS as i16;

/// Offset of the key from the end of the stack: below the last slot.
const KEY_AT: i16 = slots::RATE - KEY as i16;

/// The program of a site that counts its hits in a map, by the values of all arguments.
fn counting(spec: &Spec<'_>, common: &Common) -> Option<Code> {
    let mut program = Program::new(spec, common);
    let exits = program.begin();
    program.target = Target {
        base: Reg::R10,
        offset: KEY_AT - HEAD,
    };
    program.begin_reads();
    let again = program.asm.label();
    program.asm.place(again);
    for at in (KEY_AT..slots::RATE).step_by(8) {
        program.asm.store_value(Width::Double, Reg::R10, at, 0);
    }
    program.arguments();
    for text in spec.layout.string_fields() {
        // Equal texts have one key, wherever they are.
        let width = Width::from_bytes(text.address.size);
        program.put_value(width, text.address.offset, 0);
    }
    count(&mut program, exits.dropped);
    program.asm.jump(exits.out);
    if !program.absent.is_empty() {
        program.bring_in_and_do_again(again, exits);
    }
    program.finish(exits)
}

/// Counts a hit with the key that is on the stack; jumps to `full` if the map has no room for it.
fn count(program: &mut Program<'_>, full: Label) {
    const NO_EXIST: i64 = 1;
    const ZERO: i16 = KEY_AT - 8;
    let asm = &mut program.asm;
    let counted = asm.label();
    asm.call_map(Helper::MapLookup, Map::Counts, KEY_AT);
    asm.jump_if(If::NotEqual, Reg::R0, 0, counted);
    asm.store_value(Width::Double, Reg::R10, ZERO, 0);
    asm.address(Reg::R3, Reg::R10, ZERO.into());
    asm.set(Reg::R4, NO_EXIST);
    // Another CPU may have added it.
    asm.call_map(Helper::MapUpdate, Map::Counts, KEY_AT);
    asm.call_map(Helper::MapLookup, Map::Counts, KEY_AT);
    asm.jump_if(If::Equal, Reg::R0, 0, full);
    asm.place(counted);
    asm.increment(Reg::R0);
}

/// What a key says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    number: i32,
    /// The text, or why it was not read.
    text: Result<String, i16>,
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

fn decode(key: &[u8], layout: &RawLayout) -> Counted {
    let from = |offset: u16| &key[usize::from(offset - RawLayout::FIELDS)..];
    let address = field(layout, 8);
    assert_eq!(from(address.offset)[..8], [0; 8]);
    let status = from(address.string.unwrap().status);
    let status = i16::from_ne_bytes([status[0], status[1]]);
    let room = &from(layout.size)[..rooms(layout).whole.each];
    let text = usize::try_from(status).map_err(|_| status).map(|bytes| {
        assert!(room[bytes - 1..].iter().all(|byte| *byte == 0), "{key:?}");
        String::from_utf8(room[..bytes - 1].to_vec()).unwrap()
    });
    Counted {
        number: i32::from_ne_bytes(*from(field(layout, 4).offset).first_chunk().unwrap()),
        text,
    }
}

#[test]
fn a_key_has_the_values_that_a_record_has() {
    let planned = Planned::new("-2@%si 8@%rdi", Arch::X86_64, STRINGS);
    let code = counting(&planned.spec(), &common()).unwrap();
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
    let counted = |number: i32, text: &str| Counted {
        number,
        text: Ok(text.to_owned()),
    };
    // The length of the text at an address is in its lowest bits.
    let (first, key) = run(-3, 0x7f00_0000_1005);
    assert_eq!(first, counted(-3, "abcde"));
    assert_eq!(run(-3, 0x7f00_0000_2005).1, key, "another address");
    assert_eq!(run(i16::MAX, 0x7f00_0000_1000).0, counted(32767, ""));
    let (nowhere, _) = run(5, 0x10);
    assert_eq!(nowhere.text, Err(-libc::EFAULT as i16));
}

/// While memory is brought in, another thread writes to the stack: the key is written again.
#[test]
fn a_key_is_written_again_after_memory_was_brought_in() {
    let planned = Planned::new("-2@8(%rsi) 8@%rdi", Arch::X86_64, STRINGS);
    let value = |name| value_of(Arch::X86_64.register(name).unwrap(), Arch::X86_64);
    let (number_at, text_at) = (value("rsi") + 8, value("rdi"));
    let common = Common {
        who: Who::Processes,
        ..common()
    };
    let code = counting(&planned.spec(), &common).unwrap();
    let resident = Hit {
        key_size: KEY,
        tracked: [1234].into(),
        ..Hit::default()
    };
    let absent = Hit {
        absent: vec![number_at..number_at + 2, text_at..text_at + 1],
        ..resident.clone()
    };
    let (resident, absent) = (resident.run_all(&code), absent.run_all(&code));
    assert_eq!(resident.touched, [0; 0]);
    assert!(absent.touched.contains(&number_at) && absent.touched.contains(&text_at));
    assert_eq!(absent.counted, resident.counted);
    let (key, _) = absent.counted.unwrap();
    let number = i32::from(memory(number_at, 2) as u16 as i16);
    assert_eq!(decode(&key, &planned.layout).number, number);
}

/// The kernel counts the hits of a probe of this program.
#[test]
fn the_kernel_counts_hits_by_key() {
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
    for touch in [Touch::Never, Touch::Always] {
        let counts = count_live(&planned, site, &file.kernel_path(), touch);
        let counted = |number: i32, text: &str, hits: u64| {
            let text = Ok(text.to_owned());
            (Counted { number, text }, hits)
        };
        let right = [
            counted(-3, "select", 3),
            counted(-3, "insert", 1),
            counted(300, "select", 2),
            counted(0, "", 1),
        ];
        assert_eq!(counts, HashMap::from(right), "{touch:?}");
    }
}

/// Counts hits with a program that is attached to a site of this process.
fn count_live(
    planned: &Planned,
    site: &usdtrec_format::Site,
    path: &std::ffi::CStr,
    touch: Touch,
) -> HashMap<Counted, u64> {
    let control = Control::new(1, 1, None).unwrap();
    control.set_enabled(true);
    let shape = MapShape {
        key_size: KEY as u32,
        value_size: 8,
        entries: 16,
    };
    let counts = sys::create_map(MapKind::Hash, shape).unwrap();
    let common = Common {
        touch,
        ids: 1,
        strings: 1,
        preemption: Preemption::from_btf(None).unwrap(),
        ..Common::default()
    };
    let code = counting(&planned.spec(), &common).unwrap();
    let code = code.with_maps(|map| match map {
        Map::Counts => counts.as_fd(),
        _ => control.as_fd(),
    });
    let program = sys::load(ProgramKind::UprobeMulti, &code);
    let program = program.unwrap();
    let sites = Uprobes {
        offsets: vec![site.offset.unwrap()],
        ref_ctrs: vec![0],
        cookies: vec![0],
    };
    let link = sys::link_uprobes(program.as_fd(), path, &sites, std::process::id()).unwrap();
    let elsewhere = String::from("select");
    for text in ["select", elsewhere.as_str(), "select", "insert"] {
        probe::hit(-3, text);
    }
    probe::hit(300, "select");
    probe::hit(300, &elsewhere);
    probe::hit(0, "");
    drop(link);
    probe::hit(300, "select");
    assert_eq!(control.lost(0), 0);
    let keys = sys::counts::<KEY>(counts.as_fd());
    let decoded = keys
        .into_iter()
        .map(|(key, count)| (decode(&key, &planned.layout), count));
    decoded.collect()
}
