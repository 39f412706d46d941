//! The kernel's BTF where sysfs does not show it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::info::{Listed, by_id, next_id, read_info};

/// Maximum number of BTF objects that are looked at: the kernel's is the first of a host.
const MAX_OBJECTS: usize = 64;
/// Maximum size that is read, bytes. That of a usual kernel is 6 MB.
const MAX_BYTES: u32 = 1 << 26;
const VMLINUX: &[u8] = b"vmlinux\0";

/// `struct bpf_btf_info` (Linux 5.11).
#[repr(C)]
#[derive(Default)]
struct BtfInfo {
    data: u64,
    size: u32,
    id: u32,
    name: u64,
    name_size: u32,
    is_of_kernel: u32,
}

/// The kernel's BTF.
///
/// # Errors
/// Those of bpf(2), such as `EPERM` without `CAP_SYS_ADMIN`; [`io::ErrorKind::NotFound`] if the kernel has none.
pub fn kernel_btf() -> io::Result<Vec<u8>> {
    let mut id = 0;
    for _ in 0..MAX_OBJECTS {
        id = next_id(Listed::Btf, id)?;
        let object = by_id(Listed::Btf, id)?;
        if let Some(data) = read(&object)? {
            return Ok(data);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The types of an object if it is the kernel's.
fn read(object: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut name = [0_u8; VMLINUX.len()];
    let mut info = BtfInfo {
        name: name.as_mut_ptr() as u64,
        name_size: name.len() as u32,
        ..BtfInfo::default()
    };
    // SAFETY: the name's pointer is valid for its length; a longer name is an error. There is no room for data.
    let outcome = unsafe { read_info(object.as_fd(), &mut info) };
    if outcome.is_err() || info.is_of_kernel == 0 || name != VMLINUX || info.size > MAX_BYTES {
        return Ok(None);
    }
    let mut data = vec![0; info.size as usize];
    let mut info = BtfInfo {
        data: data.as_mut_ptr() as u64,
        size: info.size,
        ..BtfInfo::default()
    };
    // SAFETY: the pointer is valid for the length.
    unsafe { read_info(object.as_fd(), &mut info) }?;
    Ok(Some(data))
}
