//! The ids of a hit.

use usdtrec_format::Arch;

use super::machine::{Hit, ID_MEMBERS};
use super::{Planned, STRINGS, common, word};
use crate::engine::bpf::program::spec::Common;

#[test]
fn ids_are_the_same_from_helpers_and_from_the_task() {
    let planned = Planned::new("4@%edi 8@(%rsi)", Arch::X86_64, STRINGS);
    let of_task = Common {
        id_members: Some(ID_MEMBERS),
        ..common()
    };
    let hit = Hit {
        pid_tgid: 0xfedc_ba98 << 32 | 0x8765_4321,
        ..Hit::default()
    };
    let record = planned.run(&hit, &of_task).unwrap();
    assert_eq!(word(&record, 24, 8), 0x8765_4321_fedc_ba98);
    assert_eq!(Some(record), planned.run(&hit, &common()));
}
