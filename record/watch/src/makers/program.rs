//! A program that a process ran.

use std::io;
use std::path::Path;

use usdtrec_buildid_cache::served::Contents;

use super::clocks::{ClockReadings, Clocks};
use super::jit_dump::DumpMapping;
use super::map_file::Wanted;
use super::view::{self, Tmp, TmpDirs, View};
use crate::limits::MAX_TRIES_OF_TMP;

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
    /// Number of passes that have found its `/tmp` or its jitdump slow.
    slow_passes: u32,
    /// Its map, opened after it had ended.
    pub(super) map: Option<Contents>,
    /// Its jitdump.
    pub(super) dump: Option<Contents>,
    /// A jitdump whose file system did not answer in the time that the loop has.
    pub(super) slow_dump: Option<DumpMapping>,
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
            slow_passes: 0,
            map: None,
            dump: None,
            slow_dump: None,
        }
    }

    /// Whether the next pass has to look at it.
    pub(super) fn is_unseen(&self) -> bool {
        self.makes && (self.lacks_view() || self.slow_dump.is_some())
    }

    fn lacks_view(&self) -> bool {
        let is_slow = |view: &View| matches!(view.tmp, Tmp::Slow);
        self.view.as_ref().is_none_or(is_slow)
    }

    /// Looks at what the process sees. A slow file system is tried again after 1, 3, 7 … passes. Returns whether a later pass has to.
    pub(super) fn look(&mut self, dirs: &mut TmpDirs) -> bool {
        if (self.slow_passes + 1).is_power_of_two() {
            if self.lacks_view()
                && let Some(view) = View::for_process(self.pid, dirs)
            {
                self.view = Some(view);
            }
            if let Some(mapping) = self.slow_dump.take() {
                self.open_dump(mapping);
            }
        }
        let is_slow = self.view.is_some() && self.is_unseen();
        self.slow_passes += u32::from(is_slow);
        is_slow && self.slow_passes < 1 << MAX_TRIES_OF_TMP
    }

    /// Opens a jitdump, in place of an earlier one. A later pass tries a slow one again.
    pub(super) fn open_dump(&mut self, mapping: DumpMapping) {
        match mapping.open(self.pid) {
            Ok(None) => {}
            Ok(dump) => (self.dump, self.slow_dump) = (dump, None),
            Err(_slow) => self.slow_dump = Some(mapping),
        }
    }

    /// Opens the map if the program has one.
    pub(super) fn open_map(&mut self, clocks: &ClockReadings) {
        let found = self.find_map(clocks);
        // Of a slow directory the map is opened when recording ends.
        if found.is_ok()
            && let Some(view) = &mut self.view
        {
            view.tmp = Tmp::Not;
        }
        self.map = found.ok().flatten();
    }

    /// The map, as the process saw it when it was looked at; else in this program's `/tmp`.
    ///
    /// # Errors
    /// `TimedOut` if the file system of the directory does not answer.
    pub(super) fn find_map(&self, clocks: &ClockReadings) -> io::Result<Option<Contents>> {
        let wanted = self.wanted(clocks);
        let own;
        let tmp = match &self.view {
            Some(view) => view.tmp.handle(),
            None => {
                own = view::open(Path::new("/tmp"), std::process::id().cast_signed());
                own.as_ref().ok()
            }
        };
        tmp.map_or(Ok(None), |tmp| wanted.open(tmp))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_slow_directory_is_tried_again_after_ever_more_passes() {
        let own = std::process::id().cast_signed();
        for slow_passes in 0..1 << MAX_TRIES_OF_TMP {
            let mut dirs = TmpDirs::default();
            let mut program = Program::new(own, 0);
            program.view = View::for_process(own, &mut dirs);
            let view = program.view.as_mut().expect("this process");
            view.tmp = Tmp::Slow;
            program.slow_passes = slow_passes;
            let is_left = program.look(&mut dirs);
            let is_tried = [0, 1, 3, 7, 15, 31, 63].contains(&slow_passes);
            assert_eq!(program.is_unseen(), !is_tried, "{slow_passes}");
            assert_eq!(is_left, !is_tried, "{slow_passes}");
        }
    }

    #[test]
    fn a_slow_jitdump_is_opened_later() {
        let own = std::process::id().cast_signed();
        let mut dirs = TmpDirs::default();
        let mut program = Program::new(own, 0);
        program.view = View::for_process(own, &mut dirs);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("jit-1.dump");
        std::fs::write(&path, "JiTD").expect("a dump");
        let inode = std::fs::metadata(&path).expect("the dump").ino();
        program.slow_dump = Some(DumpMapping::for_file(&path, inode));
        assert!(program.is_unseen());
        program.slow_passes = 2;
        assert!(program.look(&mut dirs) && program.dump.is_none());
        assert!(!program.look(&mut dirs) && program.dump.is_some());
        assert!(!program.is_unseen());
    }

    /// The number of a process that has ended is kept.
    #[test]
    fn what_was_seen_of_an_ended_process_stays() {
        let mut dirs = TmpDirs::default();
        let own = std::process::id().cast_signed();
        let mut program = Program::new(i32::MAX, 0);
        program.view = View::for_process(own, &mut dirs);
        program.view.as_mut().expect("this process").tmp = Tmp::Slow;
        assert!(program.look(&mut dirs));
        assert!(program.view.is_some_and(|view| view.number == own));
    }
}
