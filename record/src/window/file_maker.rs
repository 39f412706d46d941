//! A thread that makes files of copies of a window, one after the other, while recording continues.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::FiredTrigger;

use super::content::WindowContent;
use super::files::{NewWindowFile, WindowFileTime, WindowFiles, WrittenWindow};
use crate::output::sync::DiskSync;
use crate::triggers::pace::DueTrigger;

/// Interval at which it is looked whether waiting is to end.
const STEP: Duration = Duration::from_millis(100);

/// Makes files.
#[derive(Debug)]
pub(crate) struct FileMaker {
    jobs: Sender<WindowJob>,
    made: Receiver<MadeFile>,
    /// Whether a file is being made.
    is_busy: bool,
}

/// A file to be made.
#[derive(Debug)]
struct WindowJob {
    content: WindowContent,
    due: DueTrigger,
}

/// A file that was made, or could not be.
#[derive(Debug)]
pub(crate) struct MadeFile {
    pub(crate) fired: FiredTrigger,
    pub(crate) made: Result<WrittenWindow, RecordError>,
    /// It is on its way to the disk.
    pub(crate) sync: Option<DiskSync>,
}

impl FileMaker {
    /// Starts the thread. It writes a byte to `wake` when a file is made.
    ///
    /// # Errors
    /// The error of the system call.
    pub(crate) fn start(mut files: WindowFiles, wake: UnixStream) -> io::Result<Self> {
        let (jobs, asked) = channel::<WindowJob>();
        let (done, made) = channel();
        std::thread::Builder::new()
            .name("window".to_owned())
            .spawn(move || {
                for WindowJob { content, due } in asked {
                    let fired = due.fired.clone();
                    let file = make_caught(&mut files, content, due);
                    let (made, sync) = match file {
                        Ok((written, sync)) => (Ok(written), Some(sync)),
                        Err(error) => (Err(error), None),
                    };
                    if done.send(MadeFile { fired, made, sync }).is_err() {
                        return;
                    }
                    // A full stream wakes the recorder as well.
                    let _ = io::Write::write(&mut &wake, &[1]);
                }
            })?;
        Ok(Self {
            jobs,
            made,
            is_busy: false,
        })
    }

    /// Whether a file is being made.
    pub(crate) const fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Begins to make a file.
    pub(crate) fn make(&mut self, content: WindowContent, due: DueTrigger) {
        self.is_busy = true;
        // The thread ends only after this.
        let _ = self.jobs.send(WindowJob { content, due });
    }

    /// The next file that was made.
    pub(crate) fn next(&mut self) -> Option<MadeFile> {
        let made = self.made.try_recv().ok()?;
        self.is_busy = false;
        Some(made)
    }

    /// Waits for the file that is being made, if one is, or until `stops`.
    pub(crate) fn wait(&mut self, stops: impl Fn() -> bool) -> Option<MadeFile> {
        while self.is_busy && !stops() {
            if let Ok(made) = self.made.recv_timeout(STEP) {
                self.is_busy = false;
                return Some(made);
            }
        }
        None
    }
}

/// Makes a file. If that panics, as a new file's own code may, the next one is made all the same.
fn make_caught(
    files: &mut WindowFiles,
    content: WindowContent,
    due: DueTrigger,
) -> Result<(WrittenWindow, DiskSync), RecordError> {
    let made = catch_unwind(AssertUnwindSafe(|| make(files, content, due)));
    made.unwrap_or_else(|_| {
        Err(RecordError::Output(io::Error::other(
            "the code that writes files panicked",
        )))
    })
}

/// Makes a file.
fn make(
    files: &mut WindowFiles,
    content: WindowContent,
    due: DueTrigger,
) -> Result<(WrittenWindow, DiskSync), RecordError> {
    let begun = Instant::now();
    let DueTrigger { fired, ends, .. } = due;
    let wall_ns = content.wall_ns(fired.time_ns);
    let window = Duration::from_nanos(content.until.saturating_sub(content.began));
    let shortened = content.shortened;
    let mut new = (files.create)(WindowFileTime { wall_ns, ends }).map_err(RecordError::Output)?;
    let handle = new.handle().map_err(RecordError::Output)?;
    let totals = content.write(handle, &fired)?;
    let (path, handle) = named(new).map_err(RecordError::Output)?;
    let written = WrittenWindow {
        path,
        fired,
        wall_ns,
        samples: totals.samples,
        bytes: totals.file_bytes,
        window,
        shortened,
        took: begun.elapsed(),
    };
    Ok((written, DiskSync::start(handle)))
}

fn named(mut new: Box<dyn NewWindowFile>) -> io::Result<(PathBuf, File)> {
    let handle = new.handle()?;
    Ok((new.finish()?, handle))
}

#[cfg(test)]
mod tests {
    use usdtrec_format::trace::{ClockReading, Compression, TraceInfo};

    use super::*;
    use crate::window::files::WindowLimits;
    use crate::window::writer::WindowWriter;

    /// Code that panics while it makes a file: that is what came of the trigger, and the next one is served.
    #[test]
    fn a_panic_is_an_error_of_its_file() {
        let mut times = 0;
        let files = WindowFiles::new(
            move |_| {
                times += 1;
                assert!(times > 1, "the first one panics");
                Err(io::Error::other("no space"))
            },
            None,
        );
        let (_woken, wake) = UnixStream::pair().expect("a pair");
        let mut maker = FileMaker::start(files, wake).expect("a thread");
        for expected in ["the code that writes files panicked", "no space"] {
            let limits = WindowLimits::new(Duration::from_secs(1), 1 << 20);
            let writer = WindowWriter::new(limits, &TraceInfo::default(), Compression::None);
            let now = ClockReading {
                clock_ns: 1,
                wall_ns: 1,
                error_ns: 0,
                wall_quality: None,
            };
            let due = DueTrigger {
                fired: FiredTrigger::default(),
                ends: false,
                due: 0,
            };
            maker.make(writer.expect("a window").content(now), due);
            assert!(maker.is_busy());
            let made = maker.wait(|| false).expect("an outcome");
            let error = made.made.expect_err("no file");
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
                error.source()
            });
            let text: Vec<String> = causes.map(ToString::to_string).collect();
            assert!(text.join(": ").contains(expected), "{text:?}");
            assert!(!maker.is_busy());
        }
        assert!(maker.next().is_none());
    }
}
