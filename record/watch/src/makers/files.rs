//! The perf maps and jitdumps of a recording that has ended.

use std::fs::File;
use std::io::Seek;
use std::time::{SystemTime, UNIX_EPOCH};

use usdtrec_buildid_cache::served::Contents;

use super::clocks::{ClockReadings, Clocks};
use super::program::Program;
use super::view::{TmpDirs, View};
use crate::limits::MAX_COPIED_MAP;

/// The perf maps (`/tmp/perf-PID.map`) and jitdumps of the programs with hits in a recording that has ended.
#[derive(Debug, Default)]
pub struct MakerFiles {
    programs: Vec<Program>,
    clocks: ClockReadings,
}

impl MakerFiles {
    pub(super) const fn new(programs: Vec<Program>, clocks: ClockReadings) -> Self {
        Self { programs, clocks }
    }

    /// Opens the map of the program that a process ran at a time, ns of the trace's clock. `None` if there is none that can be trusted: a regular file
    /// that belongs to root, to this user or to the user of the process, and that was last changed while the program ran.
    #[must_use]
    pub fn perf_map(&self, pid: i32, time: u64) -> Option<File> {
        let program = self.program(pid, time)?;
        let wanted = program.wanted(&self.clocks);
        if let Some(map) = &program.map {
            // A process with the same number may have written into it since.
            return wanted.is(map).then(|| again(map)).flatten();
        }
        if program.ended.is_some() {
            return again(&program.find_map(&self.clocks).ok()??);
        }
        // What it sees may have changed since its first hit.
        let now = View::for_process(pid, &mut TmpDirs::default());
        let known = program.view.as_ref().map(|view| view.start);
        let is_it = |now: &View| known.is_none_or(|start| start == now.start);
        match now.filter(|now| now.tmp.handle().is_some() && is_it(now)) {
            Some(now) => {
                let mut living = Program::new(pid, program.began);
                living.view = Some(now);
                again(&living.find_map(&self.clocks).ok()??)
            }
            None => again(&program.find_map(&self.clocks).ok()??),
        }
    }

    /// Opens the jitdump that the program that a process ran at a time, ns of the trace's clock, mapped last.
    #[must_use]
    pub fn jit_dump(&self, pid: i32, time: u64) -> Option<File> {
        let program = self.program(pid, time)?;
        match &program.slow_dump {
            Some(slow) => again(&slow.open(pid).ok()??),
            None => again(program.dump.as_ref()?),
        }
    }

    fn program(&self, pid: i32, time: u64) -> Option<&Program> {
        let mut programs = self.programs.iter().rev();
        programs.find(|program| program.pid == pid && program.ran_at(time))
    }

    /// Opens the map of a process that runs, if it began before `time`: the one that a trace of that time has by its pid.
    #[must_use]
    pub fn perf_map_of_running(pid: i32, time: SystemTime) -> Option<File> {
        let view = View::for_process(pid, &mut TmpDirs::default())?;
        let time = time.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        if u128::from(view.began(Clocks::now())) > time {
            return None;
        }
        let mut program = Program::new(pid, 0);
        program.view = Some(view);
        again(
            &program
                .find_map(&ClockReadings::new(Clocks::now()))
                .ok()??,
        )
    }
}

/// An open file from its beginning: another trace of the recording may have been read with it.
fn again(contents: &Contents) -> Option<File> {
    let mut file = contents.local_copy(MAX_COPIED_MAP).ok()?;
    file.rewind().ok()?;
    Some(file)
}
