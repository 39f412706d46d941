//! The perf maps of a recording that has ended.

use std::fs::File;
use std::io::Seek;
use std::time::{SystemTime, UNIX_EPOCH};

use super::clocks::{Clocks, monotonic};
use super::program::Program;
use super::view::{TmpDirs, View};

/// The perf maps (`/tmp/perf-PID.map`) of the programs with hits in a recording that has ended.
#[derive(Debug, Default)]
pub struct PerfMaps {
    programs: Vec<Program>,
    /// When recording began, ns.
    begun: u64,
}

impl PerfMaps {
    pub(super) const fn new(programs: Vec<Program>, begun: u64) -> Self {
        Self { programs, begun }
    }

    /// Opens the map of the program that a process ran at a time, ns of the trace's clock. `None` if there is none that can be trusted: a regular file
    /// of at most a gigabyte that belongs to root, to this user or to the user of the process, and that was last changed while the program ran.
    #[must_use]
    pub fn open(&self, pid: i32, time: u64) -> Option<File> {
        let mut programs = self.programs.iter().rev();
        let program = programs.find(|program| program.pid == pid && program.ran_at(time))?;
        let wanted = program.wanted(self.begun);
        if let Some(map) = &program.map {
            // Another trace of the recording may have been read with it.
            let mut map = map.try_clone().ok()?;
            map.rewind().ok()?;
            // A process with the same number may have written into it since.
            return wanted.is(&map).then_some(map);
        }
        if program.ended.is_some() {
            return program.find_map(self.begun);
        }
        // What it sees may have changed since its first hit.
        let now = View::of(pid, &mut TmpDirs::default());
        let known = program.view.as_ref().map(|view| view.start);
        match now.filter(|now| known.is_none_or(|start| start == now.start)) {
            Some(now) => {
                let mut living = Program::new(pid, program.began);
                living.view = Some(now);
                living.find_map(self.begun)
            }
            None => program.find_map(self.begun),
        }
    }

    /// Opens the map of a process that runs, if it began before `time`: the one that a trace of that time has by its pid.
    #[must_use]
    pub fn of_running(pid: i32, time: SystemTime) -> Option<File> {
        let view = View::of(pid, &mut TmpDirs::default())?;
        let time = time.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        if u128::from(view.began(Clocks::now())) > time {
            return None;
        }
        let mut program = Program::new(pid, 0);
        program.view = Some(view);
        program.find_map(monotonic())
    }
}
