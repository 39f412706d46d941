//! Starts a session.
//!
//! A recording that follows nothing does all that needs capabilities when it begins, and drops them. What processes have mapped up to then is attached, and
//! all processes are verified. Later the rings are drained and files are written: both need descriptors only. What is not possible any more is said:
//! files that are mapped later are counted as not read, processes that cannot be read as not checked. The names and mappings with which a next file
//! begins are those of the table of processes, because `/proc` does not show them.

use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::error::RecordError;
use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::served;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::capabilities;
use usdtrec_kernel::host::cpus::Changes;
use usdtrec_kernel::host::descendants::Orphans;
use usdtrec_kernel::host::memory::FreeMemory;
use usdtrec_kernel::host::process::Process;
use usdtrec_kernel::{KernelError, KernelOperation};
use usdtrec_watch::left_breakpoints::KernelLog;
use usdtrec_watch::shortfalls::FoundShortfall;
use usdtrec_watch::verify::Verifier;

use crate::budget::budgeting::Budgeting;
use crate::command::{RunningCommand, Workload};
use crate::output::files::{Destination, Files};
use crate::recording::draining::ProcessPace;
use crate::recording::following::Follower;
use crate::recording::hot_probes::HotProbes;
use crate::recording::losses::EventCounts;
use crate::recording::metadata::{self, Synthesised};
use crate::recording::pipeline::Pipeline;
use crate::recording::rereading::Rereading;
use crate::recording::session::Session;
use crate::recording::triggering::Triggering;
use crate::recording::watched_files::FileWatch;
use crate::recording::{Recording, interval};

impl Session {
    /// Writes the head of the trace and the records of running processes, enables the probes, and then releases the held command, if there
    /// is one.
    ///
    /// # Errors
    /// [`RecordError::Output`], [`RecordError::Write`], [`KernelError::Host`], [`RecordError::Kernel`], [`RecordError::Capabilities`].
    pub fn start(
        mut self,
        mut destination: Destination,
        command: Option<Workload>,
    ) -> Result<Recording, RecordError> {
        let mut budgeting = Budgeting::new(&self)?;
        let mut pipeline = Pipeline::new(&self, budgeting.as_ref())?;
        let window = destination.take_window_files();
        let mut files = Files::create(self.describe()?, self.options.packing(), destination)?;
        let mut running = Synthesised::default();
        if !self.starts_at_exec() {
            self.attached
                .processes
                .enable()
                .map_err(KernelError::operation(KernelOperation::Enable))?;
            running = metadata::synthesise(&self.wanted_of_running());
            pipeline.take_running(&mut files, &running.records);
        }
        files.flush()?;
        let mut triggering = Triggering::new(&self.options.triggers, window)?;
        triggering.note_idle(pipeline.stages.get());
        // If the command is not the target, the probes are enabled before it starts.
        self.attached
            .engine
            .enable()
            .map_err(KernelError::operation(KernelOperation::Enable))?;
        let started = Instant::now();
        if let Some(budgeting) = &mut budgeting {
            budgeting.begin();
        }
        files.note_start();
        self.note_ended();
        if let Some(semaphores) = &self.semaphores {
            semaphores.begin(&pipeline.processes());
        }
        let command = command.map(|command| self.released(command)).transpose()?;
        let follower = Follower::start(&self);
        let file_watch = FileWatch::start(&mut self);
        let cpus = Changes::new(self.cpus().to_vec(), self.options.engine.cpus.is_some());
        let mut recording = Recording {
            files,
            command,
            started,
            counts: EventCounts::default(),
            next_count: started,
            free_memory: FreeMemory::new(),
            next_interval: interval(&self).map(|interval| started + interval),
            alive: self.attached.processes.hangups().map(|_| true).collect(),
            pipeline,
            is_behind: false,
            snapshot: None,
            cpus,
            follower: follower.map_err(KernelError::host("new files (a thread)"))?,
            process_pace: ProcessPace::default(),
            rereading: Rereading::of_unanswered(std::mem::take(&mut running.unanswered)),
            guard_deaths: Vec::new(),
            triggering,
            log: None,
            budgeting,
            hot_probes: HotProbes::new(&self.options),
            orphans: Orphans::begin(),
            file_watch: file_watch.map_err(KernelError::host("mapped files (a thread)"))?,
            session: self,
        };
        // A process may have mapped them since the probes were selected.
        let left_out = recording
            .follower
            .take(std::mem::take(&mut running.new_files));
        recording.rereading.known.extend(running.known.keys());
        recording.rereading.leave_out(&left_out);
        recording.follower.note_unread(running.unread);
        for file in std::mem::take(&mut running.put_off) {
            recording.session.build_ids.try_again(file);
        }
        if recording.session.options.following.is_off {
            recording.end_following(&running)?;
        }
        Ok(recording)
    }
}

impl Session {
    /// Releases the held command.
    fn released(&self, command: Workload) -> Result<RunningCommand, RecordError> {
        match (command, &self.semaphores) {
            (Workload::Running(running), _) => Ok(running),
            (Workload::Held(held), None) => held.release(),
            (Workload::Held(held), Some(semaphores)) => {
                let pid = held.pid();
                semaphores.expect_stop(pid);
                held.release_stopped(|| semaphores.raise_stopped(pid))
            }
        }
    }

    /// Says which of the processes that were named had ended before their probes worked: no record shows what they mapped.
    fn note_ended(&self) {
        let Target::Processes(pids) = &self.options.target else {
            return;
        };
        for pid in pids.iter().filter_map(|pid| i32::try_from(*pid).ok()) {
            let stat = Process::open(pid).and_then(|process| process.stat());
            if stat.is_ok_and(|stat| !stat.has_ended() || stat.num_threads > 1) {
                continue;
            }
            self.shortfalls.add(FoundShortfall {
                kind: ShortfallKind::NotChecked,
                pid: Some(pid),
                processes: 1,
                found: "had ended before the probes were attached".to_owned(),
                effect: "none of its hits are recorded".to_owned(),
                ..FoundShortfall::default()
            });
        }
    }
}

/// Maximum time for attaching what was mapped meanwhile, and for verifying.
const LIMIT: Duration = Duration::from_secs(2);
/// Interval of draining the rings meanwhile.
const STEP: Duration = Duration::from_millis(1);

impl Recording {
    /// Follows nothing from now on, and drops all capabilities. `running` is what was read of the processes that run.
    ///
    /// # Errors
    /// [`RecordError::Capabilities`]; those of writing the trace.
    pub(super) fn end_following(&mut self, running: &Synthesised) -> Result<(), RecordError> {
        self.drain();
        let known = running.known.clone();
        self.session.build_ids.read_no_more(known);
        let begun = Instant::now();
        while self.follower.is_reading() && begun.elapsed() < LIMIT {
            self.pass()?;
        }
        self.follower.close();
        self.plant_found()?;
        let verifier = self.pipeline.stages.get::<Verifier>();
        let looked = verifier.map(Verifier::look_first);
        let is_looking = || {
            (looked.as_ref()).is_some_and(|looked| looked.try_recv() == Err(TryRecvError::Empty))
        };
        let begun = Instant::now();
        while is_looking() && begun.elapsed() < LIMIT {
            self.pass()?;
        }
        self.log = KernelLog::from_now();
        // Helpers would keep theirs.
        served::end();
        capabilities::drop_all().map_err(RecordError::Capabilities)?;
        // Before Linux 5.19 the kernel may need capabilities to read maps, too.
        let checked = self.session.attached.engine.check_hit_groups();
        Ok(checked.map_err(KernelError::host("maps without capabilities"))?)
    }

    fn pass(&mut self) -> Result<(), RecordError> {
        self.drain();
        self.plant_found()?;
        thread::sleep(STEP);
        Ok(())
    }
}
