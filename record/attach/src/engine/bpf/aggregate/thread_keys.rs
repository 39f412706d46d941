//! What a group's key has of the thread: an entry for each kind says how large it is, writes it and reads it.

use usdtrec_kernel::bpf::insn::{Assembler, Helper, Op, Reg, Width};

use crate::aggregation::{AggregateKey, AggregateValue};
use crate::engine::numbers::u32_at;

/// Number of kinds of keys.
const KINDS: usize = 6;
/// Size of the name of a thread, bytes.
const COMM_BYTES: u32 = 16;

/// A kind of key.
struct ThreadKey {
    is_it: fn(&AggregateKey) -> bool,
    /// Its size in a group's key.
    bytes: u32,
    /// Writes it at an offset from `R7`; `None` if that is done when the rest of the key is there.
    put: Option<fn(&mut Assembler, i16)>,
    /// Reads it; `None` if more than its bytes is needed for that.
    value: Option<fn(&[u8]) -> AggregateValue>,
}

/// The kinds, in the order in which a key has them: larger ones first.
static THREAD_KEYS: [ThreadKey; KINDS] = [
    ThreadKey {
        is_it: |key| *key == AggregateKey::Comm,
        bytes: COMM_BYTES,
        put: Some(|asm, at| {
            // bpf_get_current_comm(r7 + at, COMM_BYTES);
            asm.address(Reg::R1, Reg::R7, at.into());
            asm.set(Reg::R2, COMM_BYTES.into());
            asm.call(Helper::Comm);
        }),
        value: Some(|bytes| {
            let name = bytes.split(|byte| *byte == 0);
            AggregateValue::Comm(name.take(1).flatten().copied().collect())
        }),
    },
    // The id of the control group (version 2).
    ThreadKey {
        is_it: |key| matches!(key, AggregateKey::Container | AggregateKey::Unit),
        bytes: 8,
        put: Some(|asm, at| {
            // *(u64 *)(r7 + at) = bpf_get_current_cgroup_id();
            asm.call(Helper::CgroupId);
            asm.store(Width::Double, Reg::R7, at, Reg::R0);
        }),
        value: None,
    },
    // The number of the stack.
    ThreadKey {
        is_it: |key| *key == AggregateKey::Stack,
        bytes: 8,
        put: None,
        value: None,
    },
    ThreadKey {
        is_it: |key| *key == AggregateKey::Pid,
        bytes: 4,
        put: Some(|asm, at| {
            // *(u32 *)(r7 + at) = bpf_get_current_pid_tgid() >> 32;
            asm.thread_and_process();
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
            asm.store(Width::Word, Reg::R7, at, Reg::R0);
        }),
        value: Some(number),
    },
    ThreadKey {
        is_it: |key| *key == AggregateKey::Tid,
        bytes: 4,
        put: Some(|asm, at| {
            // *(u32 *)(r7 + at) = bpf_get_current_pid_tgid();
            asm.thread_and_process();
            asm.store(Width::Word, Reg::R7, at, Reg::R0);
        }),
        value: Some(number),
    },
    ThreadKey {
        is_it: |key| *key == AggregateKey::Uid,
        bytes: 4,
        put: Some(|asm, at| {
            // *(u32 *)(r7 + at) = bpf_get_current_uid_gid();
            asm.call(Helper::UidGid);
            asm.store(Width::Word, Reg::R7, at, Reg::R0);
        }),
        value: Some(number),
    },
];

fn number(bytes: &[u8]) -> AggregateValue {
    AggregateValue::Number(u32_at(bytes, 0).unwrap_or(0))
}

/// Offsets in a key, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct KeyLayout {
    /// Of each of [`THREAD_KEYS`]; `None` for what is no key.
    places: [Option<u32>; KINDS],
    /// The CPU, 4 bytes, if the programs of each have groups of their own.
    pub(super) cpu: Option<u32>,
    /// The raw part.
    pub(super) raw: u32,
}

impl KeyLayout {
    /// The layout of keys of these kinds.
    pub(in crate::engine::bpf) fn new(by: &[AggregateKey], is_of_cpu: bool) -> Self {
        let mut end = 0;
        let mut place_if = |is_there: bool, bytes: u32| {
            let at = is_there.then_some(end);
            end += if is_there { bytes } else { 0 };
            at
        };
        let place = |kind: &ThreadKey| place_if(by.iter().any(kind.is_it), kind.bytes);
        let places = THREAD_KEYS.each_ref().map(place);
        let cpu = place_if(is_of_cpu, 4);
        Self {
            places,
            cpu,
            raw: end.next_multiple_of(8),
        }
    }

    /// Where a key has what it says of the thread.
    pub(super) fn at(&self, key: &AggregateKey) -> Option<u32> {
        let mut kinds = THREAD_KEYS.iter().zip(self.places);
        kinds.find(|(kind, _)| (kind.is_it)(key))?.1
    }

    /// Writes what is known of the thread to the key that begins at an offset from `R7`.
    pub(super) fn put_thread(&self, asm: &mut Assembler, start: i16) {
        for (kind, place) in THREAD_KEYS.iter().zip(self.places) {
            if let (Some(put), Some(at)) = (kind.put, place) {
                put(asm, start + at as i16);
            }
        }
    }

    /// What a group's key says of the thread; `None` if that needs more than the key.
    pub(super) fn value(&self, wanted: &AggregateKey, key: &[u8]) -> Option<AggregateValue> {
        let kind = THREAD_KEYS.iter().find(|kind| (kind.is_it)(wanted))?;
        let bytes = key.get(self.at(wanted)? as usize..)?;
        Some((kind.value?)(bytes.get(..kind.bytes as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_key_takes_room() {
        assert_eq!(KeyLayout::new(&[], false).raw, 0);
        let argument = AggregateKey::Argument("a".to_owned());
        assert_eq!(
            KeyLayout::new(std::slice::from_ref(&argument), false),
            KeyLayout::default()
        );
        let by = [
            argument,
            AggregateKey::Pid,
            AggregateKey::Unit,
            AggregateKey::Comm,
            AggregateKey::Container,
        ];
        let layout = KeyLayout::new(&by, false);
        let at = |key| layout.at(&key);
        assert_eq!(at(AggregateKey::Comm), Some(0));
        assert_eq!(at(AggregateKey::Container), Some(16));
        assert_eq!(at(AggregateKey::Pid), Some(24));
        assert_eq!((at(AggregateKey::Tid), layout.raw), (None, 32));
        let of_cpu = KeyLayout::new(&by, true);
        let pid = of_cpu.at(&AggregateKey::Pid);
        assert_eq!((pid, of_cpu.cpu, of_cpu.raw), (Some(24), Some(28), 32));
    }

    #[test]
    fn values_are_read_where_they_are_written() {
        let by = [AggregateKey::Tid, AggregateKey::Comm, AggregateKey::Stack];
        let layout = KeyLayout::new(&by, false);
        let mut key = vec![0; layout.raw as usize];
        key[..4].copy_from_slice(b"cat\0");
        key[24..28].copy_from_slice(&7_u32.to_ne_bytes());
        let value = |wanted| layout.value(&wanted, &key);
        assert_eq!(value(AggregateKey::Tid), Some(AggregateValue::Number(7)));
        let name = AggregateValue::Comm(b"cat".to_vec());
        assert_eq!(value(AggregateKey::Comm), Some(name));
        assert_eq!(value(AggregateKey::Stack), None);
        assert_eq!(value(AggregateKey::Pid), None);
    }
}
