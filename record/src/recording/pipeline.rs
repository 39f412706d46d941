//! The stages that records pass between the rings and the trace file.

use std::ops::Range;

use usdtrec_attach::engine::InexactCounts;
use usdtrec_attach::error::RecordError;
use usdtrec_attach::plan::call_graph::CallGraph;
use usdtrec_watch::batch::{Batch, Heads};
use usdtrec_watch::cgroups::Cgroups;
use usdtrec_watch::makers::CodeMakers;
use usdtrec_watch::process_table::{ProcessTable, RecordedProcesses};
use usdtrec_watch::stacks::StackUnwinder;
use usdtrec_watch::stage::{Stage, Stages};
use usdtrec_watch::thread_contexts::ThreadContexts;
use usdtrec_watch::verify::{ExpectedFiles, Verified, Verifier};

use crate::budget::{HotThreads, PauseStage};
use crate::output::files::Files;
use crate::recording::session::Session;
use crate::recording::user_filter::UserFilter;
use crate::triggers::TriggerWatch;

/// The stages of a recording.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// What is known of the recorded processes.
    processes: RecordedProcesses,
    /// Leaves out samples that filters exclude which the kernel does not evaluate.
    user_filter: Option<UserFilter>,
    /// Looks for hits that fire triggers.
    pub(super) triggers: Option<TriggerWatch>,
    /// Whether probes work in processes.
    pub(super) verifier: Verifier,
    /// What programs say of the code that they make.
    pub(super) makers: Option<CodeMakers>,
    /// Where processes have their thread contexts.
    thread_contexts: Option<ThreadContexts>,
    /// The control groups of processes.
    cgroups: Cgroups,
    /// Replaces copies of stacks by what unwinding finds in them.
    pub(super) stacks: Option<StackUnwinder>,
    /// Counts hits for the budget, and drops those in pauses.
    pub(super) pauses: Option<PauseStage>,
    /// Counts hits of threads, sometimes.
    pub(super) hot_threads: Option<HotThreads>,
    heads: Heads,
}

/// Probes that were added.
pub(crate) struct AddedFiles<'a> {
    /// Their indexes in [`Attached::probes`].
    pub(super) probes: &'a Range<usize>,
    /// Their files.
    pub(super) files: ExpectedFiles,
    /// Recorded processes that are known to map the files.
    pub(super) pids: &'a [i32],
}

impl Pipeline {
    /// # Errors
    /// Those of [`UserFilter::for_attached`] and [`TriggerWatch::for_attached`].
    pub(crate) fn new(session: &Session) -> Result<Self, RecordError> {
        let attached = &session.attached;
        let graph = session.options.engine.graph;
        let id_type = attached.processes.attr.attr.id_type();
        let locations = attached.engine.variable_locations().cloned();
        let options = &session.options;
        let unwinds = graph.is_some_and(CallGraph::unwinds);
        // Another file begins with what is known if nothing can be read then.
        let is_repeated = options.following.is_off && options.switch.is_some();
        let table = ProcessTable::new(id_type, unwinds || is_repeated);
        let processes = RecordedProcesses::new(table);
        Ok(Self {
            thread_contexts: locations.map(ThreadContexts::new),
            user_filter: UserFilter::for_attached(attached, 0..attached.probes.len())?,
            triggers: TriggerWatch::for_attached(attached, &session.options.triggers.triggers)?,
            verifier: Verifier::start(Verified {
                target: &session.options.target,
                probes: session.probes(),
                shortfalls: session.shortfalls.clone(),
                inherit: session.options.inherit,
                inherits_events: session.inexact() == Some(InexactCounts::Inherited),
                held: attached.engine.held().cloned(),
                keeps_capabilities: !session.options.following.is_off,
            }),
            makers: graph.map(|_| CodeMakers::start()),
            cgroups: Cgroups::new(id_type),
            stacks: StackUnwinder::for_attached(attached, graph, &processes),
            processes,
            pauses: None,
            hot_threads: None,
            heads: Heads::default(),
        })
    }

    /// The stages, in the order in which records pass them.
    fn stages(&mut self) -> Stages<'_> {
        Stages::new([
            Some(&mut self.processes),
            optional(&mut self.pauses),
            optional(&mut self.hot_threads),
            optional(&mut self.user_filter),
            optional(&mut self.triggers),
            Some(&mut self.verifier),
            optional(&mut self.makers),
            optional(&mut self.thread_contexts),
            Some(&mut self.cgroups),
            optional(&mut self.stacks),
        ])
    }

    /// Takes probes that were added. Increments semaphores that the kernel counts wrong in the processes.
    ///
    /// # Errors
    /// Those of [`UserFilter::for_attached`].
    pub(crate) fn add(
        &mut self,
        session: &Session,
        added: AddedFiles<'_>,
    ) -> Result<(), RecordError> {
        let AddedFiles {
            probes,
            files,
            pids,
        } = added;
        let attached = &session.attached;
        let filters = UserFilter::for_attached(attached, probes.clone())?;
        match (&mut self.user_filter, filters) {
            (Some(known), Some(filters)) => known.add(filters),
            (none, Some(filters)) => *none = Some(filters),
            (_, None) => {}
        }
        if let Some(triggers) = &mut self.triggers {
            triggers.add(attached, probes)?;
        }
        self.verifier.add(files, pids);
        if let Some(stacks) = &mut self.stacks {
            stacks.add(attached, probes);
        }
        if let Some(semaphores) = &session.semaphores {
            let probes = attached.probes.get(probes.clone()).unwrap_or_default();
            semaphores.add(probes, pids);
        }
        Ok(())
    }

    /// Takes the process records of what runs when the recording starts.
    pub(crate) fn take_running(&mut self, files: &mut Files, running: &[u8]) {
        self.take(files, running);
        self.end(files);
        if let Some(contexts) = &self.thread_contexts {
            contexts.wait_for_running();
        }
    }

    /// The processes that map a file with attached probes, or may.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.verifier.processes()
    }

    /// What is known of the processes that live.
    pub(super) fn known_processes(&self) -> ProcessTable {
        self.processes.table().copy()
    }

    /// Begins a pass: where stacks are unwound, with the process records, which are needed first. `changes` gets a copy of these.
    pub(super) fn begin(
        &mut self,
        session: &mut Session,
        files: &mut Files,
        changes: Option<&mut Vec<u8>>,
    ) {
        if self.stacks.is_none() {
            return;
        }
        let now = StackUnwinder::now();
        session.drain_processes(|records| self.take(files, records), changes);
        if let Some(stacks) = &mut self.stacks {
            stacks.know(now);
        }
    }

    /// Passes records of a ring to the file.
    pub(super) fn take(&mut self, files: &mut Files, records: &[u8]) {
        let mut heads = std::mem::take(&mut self.heads);
        let batch = Batch::read(records, &mut heads);
        push(files, &self.stages().take(batch));
        self.heads = heads;
    }

    /// Ends a pass.
    pub(super) fn end(&mut self, files: &mut Files) {
        self.verifier.take_hits(self.cgroups.new_processes());
        self.stages().end_pass(|batch| push(files, &batch));
    }

    /// Begins another file.
    pub(super) fn begin_file(&mut self) {
        self.stages().begin_file();
    }

    /// Verifies the processes a last time. The probes must still be attached.
    pub(super) fn look_last(&mut self) {
        self.verifier.look_last();
    }

    /// Ends the last pass: no hits come any more.
    pub(super) fn finish(&mut self, files: &mut Files) {
        self.end(files);
        self.stages().end_recording(|batch| push(files, &batch));
    }

    /// Number of samples that stages have dropped on purpose.
    pub(super) fn left_out(&mut self) -> u64 {
        self.stages().left_out()
    }
}

/// A stage that not every recording has.
fn optional<S: Stage>(stage: &mut Option<S>) -> Option<&mut dyn Stage> {
    stage.as_mut().map(|stage| stage as &mut dyn Stage)
}

fn push(files: &mut Files, batch: &Batch<'_>) {
    for records in batch.pieces() {
        files.push(records);
    }
}
