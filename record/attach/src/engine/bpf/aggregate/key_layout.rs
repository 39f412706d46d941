//! Where a key has what it is made of.

use crate::aggregation::AggregateKey;

/// Size of the name of a thread, bytes.
pub(super) const COMM_BYTES: u32 = 16;

/// Offsets in a key, bytes; `None` for what is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct KeyLayout {
    /// The name of the thread, 16 bytes.
    pub(super) comm: Option<u32>,
    /// The id of the control group (version 2), 8 bytes.
    pub(super) cgroup: Option<u32>,
    /// The number of the stack, 8 bytes.
    pub(super) stack: Option<u32>,
    /// The process, 4 bytes.
    pub(super) pid: Option<u32>,
    /// The thread, 4 bytes.
    pub(super) tid: Option<u32>,
    /// The user, 4 bytes.
    pub(super) uid: Option<u32>,
    /// The CPU, 4 bytes, if the programs of each have groups of their own.
    pub(super) cpu: Option<u32>,
    /// The raw part.
    pub(super) raw: u32,
}

impl KeyLayout {
    /// That of keys of these kinds.
    pub(in crate::engine::bpf) fn new(by: &[AggregateKey], is_of_cpu: bool) -> Self {
        let mut end = 0;
        let mut place_if = |is_there: bool, bytes: u32| {
            let at = is_there.then_some(end);
            end += if is_there { bytes } else { 0 };
            at
        };
        let mut place =
            |bytes: u32, is_it: fn(&AggregateKey) -> bool| place_if(by.iter().any(is_it), bytes);
        let about_group: fn(&AggregateKey) -> bool =
            |key| matches!(key, AggregateKey::Container | AggregateKey::Unit);
        let all = Self {
            comm: place(COMM_BYTES, |key| *key == AggregateKey::Comm),
            cgroup: place(8, about_group),
            stack: place(8, |key| *key == AggregateKey::Stack),
            pid: place(4, |key| *key == AggregateKey::Pid),
            tid: place(4, |key| *key == AggregateKey::Tid),
            uid: place(4, |key| *key == AggregateKey::Uid),
            cpu: place_if(is_of_cpu, 4),
            raw: 0,
        };
        Self {
            raw: end.next_multiple_of(8),
            ..all
        }
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
        assert_eq!((layout.comm, layout.cgroup), (Some(0), Some(16)));
        assert_eq!((layout.pid, layout.tid, layout.raw), (Some(24), None, 32));
        let of_cpu = KeyLayout::new(&by, true);
        assert_eq!(
            (of_cpu.pid, of_cpu.cpu, of_cpu.raw),
            (Some(24), Some(28), 32)
        );
    }
}
