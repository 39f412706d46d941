//! Maps and their elements.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::btf::{WORK_NAMES, WORK_TYPES, load_types};
use super::call::{bpf, name, open, raw};
use crate::host::limits;

const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const MAP_GET_NEXT_KEY: i32 = 4;
const MAP_LOOKUP_ELEM: i32 = 1;
const MAP_LOOKUP_BATCH: i32 = 24;
const MAP_UPDATE_BATCH: i32 = 26;

/// Maximum number of elements that are read at a time.
const MAX_BATCH: u32 = 4096;

/// Kinds of maps (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// `BPF_MAP_TYPE_HASH`.
    Hash = 1,
    /// `BPF_MAP_TYPE_ARRAY`.
    Array = 2,
    /// `BPF_MAP_TYPE_LRU_HASH`.
    LruHash = 9,
    /// `BPF_MAP_TYPE_LPM_TRIE`.
    Prefixes = 11,
    /// `BPF_MAP_TYPE_ARRAY_OF_MAPS`.
    ArrayOfMaps = 12,
    /// `BPF_MAP_TYPE_RINGBUF`.
    Ring = 27,
}

/// `BPF_F_MMAPABLE`.
const MAPPABLE: u32 = 1 << 10;

/// `BPF_NOEXIST`: the key must not be in the map.
const IS_NEW: u64 = 1;
/// `BPF_EXIST`: the key must be in the map.
const EXISTS: u64 = 2;

/// `BPF_F_NO_PREALLOC`.
const NO_PREALLOC: u32 = 1;
/// `BPF_F_NUMA_NODE`.
const NUMA_NODE: u32 = 1 << 2;

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
    interface: u32,
    btf: u32,
    key_kind: u32,
    value_kind: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct MapBatch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    _flags: u64,
}

/// The elements of a map.
#[derive(Clone, Copy, Debug)]
pub struct MapShape {
    /// Size of a key, bytes.
    pub key_size: u32,
    /// Size of a value, bytes.
    pub value_size: u32,
    /// Maximum number of elements.
    pub entries: u32,
}

/// Creates a map.
pub fn create_map(kind: MapKind, shape: MapShape) -> io::Result<OwnedFd> {
    create(MapCreate {
        kind: kind as u32,
        key_size: shape.key_size,
        value_size: shape.value_size,
        entries: shape.entries,
        flags: NO_PREALLOC * u32::from(matches!(kind, MapKind::Prefixes)),
        ..MapCreate::default()
    })
}

/// What keys and values of maps may be: as in memory, with neither references nor gaps.
pub trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for NamePrefix {}
impl<T: Plain, const LENGTH: usize> Plain for [T; LENGTH] {}

/// Creates a map with keys and values of these types.
pub fn create_map_of<K: Plain, V: Plain>(kind: MapKind, entries: u32) -> io::Result<OwnedFd> {
    let shape = MapShape {
        key_size: size_of::<K>() as u32,
        value_size: size_of::<V>() as u32,
        entries,
    };
    create_map(kind, shape)
}

/// Creates an array, which can be mapped into memory.
pub fn create_array(value_size: u32, entries: u32) -> io::Result<OwnedFd> {
    create(MapCreate {
        kind: MapKind::Array as u32,
        key_size: 4,
        value_size,
        entries,
        flags: MAPPABLE,
        ..MapCreate::default()
    })
}

/// Beginning of a name (`struct bpf_lpm_trie_key`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NamePrefix {
    /// Number of its bits.
    pub bits: u32,
    /// The name, and zeros.
    pub bytes: [u8; Self::BYTES],
}

impl NamePrefix {
    /// Maximum number of bytes (`LPM_DATA_SIZE_MAX`).
    pub const BYTES: usize = 256;
}

/// Creates a ring of so many bytes, in the memory of a NUMA node if one is given.
pub fn create_ring(bytes: u32, node: Option<u32>) -> io::Result<OwnedFd> {
    create(MapCreate {
        kind: MapKind::Ring as u32,
        entries: bytes,
        flags: NUMA_NODE * u32::from(node.is_some()),
        numa_node: node.unwrap_or(0),
        ..MapCreate::default()
    })
}

/// Creates an array for maps that were created as `like` was (same kind, sizes and flags).
pub fn create_array_of_maps(like: BorrowedFd<'_>, entries: u32) -> io::Result<OwnedFd> {
    create(MapCreate {
        kind: MapKind::ArrayOfMaps as u32,
        key_size: 4,
        value_size: 4,
        entries,
        inner_map: raw(like),
        ..MapCreate::default()
    })
}

/// Puts maps into an array of maps, from its first element on.
pub fn put_maps(array: BorrowedFd<'_>, maps: &[BorrowedFd<'_>]) -> io::Result<()> {
    let keys: Vec<u32> = (0..).take(maps.len()).collect();
    let mut values: Vec<u32> = maps.iter().map(|map| raw(*map)).collect();
    let mut attr = MapBatch {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: keys.len() as u32,
        map: raw(array),
        element_flags: 0,
        _flags: 0,
    };
    // After each call the kernel waits until programs that see the array as it was have ended. So it is one call for all, where there is one.
    // SAFETY: `attr` is laid out as BPF_MAP_UPDATE_BATCH takes it; keys and values are as many as `count` says and outlive the call.
    if unsafe { bpf(MAP_UPDATE_BATCH, &mut attr) }.is_ok() {
        return Ok(());
    }
    let mut elements = keys.iter().zip(&mut values);
    elements.try_for_each(|(key, value)| element(MAP_UPDATE_ELEM, array, key, Some(value), 0))
}

fn create(attr: MapCreate) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        name: name("usdtrec"),
        ..attr
    };
    // SAFETY: `attr` is laid out as BPF_MAP_CREATE takes it and points nowhere.
    let mut create = || unsafe { open(MAP_CREATE, &mut attr) };
    let result = create();
    // Before Linux 5.11 maps count as locked memory, also those of root.
    if is_permission(&result) && limits::remove_locked_memory() {
        return create();
    }
    result
}

fn is_permission(result: &io::Result<OwnedFd>) -> bool {
    let error = result.as_ref().err();
    error.is_some_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

/// Creates a hash map with 8-byte keys, whose values are a `struct bpf_task_work` and three words (Linux 6.18).
pub fn create_works(entries: u32) -> io::Result<OwnedFd> {
    let types = load_types(&WORK_TYPES.concat(), WORK_NAMES)?;
    create(MapCreate {
        kind: MapKind::Hash as u32,
        key_size: 8,
        value_size: 32,
        entries,
        flags: NO_PREALLOC,
        btf: raw(types.as_fd()),
        key_kind: 1,
        value_kind: 3,
        ..MapCreate::default()
    })
}

/// Adds a key with the value 1 to a map with 4-byte values.
pub fn insert<K: Plain>(map: BorrowedFd<'_>, key: K) -> io::Result<()> {
    put(map, key, 1_u32)
}

/// Adds a key to a map, or changes its value.
pub fn put<K: Plain, V: Plain>(map: BorrowedFd<'_>, key: K, mut value: V) -> io::Result<()> {
    element(MAP_UPDATE_ELEM, map, &key, Some(&mut value), 0)
}

/// Adds a key that is not in a hash map with 4-byte keys and values.
pub fn add(map: BorrowedFd<'_>, key: u32, mut value: u32) -> io::Result<()> {
    element(MAP_UPDATE_ELEM, map, &key, Some(&mut value), IS_NEW)
}

/// Changes the value of a key that is in a map.
pub fn change<K: Plain, V: Plain>(map: BorrowedFd<'_>, key: K, mut value: V) -> io::Result<()> {
    element(MAP_UPDATE_ELEM, map, &key, Some(&mut value), EXISTS)
}

/// The value of a key.
pub fn read<K: Plain, V: Plain + Default>(map: BorrowedFd<'_>, key: K) -> io::Result<V> {
    let mut value = V::default();
    element(MAP_LOOKUP_ELEM, map, &key, Some(&mut value), 0)?;
    Ok(value)
}

/// Removes a key.
pub fn remove<K: Plain>(map: BorrowedFd<'_>, key: K) -> io::Result<()> {
    element(MAP_DELETE_ELEM, map, &key, None::<&mut u32>, 0)
}

/// The key after `after` in a hash map with 4-byte keys, or the first key if the map does not have `after` any more.
pub fn next_key(map: BorrowedFd<'_>, after: u32) -> io::Result<u32> {
    let mut next = 0_u32;
    element(MAP_GET_NEXT_KEY, map, &after, Some(&mut next), 0)?;
    Ok(next)
}

/// Reads the value of a key in a hash map with 8-byte keys and values as long as `value`.
///
/// # Errors
/// The error of bpf(2): `ENOENT` if it does not have the key.
pub fn read_element(map: BorrowedFd<'_>, key: u64, value: &mut [u8]) -> io::Result<()> {
    element(MAP_LOOKUP_ELEM, map, &key, Some(value), 0)
}

/// Passes the elements of a hash map to `take`, keys and values. Those that are added meanwhile may be missing.
pub fn read_map(
    map: BorrowedFd<'_>,
    shape: MapShape,
    mut take: impl FnMut(&[u8], &[u8]),
) -> io::Result<()> {
    let (key_bytes, value_bytes) = (shape.key_size as usize, shape.value_size as usize);
    // A bucket must fit; the kernel has as many buckets as elements.
    let room = MAX_BATCH.min(shape.entries.max(1));
    let mut keys = vec![0_u8; room as usize * key_bytes];
    let mut values = vec![0_u8; room as usize * value_bytes];
    let (mut position, mut next) = (0_u32, 0_u32);
    let mut is_first = true;
    loop {
        let mut attr = MapBatch {
            in_batch: match is_first {
                true => 0,
                false => std::ptr::from_ref(&position) as u64,
            },
            out_batch: std::ptr::from_mut(&mut next) as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: room,
            map: raw(map),
            element_flags: 0,
            _flags: 0,
        };
        // SAFETY: `attr` is laid out as BPF_MAP_LOOKUP_BATCH takes it; there is room for `count` keys and values of the sizes with which the map was
        // created, and for both positions, which are numbers of buckets.
        let result = unsafe { bpf(MAP_LOOKUP_BATCH, &mut attr) };
        let is_last = match result {
            Ok(_) => false,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
            Err(error) => return Err(error),
        };
        let found = (attr.count as usize).min(room as usize);
        let found_keys = keys.chunks_exact(key_bytes).take(found);
        for (key, value) in found_keys.zip(values.chunks_exact(value_bytes)) {
            take(key, value);
        }
        if is_last {
            return Ok(());
        }
        (position, is_first) = (next, false);
    }
}

/// Calls bpf(2) on an element of a map whose keys and values are as long as these.
fn element<K, V: ?Sized>(
    command: i32,
    map: BorrowedFd<'_>,
    key: &K,
    value: Option<&mut V>,
    flags: u64,
) -> io::Result<()> {
    let mut attr = MapElement {
        map: raw(map),
        _pad: 0,
        key: std::ptr::from_ref(key) as u64,
        // Deletion has no value, and expects 0.
        value: value.map_or(0, |value| std::ptr::from_mut(value).cast::<u8>() as u64),
        flags,
    };
    // SAFETY: `attr` is laid out as the commands on elements take it; key and value are as long as those of the map, for all maps
    // that this is called for, and outlive the call.
    unsafe { bpf(command, &mut attr) }.map(drop)
}
