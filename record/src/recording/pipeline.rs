//! The stages that records pass between the rings and the trace file: a list that is made once. A new stage is one entry of [`Pipeline::new`]; what has to
//! tell it something, or asks it, finds it by its type.
//!
//! The stage for filters that the kernel cannot evaluate is here. Its decoder and filter are those of `script`, so that both reject the same hits. Filters
//! on strings are refused here: perf events record no memory. The ids of the thread context are in samples of programs.

use std::collections::HashMap;
use std::ops::Range;

use usdtrec_attach::engine::{Attached, InexactCounts};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::filter::{self, SiteDecoder};
use usdtrec_attach::plan::call_graph::CallGraph;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_decode::Filter;
use usdtrec_watch::batch::{Batch, Heads, Record};
use usdtrec_watch::cgroups::Cgroups;
use usdtrec_watch::makers::CodeMakers;
use usdtrec_watch::process_table::{ProcessTable, RecordedProcesses};
use usdtrec_watch::stacks::StackUnwinder;
use usdtrec_watch::stage::{Stage, Stages, entry};
use usdtrec_watch::thread_contexts::ThreadContexts;
use usdtrec_watch::verify::{ExpectedFiles, Verified, Verifier};

use crate::budget::budgeting::Budgeting;
use crate::budget::stage::HotThreads;
use crate::output::files::Files;
use crate::recording::session::Session;
use crate::triggers::watch::TriggerWatch;

/// The stages of a recording.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) stages: Stages,
    heads: Heads,
}

/// Probes that were added.
pub(super) struct AddedFiles<'a> {
    /// Their indexes in [`Attached::probes`].
    pub(super) probes: &'a Range<usize>,
    /// Their files.
    pub(super) files: ExpectedFiles,
    /// Recorded processes that are known to map the files.
    pub(super) pids: &'a [i32],
}

impl Pipeline {
    /// # Errors
    /// The errors of [`UserFilter::for_attached`] and [`TriggerWatch::for_attached`].
    pub(super) fn new(
        session: &Session,
        budgeting: Option<&Budgeting>,
    ) -> Result<Self, RecordError> {
        let attached = &session.attached;
        let graph = session.options.engine.graph;
        let id_type = attached.processes.attr.attr.id_type();
        let locations = attached.engine.variable_locations().cloned();
        let triggers = &session.options.triggers.triggers;
        let verified = Verified {
            target: &session.options.target,
            probes: session.probes(),
            shortfalls: session.shortfalls.clone(),
            inherit: session.options.inherit,
            inherits_events: session.engine().inexact() == Some(InexactCounts::Inherited),
            held: attached.engine.held().cloned(),
            keeps_capabilities: !session.options.following.is_off,
        };
        let options = &session.options;
        let unwinds = graph.is_some_and(CallGraph::unwinds);
        // Another file begins with what is known if nothing can be read then.
        let is_repeated = options.following.is_off && options.switch.is_some();
        let table = ProcessTable::new(id_type, unwinds || is_repeated);
        let processes = RecordedProcesses::new(table);
        let stacks = StackUnwinder::for_attached(attached, graph, &processes);
        Ok(Self {
            // In the order in which records pass them.
            stages: Stages::new([
                // What is known of the recorded processes.
                entry(Some(processes)),
                // Counts hits for the budget, and drops those in pauses.
                entry(budgeting.map(Budgeting::stage)),
                // Counts hits of threads, sometimes.
                entry(Some(HotThreads::default())),
                // Leaves out samples that filters exclude which the kernel does not evaluate.
                entry(Some(UserFilter::for_attached(
                    attached,
                    0..attached.probes.len(),
                )?)),
                // Looks for hits that fire triggers.
                entry(TriggerWatch::for_attached(attached, triggers)?),
                // Whether probes work in processes.
                entry(Some(Verifier::start(verified))),
                // What programs say of the code that they make.
                entry(graph.map(|_| CodeMakers::start())),
                // Where processes have their thread contexts.
                entry(locations.map(ThreadContexts::new)),
                // The control groups of processes.
                entry(Some(Cgroups::new(id_type))),
                // Replaces copies of stacks by what unwinding finds in them.
                entry(stacks),
            ]),
            heads: Heads::default(),
        })
    }

    /// Takes probes that were added. Increments semaphores that the kernel counts wrong in the processes.
    ///
    /// # Errors
    /// The errors of [`UserFilter::for_attached`].
    pub(super) fn add(
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
        if let Some(known) = self.stages.get_mut::<UserFilter>() {
            known.add(filters);
        }
        if let Some(triggers) = self.stages.get_mut::<TriggerWatch>() {
            triggers.add(attached, probes)?;
        }
        if let Some(verifier) = self.stages.get_mut::<Verifier>() {
            verifier.add(files, pids);
        }
        if let Some(stacks) = self.stages.get_mut::<StackUnwinder>() {
            stacks.add(attached, probes);
        }
        if let Some(semaphores) = &session.semaphores {
            let probes = attached.probes.get(probes.clone()).unwrap_or_default();
            semaphores.add(probes, pids);
        }
        Ok(())
    }

    /// Takes the process records of what runs when the recording starts.
    pub(super) fn take_running(&mut self, files: &mut Files, running: &[u8]) {
        self.take(files, running);
        self.end(files);
        if let Some(contexts) = self.stages.get::<ThreadContexts>() {
            contexts.wait_for_running();
        }
    }

    /// The processes that map a file with attached probes, or may.
    pub(super) fn processes(&self) -> Vec<i32> {
        let verifier = self.stages.get::<Verifier>();
        verifier.map(Verifier::processes).unwrap_or_default()
    }

    /// Begins a pass: where stacks are unwound, with the process records, which are needed first. `changes` gets a copy of these.
    pub(super) fn begin(
        &mut self,
        session: &mut Session,
        files: &mut Files,
        changes: Option<&mut Vec<u8>>,
    ) {
        if self.stages.get::<StackUnwinder>().is_none() {
            return;
        }
        let now = StackUnwinder::now();
        session.drain_processes(|records| self.take(files, records), changes);
        if let Some(stacks) = self.stages.get_mut::<StackUnwinder>() {
            stacks.know(now);
        }
    }

    /// Passes records of a ring to the file.
    pub(super) fn take(&mut self, files: &mut Files, records: &[u8]) {
        let mut heads = std::mem::take(&mut self.heads);
        let batch = Batch::read(records, &mut heads);
        push(files, &self.stages.take(batch));
        self.heads = heads;
    }

    /// Ends a pass.
    pub(super) fn end(&mut self, files: &mut Files) {
        let new = self.stages.get::<Cgroups>().map(Cgroups::new_processes);
        let new: Vec<i32> = new.into_iter().flatten().collect();
        if let Some(verifier) = self.stages.get_mut::<Verifier>() {
            verifier.take_hits(new.into_iter());
        }
        self.stages.end_pass(|batch| push(files, &batch));
    }

    /// Ends the last pass: no hits come any more.
    pub(super) fn finish(&mut self, files: &mut Files) {
        self.end(files);
        self.stages.end_recording(|batch| push(files, &batch));
    }
}

fn push(files: &mut Files, batch: &Batch<'_>) {
    for records in batch.pieces() {
        files.push(records);
    }
}

/// Drops samples for which their filter is not true.
#[derive(Debug)]
pub(super) struct UserFilter {
    /// Sites with filters, by sample id.
    sites: HashMap<u64, Site>,
    left_out: u64,
}

/// A site with a filter.
#[derive(Debug)]
struct Site {
    filter: Filter,
    decoder: SiteDecoder,
}

impl UserFilter {
    /// The filters of attached probes that the kernel does not evaluate. `probes` are indexes of
    /// [`Attached::probes`].
    ///
    /// # Errors
    /// As [`filter::of_samples`].
    pub(super) fn for_attached(
        attached: &Attached,
        probes: Range<usize>,
    ) -> Result<Self, RecordError> {
        let mut sites = HashMap::new();
        let of_probes = attached.probes.iter().zip(&attached.attrs);
        let of_probes = of_probes.skip(probes.start).take(probes.len());
        let is_late = |probe: &PlannedProbe| probe.plan.raw.is_none() || probe.filter_in_recorder;
        for (probe, attrs) in of_probes.filter(|(probe, _)| is_late(probe)) {
            let thread_context = probe.plan.raw.as_ref().and_then(|raw| raw.thread_context);
            if let Some(filter) = filter::of_samples(probe, thread_context.is_some())? {
                let of_probe = SiteDecoder::of_probe(probe, attrs);
                sites.extend(of_probe.map(|(id, decoder)| {
                    let filter = filter.clone();
                    (id, Site { filter, decoder })
                }));
            }
        }
        let left_out = 0;
        Ok(Self { sites, left_out })
    }

    /// Adds the filters of further probes.
    pub(super) fn add(&mut self, others: Self) {
        self.sites.extend(others.sites);
    }
}

impl Stage for UserFilter {
    fn take<'a>(&'a mut self, mut batch: Batch<'a>) -> Batch<'a> {
        let Self { sites, left_out } = self;
        if sites.is_empty() {
            return batch;
        }
        *left_out += batch.retain(|record| lets_through(sites, record));
        batch
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn lets_through(sites: &mut HashMap<u64, Site>, record: Record<'_>) -> bool {
    let head = record.sample();
    let Some(site) = head.and_then(|head| sites.get_mut(&head.id)) else {
        return true;
    };
    let Site { filter, decoder } = site;
    let sample = decoder.parse(record.body());
    sample.is_none_or(|sample| filter::is_true(filter, decoder, &sample))
}
