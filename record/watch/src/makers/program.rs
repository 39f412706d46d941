//! A program that a process ran.

use std::path::Path;

use rustix::process::geteuid;
use usdtrec_buildid_cache::served::Contents;

use super::clocks::{ClockReadings, Clocks};
use super::map_file::Wanted;
use super::view::{self, View};

/// A program that a process ran, from a fork or `execve(2)` to the next one, or to its end.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pid: i32,
    /// When it began, ns of the trace's clock; 0 if it was before the recording.
    pub(super) began: u64,
    /// When it ended.
    pub(super) ended: Option<u64>,
    /// Whether it may make code.
    pub(super) makes: bool,
    /// Whether hits of it were recorded.
    pub(super) is_sampled: bool,
    /// What it sees; `None` if it has not been looked at, or had ended.
    pub(super) view: Option<View>,
    /// Its map, opened after it had ended.
    pub(super) map: Option<Contents>,
    /// Its jitdump.
    pub(super) dump: Option<Contents>,
}

impl Program {
    pub(super) const fn new(pid: i32, began: u64) -> Self {
        Self {
            pid,
            began,
            ended: None,
            makes: true,
            is_sampled: false,
            view: None,
            map: None,
            dump: None,
        }
    }

    /// Opens the map if the program has one.
    pub(super) fn open_map(&mut self, clocks: &ClockReadings) {
        self.map = self.find_map(clocks);
        // The directory is not needed any more.
        if let Some(view) = &mut self.view {
            view.tmp = None;
        }
    }

    /// The map, as the process saw it when it was looked at; else in this program's `/tmp`.
    pub(super) fn find_map(&self, clocks: &ClockReadings) -> Option<Contents> {
        let wanted = self.wanted(clocks);
        match &self.view {
            Some(view) => wanted.open(view.tmp.as_ref()?),
            None => wanted.open(&view::open(Path::new("/tmp"), geteuid().as_raw())?),
        }
    }

    /// The map to look for.
    pub(super) fn wanted(&self, readings: &ClockReadings) -> Wanted {
        let times = |clocks: Clocks| {
            let began = match (self.began, &self.view) {
                (0, Some(view)) => view.began(clocks),
                // What ended before it was looked at, ran when recording began: since then nothing else has had its pid.
                (0, None) => clocks.of_trace(readings.begun().trace()),
                (began, _) => clocks.of_trace(began),
            };
            began..=self.ended.map_or(u64::MAX, |ended| clocks.of_trace(ended))
        };
        Wanted {
            number: self.view.as_ref().map_or(self.pid, |view| view.number),
            owner: self.view.as_ref().map(|view| view.owner),
            times: readings.all().chain([Clocks::now()]).map(times).collect(),
        }
    }

    /// Whether it ran at a time of the trace's clock.
    pub(super) fn ran_at(&self, time: u64) -> bool {
        (self.began..=self.ended.unwrap_or(u64::MAX)).contains(&time)
    }
}
