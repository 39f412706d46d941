//! When a process began.

use std::io;

use usdtrec_kernel::host::process::Process;

/// The start time of a process, clock ticks since boot.
///
/// # Errors
/// `NotFound` if it has ended.
pub(super) fn start_of(pid: u32) -> io::Result<u64> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let pid = i32::try_from(pid).map_err(|_| missing())?;
    let process = Process::open(pid).map_err(|_| missing())?;
    let stat = process.stat().map_err(|_| missing())?;
    if stat.has_ended() && stat.num_threads <= 1 {
        return Err(missing());
    }
    Ok(stat.start)
}
