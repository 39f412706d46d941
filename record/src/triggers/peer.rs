//! The process at the other end of a Unix socket.
//!
//! The kernel gives the id 0 for a process that our pid namespace does not have. rustix has an id that is never 0.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Who connected, or listened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// `None` if our pid namespace does not have the process.
    pub(super) pid: Option<i32>,
    /// The effective user.
    pub(super) uid: u32,
}

impl Peer {
    /// # Errors
    /// The error of getsockopt(2).
    pub(super) fn at_other_end(stream: &UnixStream) -> io::Result<Self> {
        const BYTES: libc::socklen_t = size_of::<libc::ucred>() as libc::socklen_t;
        let mut found = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut length = BYTES;
        // SAFETY: the kernel writes at most `length` bytes to `found`, which has as many; any bytes are valid integers.
        let outcome = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut found).cast(),
                &raw mut length,
            )
        };
        match (outcome, length) {
            (0, BYTES) => Ok(Self::from_kernel(found)),
            (0, _) => Err(io::ErrorKind::InvalidData.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn from_kernel(found: libc::ucred) -> Self {
        Self {
            pid: (found.pid > 0).then_some(found.pid),
            uid: found.uid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_pid_namespace_has_no_id() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = Peer {
            pid: Some(std::process::id().cast_signed()),
            uid: rustix::process::geteuid().as_raw(),
        };
        assert_eq!(Peer::at_other_end(&one).expect("this process"), own);
        let elsewhere = Peer::from_kernel(libc::ucred {
            pid: 0,
            uid: 7,
            gid: 7,
        });
        assert_eq!(elsewhere, Peer { pid: None, uid: 7 });
    }
}
