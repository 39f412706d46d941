//! Whether another process has written to a file while it was written: who opens it is watched (inotify(7)), which costs nothing at a write, and
//! only if somebody has, what was written is read again. The descriptors of this process stay open, so that events are of others.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use usdtrec_format::trace::{BlockKind, BlockReader, Damage, Trace};

/// How long the end of a file may be held up by reading it again.
const MAX_CHECK_TIME: Duration = Duration::from_millis(300);

/// The opens of a file by other processes.
#[derive(Debug)]
pub(super) struct ForeignOpens {
    inotify: OwnedFd,
    /// Number of those that may still write.
    open: i64,
    /// Whether one that could write was closed.
    was_writable: bool,
    /// Whether some are not known.
    is_incomplete: bool,
}

/// What was found when a file was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It is as it was written.
    Same,
    /// Something else is in it.
    Changed,
    /// So many bytes are as they were written; of others that is not known.
    Partly(u64),
}

impl ForeignOpens {
    /// Watches a file; `None` if it cannot be watched, as on a kernel without inotify.
    pub(super) fn watch(file: &File) -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&inotify, path, flags).ok()?;
        Some(Self {
            inotify,
            open: 0,
            was_writable: false,
            is_incomplete: false,
        })
    }

    /// Takes what has happened, so that the kernel need not keep it.
    pub(super) fn take(&mut self) {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut bytes);
        while let Ok(event) = events.next() {
            let event = event.events();
            self.open += i64::from(event.contains(ReadFlags::OPEN));
            self.open -= i64::from(event.contains(ReadFlags::CLOSE_NOWRITE));
            self.open -= i64::from(event.contains(ReadFlags::CLOSE_WRITE));
            self.was_writable |= event.contains(ReadFlags::CLOSE_WRITE);
            self.is_incomplete |= event.contains(ReadFlags::QUEUE_OVERFLOW);
        }
    }

    /// Whether another process may have written to the file.
    pub(super) fn may_have_written(&mut self) -> bool {
        self.take();
        self.was_writable || self.is_incomplete || self.open != 0
    }

    /// Whether one that could write to it has closed it.
    pub(super) const fn was_writable(&self) -> bool {
        self.was_writable
    }
}

/// Reads a complete trace again, for [`MAX_CHECK_TIME`] at most.
///
/// # Errors
/// The error of duplicating the descriptor.
pub(super) fn check(file: &File) -> io::Result<Check> {
    let begun = Instant::now();
    let Ok(trace) = Trace::from_file(file.try_clone()?) else {
        return Ok(Check::Changed);
    };
    if trace.damage().iter().any(Damage::loses_records) || trace.uncommitted().is_some() {
        return Ok(Check::Changed);
    }
    if has_unused_bytes(file)? {
        return Ok(Check::Changed);
    }
    let mut reader = BlockReader::new();
    let mut checked = 0;
    let mut is_whole = true;
    for block in trace.blocks() {
        if begun.elapsed() >= MAX_CHECK_TIME {
            return Ok(Check::Partly(checked));
        }
        if reader.check(&trace, block).is_err() {
            return Ok(Check::Changed);
        }
        // Records that are not compressed have no checksum. Of the few that are no samples, the lengths fit.
        match block.kind {
            BlockKind::Chunk => checked += block.len,
            BlockKind::Plain if block.metadata => {}
            BlockKind::Plain | BlockKind::Stream => is_whole = false,
        }
    }
    Ok(if is_whole {
        Check::Same
    } else {
        Check::Partly(checked)
    })
}

/// Whether there is anything in the part of the head that is reserved: zeros, after a page of them, up to the data.
fn has_unused_bytes(file: &File) -> io::Result<bool> {
    /// Where the file's header has the offset of the data.
    const DATA_AT: u64 = 40;
    /// Maximum length of a head that is looked at.
    const MAX_HEAD: u64 = 1 << 20;
    const PAGE: usize = 4096;
    let mut offset = [0; 8];
    file.read_exact_at(&mut offset, DATA_AT)?;
    let mut head = vec![0; u64::from_le_bytes(offset).min(MAX_HEAD) as usize];
    file.read_exact_at(&mut head, 0)?;
    let mut zeros = 0;
    for byte in head {
        match byte {
            0 => zeros += 1,
            _ if zeros >= PAGE => return Ok(true),
            _ => zeros = 0,
        }
    }
    Ok(false)
}
