//! The standard streams of helpers that read and write nothing.

use std::fs::File;
use std::io;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};

/// `/dev/null`; in a root without devices, a file in memory.
///
/// # Errors
/// That of `memfd_create(2)`.
pub fn stream() -> io::Result<Stdio> {
    let file = match File::options().read(true).write(true).open("/dev/null") {
        Ok(device) => device,
        Err(_) => File::from(memfd_create("null", MemfdFlags::CLOEXEC)?),
    };
    Ok(file.into())
}
