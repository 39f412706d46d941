//! Messages between a recorder and its [helpers](super): one datagram each way, with open descriptors beside it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of bytes that are read at once.
pub(super) const MAX_READ: usize = 1 << 16;
/// Maximum size of a message, bytes: a path has up to 4 KB, of which `name` is longer if it is below another process's root.
const MAX_MESSAGE: usize = MAX_READ + 64;
/// Maximum number of descriptors of a message.
const MAX_DESCRIPTORS: usize = 2;

usdtrec_format::listed! {
    /// What a helper is asked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Task {
        /// Start another helper; the answer has its socket and a handle of the process.
        Start,
        /// Open a handle of a path; the answer has it, its [`FileStat`](super::FileStat) and its name.
        Open,
        /// The same, if the last part of the path is no symbolic link.
        OpenNoLink,
        /// The same of a path without symbolic links below a directory.
        OpenBelow,
        /// The `FileStat` of a handle.
        Describe,
        /// Read from a handle's file: file number, offset and length.
        Read,
        /// Open a file in a directory of `/proc`: a byte, 1 for writing, too, and its name. The answer has it.
        OpenOfProcess,
        /// Read such a file: offset, of memory the address, and length.
        ReadOfProcess,
        /// Write to such memory: address and bytes.
        WriteMemory,
        /// Compare the first pages of the files of two handles: a byte, 1 if they are one frame, 0 if not, and none if that is not known.
        ComparePages,
        /// Bring a page of a handle's file into the page cache: file number and index of the page. The answer is a byte, 1 if it is there then.
        CachePage,
        /// How a handle's file appears among mappings: file number. The answer has the major and minor number of the device, and the inode.
        Identify,
    }
}

impl Task {
    pub(super) const fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.byte() == byte)
    }
}

/// A message.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Numbers in a message.
pub(super) fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (at, number) in numbers.iter_mut().enumerate() {
        let bytes = bytes.get(8 * at..)?.first_chunk()?;
        *number = u64::from_le_bytes(*bytes);
    }
    Some(numbers)
}

/// Appends numbers to a message.
pub(super) fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Sends a message.
///
/// # Errors
/// The error of `sendmsg(2)`; `WouldBlock` if the other side does not take messages.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// Receives a message, which the socket has or which is waited for.
///
/// # Errors
/// The error of `recvmsg(2)`; `UnexpectedEof` if the other side has ended; `InvalidData` if the message is too long.
pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<Message> {
    let mut message = Message {
        bytes: vec![0; MAX_MESSAGE],
        descriptors: Vec::new(),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut message.bytes)];
    let received = loop {
        match recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome?,
        }
    };
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            message.descriptors.extend(descriptors);
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.bytes.truncate(received.bytes);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn messages_have_descriptors_and_an_end() {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (one, other) = socketpair(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
        let mut bytes = vec![Task::Read.byte()];
        put(&mut bytes, &[7, u64::MAX]);
        send(one.as_fd(), &bytes, &[other.as_fd(), one.as_fd()]).unwrap();
        send(one.as_fd(), &[Task::Start.byte()], &[]).unwrap();
        let message = receive(other.as_fd()).unwrap();
        assert_eq!(message.descriptors.len(), 2);
        assert_eq!(Task::of_byte(message.bytes[0]), Some(Task::Read));
        assert_eq!(numbers(&message.bytes[1..]), Some([7, u64::MAX]));
        assert_eq!(numbers::<3>(&message.bytes[1..]), None);
        drop(message);
        assert_eq!(receive(other.as_fd()).unwrap().bytes, [0]);
        drop(one);
        let error = receive(other.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
