//! Writing while the next samples are worked on.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use usdtrec_trace::pool::Pool;

use crate::text::buffer::Text;

/// Buffers that wait to be written at most.
const WAITING: usize = 64;

/// A thread that writes buffers in the order in which they come.
pub(crate) struct Writer<'scope> {
    queue: SyncSender<Text>,
    thread: ScopedJoinHandle<'scope, io::Result<()>>,
}

/// The writer has ended; [`Writer::finish`] says why.
pub(crate) struct WriterClosed;

impl<'scope> Writer<'scope> {
    /// Starts the thread. Buffers that are written go to `spare`.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        out: &'env mut (dyn Write + Send),
        spare: &'env Pool<Text>,
    ) -> Self {
        let (queue, buffers) = sync_channel::<Text>(WAITING);
        let thread = scope.spawn(move || {
            for mut buffer in buffers {
                out.write_all(buffer.as_slice())?;
                buffer.clear();
                spare.put(buffer);
            }
            out.flush()
        });
        Self { queue, thread }
    }

    /// Hands a buffer over; waits while too many are not yet written.
    pub(crate) fn write(&mut self, buffer: Text) -> Result<(), WriterClosed> {
        self.queue.send(buffer).map_err(|_| WriterClosed)
    }

    /// Waits until all is written.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.queue);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writing thread ended unexpectedly")))
    }
}
