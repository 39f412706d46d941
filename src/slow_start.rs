//! What the start of a recording waits for, if that takes more than two seconds, and which file has kept it waiting the longest.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use usdtrec_buildid_cache::served::awaited_file;
use usdtrec_format::escape::shown;

use crate::terminal::say;

/// How long something may take before it is said.
const SAY_AFTER: Duration = Duration::from_secs(2);
/// What is waited for when probes are attached.
pub(crate) const STARTING: &str = "names and files of running processes";

/// Does work, and says what it is if it takes long.
pub(crate) fn waiting_for<T>(what: &str, is_quiet: bool, work: impl FnOnce() -> T) -> T {
    match is_quiet {
        true => work(),
        false => {
            let said = || {
                let file =
                    awaited_file().map(|file| format!("; longest so far for {}", shown(&file)));
                let file = file.unwrap_or_default();
                say(format_args!("usdtrec: waiting for {what}{file}"));
            };
            watched(SAY_AFTER, said, work)
        }
    }
}

/// Does work, and calls `late` if it takes longer than a time.
fn watched<T>(time: Duration, late: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        let watch = move || {
            if waiting.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                late();
            }
        };
        // Without a thread nothing is said.
        let _ = thread::Builder::new().spawn_scoped(scope, watch);
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said_while_it_does() {
        let (said, heard) = channel();
        let late = move || said.send(()).expect("it is waited for");
        let work = || heard.recv();
        assert_eq!(watched(Duration::ZERO, late, work), Ok(()));
        let (said, heard) = channel();
        let late = move || said.send(()).expect("it is heard");
        assert_eq!(watched(Duration::MAX, late, || 7), 7);
        assert!(heard.try_recv().is_err());
    }
}
