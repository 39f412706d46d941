//! A progress bar on a terminal, for what takes more than a second.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use usdtrec_report::Session;

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the bar is redrawn.
const REDRAW: Duration = Duration::from_millis(125);

/// Does work on a trace, and shows on stderr how far it is.
pub(crate) fn shown<T>(session: &Session, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar(session.record_bytes());
            while waiting.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(session.record_bytes_read());
            }
            bar.finish_and_clear();
        });
        let result = work();
        // Ends the waiting, also where a panic comes before.
        drop(done);
        result
    })
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template = "{bar:40} {percent}% of {total_bytes}, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
