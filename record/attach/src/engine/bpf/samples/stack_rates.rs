//! How many stacks were taken at each site by each thread: the map that programs limit their rate with.
//!
//! A program reserves a record without a stack when a thread had enough of them in a second. So hits are complete, and
//! only stacks are thinned out; the chain of such an event has the address of the hit and a reason of its own.

use std::io;
use std::os::fd::OwnedFd;

use usdtrec_kernel::bpf::sys;

/// Maximum number of pairs of site and thread. The one that was not used for the longest time makes room for another, and begins anew
/// when it is hit again.
const MAX_PAIRS: u32 = 16 << 10;
/// Bytes of a key: the cookie of the site, and the thread.
const KEY: u32 = 16;
/// Bytes of a value: when its second began, ns of `CLOCK_MONOTONIC`, and the number of stacks since.
const VALUE: u32 = 16;

/// Creates the map.
pub(in crate::engine::bpf) fn create() -> io::Result<OwnedFd> {
    let shape = sys::MapShape {
        key_size: KEY,
        value_size: VALUE,
        entries: MAX_PAIRS,
    };
    sys::create_map(sys::MapKind::LruHash, shape)
}
