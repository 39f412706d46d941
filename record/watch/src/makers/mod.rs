//! Processes that make code at run time, and the files in which they name it.
//!
//! A process names its code in `/tmp/perf-PID.map`, by its number in its own pid namespace and below its own root directory. Once it has ended, neither
//! can be looked up, and the file may be removed or replaced. Others write a jitdump, which they map executable: it is opened when the record of
//! the mapping is seen; where its file system is slow, it is tried again.
//!
//! Perf maps vanish, and pids are used again, so no reader looks for a map: the names of the addresses in stacks are
//! stored in the trace (`CodeNames::made`), by process and the time at which its program began. A map is searched for
//! these addresses line by line, so memory depends on the stacks and not on the map.
//!
//! * The recorder follows forks, `execve` and exits. After the first hit of a program that may execute memory of no
//!   file, it opens `/tmp` below the root directory of the process (at most 256 directories) and notes the number of
//!   the process in its pid namespace.
//! * When the program has ended, its map is opened there (at most 256 maps; others when recording ends). No link is
//!   followed, and nothing blocks.
//! * A map that was last changed before the program began, or after it ended, is that of another process with the same
//!   number, and is not used.
//! * A jitdump is read when recording ends. The trace gets those of its functions that are at addresses of stacks, with
//!   their times (`MadeCode::timed`); they take precedence over a perf map. No files are written for functions, unlike
//!   `perf inject --jit`.

mod clocks;
mod files;
mod jit_dump;
mod map_file;
mod program;
mod view;

use std::collections::{HashMap, HashSet};

use usdtrec_format::perf::{ProcessChange, ProcessChangeKind};

pub use self::files::MakerFiles;

use self::clocks::{ClockReadings, Clocks};
use self::jit_dump::DumpMapping;
use self::program::Program;
use self::view::TmpDirs;
use crate::batch::Batch;
use crate::limits::{
    MAX_KEPT_PROGRAMS, MAX_OPEN_MAPS, MAX_PROGRAMS, MAX_SAMPLED_PIDS, MAX_VIEWS_OF_PASS,
};
use crate::stage::Stage;

/// Follows processes that make code at run time.
#[derive(Debug)]
pub struct CodeMakers {
    clocks: ClockReadings,
    /// What each process runs.
    running: HashMap<i32, Program>,
    /// Programs that ended in this pass.
    ended: Vec<Program>,
    /// Programs that ended in the last pass: this one may have samples of theirs.
    ended_before: Vec<Program>,
    /// Programs that have ended and had samples.
    kept: Vec<Program>,
    /// Pids with samples in this pass.
    sampled: HashSet<i32>,
    /// Processes sampled in the last pass: the process records before its latest samples come in this one.
    sampled_before: HashSet<i32>,
    /// Processes that ran when recording began, and may have named their code by then. They may end before their first hits are read.
    ran: Vec<i32>,
    /// Processes that the next pass has to look at.
    unseen: Vec<i32>,
    last_sampled: i32,
    tmp: TmpDirs,
    /// Number of further maps and jitdumps that may be kept open.
    room: usize,
}

impl CodeMakers {
    /// Knows no process yet.
    pub fn start() -> Self {
        Self {
            clocks: ClockReadings::new(Clocks::now()),
            running: HashMap::new(),
            ended: Vec::new(),
            ended_before: Vec::new(),
            kept: Vec::new(),
            sampled: HashSet::new(),
            sampled_before: HashSet::new(),
            ran: Vec::new(),
            unseen: Vec::new(),
            last_sampled: 0,
            tmp: TmpDirs::default(),
            room: MAX_OPEN_MAPS,
        }
    }

    /// Ends a pass: looks at the processes with samples.
    fn settle(&mut self) {
        self.clocks.add(Clocks::now());
        self.keep_ended();
        std::mem::swap(&mut self.ended, &mut self.ended_before);
        let mut sampled = std::mem::take(&mut self.sampled_before);
        sampled.extend(&self.sampled);
        for program in &mut self.ended_before {
            program.is_sampled |= sampled.contains(&program.pid);
        }
        for pid in &sampled {
            if let Some(program) = self.running.get_mut(pid) {
                program.is_sampled = true;
            }
        }
        self.look(sampled);
        std::mem::swap(&mut self.sampled, &mut self.sampled_before);
        self.last_sampled = 0;
    }

    /// Looks at what processes see: those with samples, and those that earlier passes left.
    fn look(&mut self, mut pids: HashSet<i32>) {
        pids.extend(self.ran.drain(..).chain(self.unseen.drain(..)));
        let mut views = 0;
        for pid in pids {
            let Some(program) = self.running.get_mut(&pid) else {
                continue;
            };
            if !program.is_unseen() {
                continue;
            }
            views += 1;
            let had_dump = program.dump.is_some();
            if !had_dump && self.room == 0 {
                program.slow_dump = None;
            }
            let is_left = views > MAX_VIEWS_OF_PASS || program.look(&mut self.tmp);
            self.room -= usize::from(!had_dump && program.dump.is_some());
            if is_left && self.unseen.len() < MAX_SAMPLED_PIDS {
                self.unseen.push(pid);
            }
        }
    }

    /// The maps and jitdumps of all programs, when no more records come.
    pub fn finish(mut self) -> MakerFiles {
        self.settle();
        self.keep_ended();
        self.kept.extend(self.running.into_values());
        self.kept
            .retain(|program| program.makes && program.is_sampled);
        MakerFiles::new(self.kept, self.clocks)
    }

    /// Keeps the programs that ended in the last pass, if they had samples, with their maps.
    fn keep_ended(&mut self) {
        for mut program in self.ended_before.drain(..) {
            let is_sampled = program.is_sampled || self.sampled.contains(&program.pid);
            if !is_sampled || self.kept.len() >= MAX_KEPT_PROGRAMS {
                self.room += usize::from(program.dump.is_some());
                continue;
            }
            program.is_sampled = true;
            if self.room > 0 {
                program.open_map(&self.clocks);
                self.room -= usize::from(program.map.is_some());
            }
            self.kept.push(program);
        }
    }

    fn apply(&mut self, change: &ProcessChange<'_>) {
        let ProcessChange { pid, time, .. } = *change;
        match change.kind {
            ProcessChangeKind::Mapped(_) => self.map(change),
            ProcessChangeKind::Named { executes: true, .. } => {
                self.end(pid, time);
                if let Some(program) = self.entry(pid, time) {
                    program.makes = false;
                }
            }
            ProcessChangeKind::ProcessBegan {
                parent_pid,
                ran_already: false,
                ..
            } => {
                let parent = self.running.get(&parent_pid);
                let makes = parent.is_none_or(|parent| parent.makes);
                self.end(pid, time);
                if let Some(program) = self.entry(pid, time) {
                    program.makes = makes;
                }
            }
            // What ran before may have made code before.
            ProcessChangeKind::ThreadBegan { .. } | ProcessChangeKind::ProcessBegan { .. } => {
                self.entry(pid, 0);
            }
            ProcessChangeKind::ThreadEnded { is_last: true } => self.end(pid, time),
            ProcessChangeKind::Named { .. } | ProcessChangeKind::ThreadEnded { .. } => {}
        }
    }

    fn map(&mut self, change: &ProcessChange<'_>) {
        let pid = change.pid;
        let Some(map) = change.mapped() else {
            return;
        };
        if let Some(dump) = DumpMapping::from_mmap(map) {
            return self.open_dump(pid, dump);
        }
        if !map.is_for_code() {
            return;
        }
        if change.time == 0 && self.ran.len() < MAX_VIEWS_OF_PASS {
            self.ran.push(pid);
        }
        if let Some(program) = self.entry(pid, 0) {
            program.makes = true;
        }
    }

    /// Opens a jitdump that a process has mapped.
    fn open_dump(&mut self, pid: i32, mapping: DumpMapping) {
        let has_room = self.room > 0;
        let Some(program) = self.entry(pid, 0) else {
            return;
        };
        program.makes = true;
        let had_dump = program.dump.is_some();
        if !has_room && !had_dump {
            return;
        }
        program.open_dump(mapping);
        let is_slow = program.slow_dump.is_some();
        self.room -= usize::from(!had_dump && program.dump.is_some());
        if is_slow && self.unseen.len() < MAX_SAMPLED_PIDS {
            self.unseen.push(pid);
        }
    }

    /// The program that a process runs, which is new if none is known; `None` if there are too many.
    fn entry(&mut self, pid: i32, began: u64) -> Option<&mut Program> {
        if self.running.len() >= MAX_PROGRAMS && !self.running.contains_key(&pid) {
            return None;
        }
        let program = self.running.entry(pid);
        Some(program.or_insert_with(|| Program::new(pid, began)))
    }

    fn end(&mut self, pid: i32, time: u64) {
        if let Some(mut program) = self.running.remove(&pid)
            && program.makes
        {
            program.ended = Some(time);
            self.ended.push(program);
        }
    }
}

impl Stage for CodeMakers {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for sample in batch.records().filter_map(|record| record.sample()) {
            let pid = sample.pid;
            if pid != self.last_sampled && self.sampled.len() < MAX_SAMPLED_PIDS {
                self.last_sampled = pid;
                self.sampled.insert(pid);
            }
        }
        for change in batch.changes() {
            self.apply(change);
        }
        batch
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        self.settle();
        None
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{RawRecord, RecordType, SampleId, SampleType, Task};

    use super::*;
    use crate::batch::Heads;
    use crate::process_table::{ProcessTable, RecordedProcesses};

    /// Rings are read one after the other: a pass can have the sample of a process and the next one its beginning.
    #[test]
    fn a_process_begins_in_the_pass_after_its_sample() {
        let pid = std::process::id().cast_signed();
        let id_type = SampleType::TID | SampleType::TIME;
        let mut processes = RecordedProcesses::new(ProcessTable::new(id_type, false));
        let mut makers = CodeMakers::start();
        let mut body = vec![0; 32];
        body[16..20].copy_from_slice(&pid.to_le_bytes());
        let sample = RawRecord {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: &body,
            offset: 0,
        };
        let mut records = Vec::new();
        sample.put(&mut records);
        let mut heads = Heads::default();
        makers.take(processes.take(Batch::read(&records, &mut heads)));
        makers.settle();
        records.clear();
        let fork = Task {
            pid,
            parent_pid: 1,
            tid: pid,
            parent_tid: 1,
            time: 5,
            already_ran: false,
            id: SampleId {
                time: 5,
                ..SampleId::default()
            },
        };
        fork.encode_fork(id_type, &mut records);
        makers.take(processes.take(Batch::read(&records, &mut heads)));
        makers.settle();
        let program = makers.running.get(&pid).expect("the process");
        assert!(program.is_sampled && program.view.is_some(), "{program:?}");
        let view = program.view.as_ref().expect("what it sees");
        assert!(view.tmp.handle().is_some(), "{program:?}");
        // It is looked at once.
        makers.settle();
        assert!(makers.sampled_before.is_empty());
    }
}
