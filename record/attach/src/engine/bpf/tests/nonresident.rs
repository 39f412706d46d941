//! Memory that is not resident: what is brought in, what is left alone, and that no record is reserved meanwhile (the machine sees to
//! that).

use usdtrec_format::{Arch, RawField, StringStatus};

use super::machine::{ANONYMOUS, Hit, MEMBERS, Mapping, Owner, Ran, file};
use super::{Look, Planned, RAW, STRINGS, Strings, Touch, common, value_of, word};
use crate::engine::bpf::nonresident::TRIES;
use crate::engine::bpf::program::generate;
use crate::engine::bpf::program::spec::Common;

const EXT4: u64 = 0xef53;
const FUSE: u64 = 0x6573_5546;
const SYS_ADMIN: u64 = 1 << 21;

fn rdi() -> u64 {
    value_of(Arch::X86_64.register("rdi").unwrap(), Arch::X86_64)
}

fn rdx() -> u64 {
    value_of(Arch::X86_64.register("rdx").unwrap(), Arch::X86_64)
}

fn look() -> Look {
    Look {
        members: MEMBERS,
        user: 0,
        single_user: true,
    }
}

fn run(planned: &Planned, hit: &Hit, touch: Touch) -> Ran {
    let common = Common { touch, ..common() };
    hit.run_all(&generate(&[&planned.spec()], &common).unwrap())
}

/// The status of the first string.
fn status(planned: &Planned, ran: &Ran) -> StringStatus {
    let string = planned.layout.strings().next().unwrap();
    let record = ran.record.as_ref().unwrap();
    let word = word(record, RAW + usize::from(string.status), 2) as i16;
    StringStatus::from_word(word, STRINGS.limit)
}

/// Whether the operand in memory is there; else what stands in its field.
fn operand(planned: &Planned, ran: &Ran) -> Option<u64> {
    let record = ran.record.as_ref().unwrap();
    let missing = usize::from(planned.layout.missing.unwrap());
    let (_, field) = planned.fields().find(|(_, f)| f.fault.is_some()).unwrap();
    let held = word(record, RAW + usize::from(field.offset), field.size.into());
    (word(record, RAW + missing, 4) != 0).then_some(held)
}

/// A hit whose string (at `%rdi`) and operand (at `%rdx`) are not resident.
fn absent() -> Hit {
    Hit {
        absent: vec![rdi()..rdi() + 101, rdx()..rdx() + 4],
        ..Hit::default()
    }
}

#[test]
fn it_is_brought_in_before_the_record_is_reserved_for_good() {
    let planned = Planned::new("8@%rdi 4@(%rdx)", Arch::X86_64, STRINGS);
    for touch in [Touch::Always, Touch::Look(look())] {
        let ran = run(&planned, &absent(), touch);
        assert_eq!(status(&planned, &ran), StringStatus::Cut, "{touch:?}");
        assert_eq!(operand(&planned, &ran), None, "{touch:?}");
        assert_eq!(ran.discarded, 2, "{touch:?}");
        let all = [rdi(), rdi() + 101, rdx(), rdx() + 3];
        assert_eq!(ran.touched, all, "{touch:?}");
    }
    let ran = run(&planned, &absent(), Touch::Never);
    assert_eq!(status(&planned, &ran), StringStatus::NotResident);
    assert_eq!(operand(&planned, &ran), Some(RawField::NOT_RESIDENT));
    assert_eq!((ran.discarded, ran.touched.len()), (0, 0));
}

#[test]
fn what_is_resident_costs_nothing_more() {
    let planned = Planned::new("8@%rdi 4@(%rdx)", Arch::X86_64, STRINGS);
    let ran = run(&planned, &Hit::default(), Touch::Look(look()));
    assert_eq!((ran.discarded, ran.touched.len()), (0, 0));
}

#[test]
fn a_guess_brings_nothing_in() {
    let guess = Strings {
        known: false,
        ..STRINGS
    };
    let planned = Planned::new("8@%rdi", Arch::X86_64, guess);
    for touch in [Touch::Always, Touch::Look(look())] {
        let ran = run(&planned, &absent(), touch);
        assert_eq!(status(&planned, &ran), StringStatus::Fault, "{touch:?}");
        assert_eq!((ran.discarded, ran.touched.len()), (0, 0), "{touch:?}");
    }
}

/// What became of a string in such a mapping of such a process.
fn looked_at(mapping: Mapping, owner: Owner, look: Look) -> StringStatus {
    let planned = Planned::new("8@%rdi 4@(%rdx)", Arch::X86_64, STRINGS);
    let hit = Hit {
        mapping,
        owner,
        ..absent()
    };
    let ran = run(&planned, &hit, Touch::Look(look));
    let status = status(&planned, &ran);
    let same = match operand(&planned, &ran) {
        None => StringStatus::Cut,
        Some(RawField::NOT_RESIDENT) => StringStatus::NotResident,
        Some(_) => StringStatus::Fault,
    };
    assert_eq!(status, same, "{mapping:x?} {owner:?}");
    assert_eq!(ran.touched.is_empty(), status != StringStatus::Cut);
    status
}

#[test]
fn only_mappings_whose_faults_end_are_touched() {
    let look = look();
    let owner = Hit::default().owner;
    let with = |mapping: [u64; 8], index: usize, value: u64| {
        let mut mapping = mapping;
        mapping[index] = value;
        Some(mapping)
    };
    let ext4 = file(EXT4, "vda");
    for mapping in [
        Some(ANONYMOUS),
        Some(ext4),
        Some(file(0x0102_1994, "")),
        Some(file(0x5846_5342, "dm-3")),
        Some(file(0x9123_683e, "nvme0n1")),
        Some(file(EXT4, "sda")),
    ] {
        let found = looked_at(mapping, owner, look);
        assert_eq!(found, StringStatus::Cut, "{mapping:x?}");
    }
    for mapping in [
        // userfaultfd, in the flags and by its context; memory of a device; huge pages
        with(ANONYMOUS, 0, 0x73 | 0x200),
        with(ANONYMOUS, 0, 0x73 | 0x1000),
        with(ANONYMOUS, 3, 0xffff_8880),
        with(ANONYMOUS, 0, 0x73 | 0x400),
        with(ANONYMOUS, 0, 0x73 | 0x4000),
        with(ANONYMOUS, 0, 0x73 | 0x40_0000),
        // a special mapping
        with(ANONYMOUS, 2, 0xffff_8880),
        // FUSE, NFS, 9P, overlayfs itself
        Some(file(FUSE, "")),
        Some(file(0x6969, "")),
        Some(file(0x0102_1997, "")),
        Some(file(0x794c_7630, "")),
        // a device file on an otherwise good file system
        with(file(0x0102_1994, ""), 4, 0o020_666),
        // devices that a process or a network may serve
        Some(file(EXT4, "loop3")),
        Some(file(EXT4, "nbd0")),
        Some(file(EXT4, "rbd0")),
        Some(file(EXT4, "ublkb0")),
    ] {
        let found = looked_at(mapping, owner, look);
        assert_eq!(found, StringStatus::NotResident, "{mapping:x?}");
    }
    for mapping in [None, with(ANONYMOUS, 0, 0x70)] {
        let found = looked_at(mapping, owner, look);
        assert_eq!(found, StringStatus::Fault, "{mapping:x?}");
    }
}

#[test]
fn only_where_nobody_can_change_the_mapping_meanwhile() {
    let look = look();
    let threads = Owner {
        mm_users: 2,
        ..Hit::default().owner
    };
    let found = |owner, look| looked_at(Some(ANONYMOUS), owner, look);
    assert_eq!(found(threads, look), StringStatus::NotResident);
    let admin = Owner {
        capabilities: SYS_ADMIN,
        euid: 0,
        ..threads
    };
    assert_eq!(found(admin, look), StringStatus::Cut);
    let contained = Owner { level: 1, ..admin };
    assert_eq!(found(contained, look), StringStatus::NotResident);
    let few_capabilities = Owner {
        capabilities: !SYS_ADMIN,
        ..admin
    };
    assert_eq!(found(few_capabilities, look), StringStatus::NotResident);
    let ours = Look { user: 1000, ..look };
    assert_eq!(found(threads, ours), StringStatus::Cut);
    assert_eq!(
        found(
            Owner {
                euid: 1001,
                ..threads
            },
            ours
        ),
        StringStatus::NotResident
    );
    // With a userfaultfd that another process registers.
    let alone = Hit::default().owner;
    let not_sure = Look {
        single_user: false,
        ..look
    };
    assert_eq!(found(alone, not_sure), StringStatus::NotResident);
    assert_eq!(
        found(
            Owner {
                mm_users: 1,
                ..admin
            },
            not_sure
        ),
        StringStatus::Cut
    );
}

#[test]
fn a_string_that_goes_on_where_nothing_is_to_be_had() {
    let planned = Planned::new("8@%rdi", Arch::X86_64, STRINGS);
    let behind = rdi() + 50..rdi() + 200;
    for (mapping, expected) in [
        (None, StringStatus::Fault),
        (Some(file(FUSE, "")), StringStatus::NotResident),
    ] {
        let hit = Hit {
            absent: vec![behind.clone()],
            forbidden: match mapping {
                None => vec![behind.clone()],
                Some(_) => Vec::new(),
            },
            mappings: vec![(behind.clone(), mapping)],
            ..Hit::default()
        };
        let ran = run(&planned, &hit, Touch::Look(look()));
        assert_eq!(status(&planned, &ran), expected, "{mapping:x?}");
        assert_eq!(ran.touched, [rdi()], "{mapping:x?}");
    }
}

#[test]
fn a_mapping_is_looked_for_again_while_its_lock_is_held() {
    let planned = Planned::new("8@%rdi", Arch::X86_64, STRINGS);
    for (busy, expected) in [
        (1, StringStatus::Cut),
        (TRIES - 1, StringStatus::Cut),
        (TRIES, StringStatus::NotResident),
    ] {
        let busy = busy as u32;
        let hit = Hit { busy, ..absent() };
        let ran = run(&planned, &hit, Touch::Look(look()));
        assert_eq!(status(&planned, &ran), expected, "{busy}");
        assert_eq!(ran.discarded, 1, "{busy}");
    }
}

#[test]
fn what_goes_again_is_not_resident() {
    // Touched, and not there all the same.
    let planned = Planned::new("8@%rdi", Arch::X86_64, STRINGS);
    let hit = Hit {
        // The touch is of the ends only: what is between them stays away.
        absent: std::iter::once(rdi() + 20..rdi() + 30).collect(),
        ..Hit::default()
    };
    let ran = run(&planned, &hit, Touch::Look(look()));
    assert_eq!(status(&planned, &ran), StringStatus::NotResident);
    assert_eq!(ran.discarded, 1);
}

#[test]
fn many_reads_that_fail_come_to_an_end() {
    // As many reads as a program has: each once, and then it is over.
    let args = vec!["8@(%rdi)"; 80].join(" ");
    let planned = Planned::new(&args, Arch::X86_64, Strings::default());
    let hit = Hit {
        mapping: Some(file(FUSE, "")),
        ..absent()
    };
    let ran = run(&planned, &hit, Touch::Look(look()));
    assert_eq!(ran.discarded, 63);
    assert!(ran.record.is_some() && ran.touched.is_empty());
}

#[test]
fn of_an_empty_string_old_kernels_do_not_count_the_nul() {
    let address = 0x7f00_0000_0200;
    let mut hit = Hit {
        is_old: true,
        ..Hit::default()
    };
    let at = crate::engine::bpf::contract::register_offset(
        Arch::X86_64,
        Arch::X86_64.register("rdi").unwrap(),
    );
    hit.context[at.unwrap() as usize / 8] = address;
    let planned = Planned::new("8@%rdi", Arch::X86_64, STRINGS);
    let ran = run(&planned, &hit, Touch::Look(look()));
    assert_eq!(status(&planned, &ran), StringStatus::Whole);
    let mut out = Vec::new();
    assert!(super::compact(
        &ran.record.unwrap(),
        planned.shape(),
        &mut out
    ));
    let string = planned.layout.strings().next().unwrap();
    assert_eq!(word(&out, RAW + usize::from(string.status), 2), 0);
    assert_eq!(
        word(&out, RAW + usize::from(string.location) + 2, 2),
        1,
        "a NUL"
    );
}
