//! References to descriptors that the kernel itself holds. When all processes that had them open are killed, a kernel worker closes them.
//!
//! A process that gets SIGKILL while it closes the last copy of a link or an event leaves breakpoints in programs: the kernel cannot write
//! to them while the signal is pending (`get_user_pages`; "failed to unregister, leaking uprobe"). A kernel worker gets no signals. The
//! references are in an io_uring, of which only the table of files is used (io_uring_register(2)).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io_uring::{
    IoringRegisterOp, io_uring_files_update, io_uring_params, io_uring_ptr, io_uring_register,
    io_uring_setup,
};

/// References to descriptors. They are dropped when this is closed in all processes, or individually.
#[derive(Debug)]
pub(in crate::engine) struct Keeper {
    ring: OwnedFd,
}

impl Keeper {
    /// Takes a reference to each descriptor.
    ///
    /// # Errors
    /// The errors of io_uring_setup(2) and io_uring_register(2): the kernel is older than 5.1, or io_uring is forbidden
    /// (`kernel.io_uring_disabled`, seccomp).
    pub(in crate::engine) fn for_descriptors(descriptors: &[RawFd]) -> io::Result<Self> {
        let keeper = Self { ring: ring()? };
        keeper.register(
            IoringRegisterOp::RegisterFiles,
            descriptors,
            descriptors.len(),
        )?;
        Ok(keeper)
    }

    /// Drops the references at these indexes of the list that it was created from.
    pub(in crate::engine) fn let_go(&self, places: Range<usize>) -> io::Result<()> {
        const NO_FILE: RawFd = -1;
        let files = vec![NO_FILE; places.len()];
        let mut update = io_uring_files_update::default();
        update.offset = u32::try_from(places.start).map_err(io::Error::other)?;
        update.fds = io_uring_ptr::new(files.as_ptr().cast_mut().cast());
        self.register(
            IoringRegisterOp::RegisterFilesUpdate,
            &[update],
            files.len(),
        )
    }

    fn register<T>(&self, what: IoringRegisterOp, list: &[T], count: usize) -> io::Result<()> {
        let count = u32::try_from(count).map_err(io::Error::other)?;
        // SAFETY: the two operations that are used read `count` descriptors from the list, or from the list that an update points to. Both
        // outlive the call, and the kernel keeps no pointer to them.
        unsafe { io_uring_register(&self.ring, what, list.as_ptr().cast(), count) }?;
        Ok(())
    }
}

impl From<OwnedFd> for Keeper {
    fn from(ring: OwnedFd) -> Self {
        Self { ring }
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The error if no io_uring can be created; `None` if it can.
pub fn missing() -> Option<io::Error> {
    ring().err()
}

/// The smallest possible one.
fn ring() -> io::Result<OwnedFd> {
    let mut parameters = io_uring_params::default();
    // SAFETY: the parameters refer to no other descriptor.
    Ok(unsafe { io_uring_setup(1, &mut parameters) }?)
}
