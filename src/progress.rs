//! A progress bar on a terminal for work of more than a second.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use usdtrec_report::TraceSession;

/// Delay before the bar is shown.
const BAR_DELAY: Duration = Duration::from_secs(1);
/// Interval between redraws.
const REDRAW: Duration = Duration::from_millis(125);

/// Runs `work`, which reads a trace, with a progress bar on stderr.
pub(crate) fn shown<T>(session: &TraceSession, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, waiting) = channel();
        scope.spawn(move || show(session, &waiting));
        let result = work();
        // Ends the bar's thread; an unwinding panic drops it as well.
        drop(done);
        result
    })
}

/// As [`shown`], for work whose result is written to `out` at its end: the bar is cleared before the first byte.
pub(crate) fn shown_until_output<T>(
    session: &TraceSession,
    out: &mut dyn Write,
    work: impl FnOnce(&mut dyn Write) -> T,
) -> T {
    if !io::stderr().is_terminal() {
        return work(out);
    }
    std::thread::scope(|scope| {
        let ((done, waiting), (cleared, is_cleared)) = (channel(), channel());
        scope.spawn(move || {
            show(session, &waiting);
            drop(cleared);
        });
        let bar = Some(ShownBar { done, is_cleared });
        work(&mut AfterBar { out, bar })
    })
}

/// A bar that is drawn by another thread.
struct ShownBar {
    /// Dropping it clears the bar.
    done: Sender<()>,
    /// Disconnected when the bar is cleared.
    is_cleared: Receiver<()>,
}

/// A writer that clears a bar before it writes.
struct AfterBar<'a> {
    out: &'a mut dyn Write,
    bar: Option<ShownBar>,
}

impl Write for AfterBar<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(ShownBar { done, is_cleared }) = self.bar.take() {
            drop(done);
            // Returns an error when the sender is dropped; nothing is ever sent.
            let _ = is_cleared.recv();
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Draws a bar after [`BAR_DELAY`], until the sender is dropped.
fn show(session: &TraceSession, waiting: &Receiver<()>) {
    if waiting.recv_timeout(BAR_DELAY) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = bar(session.record_bytes());
    while waiting.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
        bar.set_position(session.record_bytes_read());
    }
    bar.finish_and_clear();
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template = "{bar:40} {percent}% of {total_bytes}, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
