//! Where processes name the code that they made at run time, as `report` reads it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::SystemTime;

use usdtrec_record::MakerFiles;
use usdtrec_report::MadeNames;

/// The files of a recording that has ended.
pub(super) struct OfRecording<'a>(pub(super) &'a MakerFiles);

/// The perf maps of processes that run, for a trace that was written at this time.
pub(crate) struct OfRunning(pub(crate) SystemTime);

impl MadeNames for OfRecording<'_> {
    fn perf_map(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>> {
        reader(self.0.perf_map(pid, time))
    }

    fn jit_dump(&self, pid: i32, time: u64) -> Option<Box<dyn BufRead>> {
        reader(self.0.jit_dump(pid, time))
    }
}

impl MadeNames for OfRunning {
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
