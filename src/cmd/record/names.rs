//! The names of functions in stacks, what is inlined there, the lines, and strings in files, which are stored in the trace when recording has ended.
//!
//! This takes at most ten seconds for all files, and ends at a signal. If names are missing, the recorder says so.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use usdtrec_format::CodeNames;
use usdtrec_format::escape::shown;
use usdtrec_format::trace::append_code_names;
use usdtrec_record::{FileElsewhere, MakerFiles, Signals};
use usdtrec_report::{FileView, MadeNames, Sources, StackNames, TraceSession};

use crate::cmd::selection::cache_dir;
use crate::output;
use crate::terminal::say;

/// Maximum number of bytes of copies.
const MAX_COPIED: u64 = 1 << 30;
/// Time for all files of a recording.
const TIME: Duration = Duration::from_secs(10);
/// The same without stacks: strings alone are looked for.
const TIME_OF_STRINGS: Duration = Duration::from_secs(2);

/// Stores names of functions, and strings, in finished traces.
pub(super) struct NameStore<'a> {
    /// The build-id cache, if there is one.
    pub(super) buildid_dir: Option<&'a Path>,
    /// Files in stacks that are not those at their paths.
    pub(super) readable: &'a [ReadableFile],
    pub(super) maker_files: &'a MakerFiles,
    /// Whether the trace has stacks.
    pub(super) has_stacks: bool,
    pub(super) signals: &'a Signals,
}

impl NameStore<'_> {
    /// Stores the names in each trace; says which of them have none, or not all.
    pub(super) fn store(&self, traces: &[PathBuf]) {
        let begun = Instant::now();
        for trace in traces {
            // Device files, and those of --switch-max-files that are removed already.
            if !trace.metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let what = match self.store_in(trace, begun) {
                Ok(false) => continue,
                Ok(true) if !self.has_stacks => {
                    "some strings of files are not in the trace: there was no time to look them up".to_owned()
                }
                Ok(true) => "some names of functions, inlined functions or lines are not in the trace: there was no time to look them up".to_owned(),
                Err(error) => format!("names of functions and strings of files are not in the trace: {error}"),
            };
            say(format_args!(
                "usdtrec: {}: {what}; to see them on another host, copy the recorded programs there (usdtrec buildid-cache --add FILE)",
                shown(trace)
            ));
        }
    }

    /// Returns whether names are missing.
    fn store_in(&self, trace: &Path, begun: Instant) -> anyhow::Result<bool> {
        let file = output::existing(trace)?;
        let sources = Sources {
            buildid_dir: cache_dir(self.buildid_dir),
            views: self.readable.iter().map(|file| file.view.clone()).collect(),
            ..Sources::default()
        };
        let session = TraceSession::from_file(file.try_clone()?, trace, &sources)?;
        let made_names = RecordingNames(self.maker_files);
        let time = if self.has_stacks {
            TIME
        } else {
            TIME_OF_STRINGS
        };
        let found = StackNames::find(&session, &made_names, self.has_stacks, || {
            begun.elapsed() >= time || self.signals.has_arrived()
        })?;
        if self.has_stacks || found.names != CodeNames::default() {
            append_code_names(&file, &found.names)?;
        }
        Ok(found.incomplete)
    }
}

/// A file that this process can read.
pub(super) struct ReadableFile {
    view: FileView,
    /// Open as long as the view is needed.
    _file: File,
}

/// The files, of those that helpers read copies, as far as there is room for them.
pub(super) fn readable(files: &[FileElsewhere]) -> Vec<ReadableFile> {
    let mut room = MAX_COPIED;
    let readable = |found: &FileElsewhere| {
        let file = found.contents.local_copy(room).ok()?;
        if found.contents.local().is_none() {
            room = room.saturating_sub(file.metadata().ok()?.len());
        }
        Some(ReadableFile {
            view: FileView {
                path: found.path.clone(),
                build_id: found.build_id,
                at: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            },
            _file: file,
        })
    };
    files.iter().filter_map(readable).collect()
}

/// The files of a recording that has ended.
struct RecordingNames<'a>(&'a MakerFiles);

/// The perf maps of processes that run, for a trace that was written at this time.
pub(crate) struct RunningNames(pub(crate) SystemTime);

impl MadeNames for RecordingNames<'_> {
    fn perf_map(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>> {
        reader(self.0.perf_map(pid, time))
    }

    fn jit_dump(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>> {
        reader(self.0.jit_dump(pid, time))
    }
}

impl MadeNames for RunningNames {
    fn perf_map(&self, pid: i32, _time: u64) -> Option<Box<dyn BufRead>> {
        reader(MakerFiles::perf_map_of_running(pid, self.0))
    }

    fn jit_dump(&self, _pid: i32, _time: u64) -> Option<Box<dyn BufRead>> {
        None
    }
}

fn reader(file: Option<File>) -> Option<Box<dyn BufRead>> {
    Some(Box::new(BufReader::new(file?)))
}
