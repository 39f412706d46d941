//! What records pass between the rings and the trace file.

use crate::cgroups::Cgroups;
use crate::engine::Attached;
use crate::error::RecordError;
use crate::makers::CodeMakers;
use crate::output::files::Files;
use crate::recording::session::Session;
use crate::recording::user_filter::UserFilter;
use crate::stacks::StackUnwinder;
use crate::verify::Verifier;

/// The stages, in the order in which records pass them.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Leaves out samples that filters exclude which the kernel does not evaluate.
    pub(super) user_filter: Option<UserFilter>,
    pub(super) observers: Observers,
    /// Replaces copies of stacks by what unwinding finds in them.
    pub(super) stacks: Option<StackUnwinder>,
}

/// The stages that see all records, and change none.
#[derive(Debug)]
pub(super) struct Observers {
    /// Whether probes work in processes.
    pub(super) verifier: Verifier,
    /// What programs say of the code that they make.
    pub(super) makers: Option<CodeMakers>,
    /// The control groups of processes.
    pub(super) cgroups: Cgroups,
}

impl Observers {
    fn take(&mut self, records: &[u8]) {
        self.verifier.take(records);
        if let Some(makers) = &mut self.makers {
            makers.take(records);
        }
        self.cgroups.take(records);
    }
}

impl Pipeline {
    /// # Errors
    /// Those of [`UserFilter::for_attached`].
    pub(crate) fn new(session: &Session) -> Result<Self, RecordError> {
        let attached = &session.attached;
        let graph = session.options.engine.graph;
        let id_type = attached.processes.attr.attr.id_type();
        Ok(Self {
            user_filter: UserFilter::for_attached(attached)?,
            observers: Observers {
                verifier: Verifier::start(session),
                makers: graph.map(|_| CodeMakers::new(id_type)),
                cgroups: Cgroups::new(id_type),
            },
            stacks: StackUnwinder::for_attached(attached, graph),
        })
    }

    /// Takes the process records of what runs when the recording starts.
    pub(crate) fn take_running(&mut self, files: &mut Files, running: &[u8]) {
        self.observers.take(running);
        if let Some(stacks) = &mut self.stacks {
            stacks.learn(running);
        }
        if let Some(makers) = &mut self.observers.makers {
            makers.settle();
        }
        files.push(running);
    }

    /// The processes that map a file with attached probes, or may.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.observers.verifier.processes()
    }

    /// Begins a pass: where stacks are unwound, with the process records, which are needed first. `changes` gets a copy of these.
    pub(super) fn begin(
        &mut self,
        attached: &mut Attached,
        files: &mut Files,
        changes: Option<&mut Vec<u8>>,
    ) {
        let Some(stacks) = &mut self.stacks else {
            return;
        };
        let now = StackUnwinder::now();
        let observers = &mut self.observers;
        attached.drain_processes(
            |records| {
                observers.take(records);
                stacks.learn(records);
                files.push(records);
            },
            changes,
        );
        stacks.know(now);
    }

    /// Passes records of a ring to the file.
    pub(super) fn take(&mut self, files: &mut Files, records: &[u8]) {
        let Self {
            user_filter,
            observers,
            stacks,
        } = self;
        let mut push = |records: &[u8]| {
            observers.take(records);
            match stacks {
                Some(stacks) => stacks.pass(records, |records| files.push(records)),
                None => files.push(records),
            }
        };
        match user_filter {
            Some(user_filter) => user_filter.pass(records, push),
            None => push(records),
        }
    }

    /// Ends a pass.
    pub(super) fn end(&mut self, files: &mut Files) {
        if let Some(stacks) = &mut self.stacks {
            stacks.release(|records| files.push(records));
        }
        let Observers {
            verifier,
            makers,
            cgroups,
        } = &mut self.observers;
        if let Some(makers) = makers {
            makers.settle();
        }
        verifier.take_hits(cgroups.new_processes());
        cgroups.settle(|records| files.push(records));
    }

    /// Begins another file.
    pub(super) fn begin_file(&mut self) {
        self.observers.cgroups.begin_file();
    }

    /// Verifies the processes a last time. The probes must still be attached.
    pub(super) fn look_last(&mut self) {
        self.observers.verifier.look_last();
    }

    /// Ends the last pass: no hits come any more.
    pub(super) fn finish(&mut self, files: &mut Files) {
        self.end(files);
        self.observers.cgroups.finish(|records| files.push(records));
        self.observers.verifier.finish();
    }
}
