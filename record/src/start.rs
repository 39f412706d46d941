//! Starts a session.

use std::io;
use std::time::Instant;

use crate::cgroups::Cgroups;
use crate::command::HeldCommand;
use crate::error::RecordError;
use crate::files::{Destination, Files};
use crate::kernel_error::KernelOperation;
use crate::makers::CodeMakers;
use crate::recording::{Recording, Takers};
use crate::session::Session;
use crate::stacks::StackUnwinder;
use crate::user_filter::UserFilter;
use crate::verify::Verifier;

impl Session {
    /// Writes the head of the trace and the records of running processes, enables the probes, and then releases the held command, if there
    /// is one.
    ///
    /// # Errors
    /// [`RecordError::Output`], [`RecordError::Write`], [`RecordError::Host`], [`RecordError::Kernel`].
    pub fn start(
        self,
        destination: Destination,
        held: Option<HeldCommand>,
    ) -> Result<Recording, RecordError> {
        let user_filter = UserFilter::of(&self.attached)?;
        let mut stacks = StackUnwinder::of(&self.attached, self.options.graph);
        let id_type = self.attached.processes.attr.attr.id_type();
        let mut makers = self.options.graph.map(|_| CodeMakers::new(id_type));
        let mut verifier = Verifier::start(&self);
        let mut files = Files::create(self.describe()?, self.options.packing(), destination)?;
        if !self.starts_at_exec() {
            self.attached.processes.enable().map_err(start_failed)?;
            let running = self.running_processes();
            verifier.take(&running);
            if let Some(stacks) = &mut stacks {
                stacks.learn(&running);
            }
            if let Some(makers) = &mut makers {
                makers.take(&running);
                makers.settle();
            }
            files.push(&running);
        }
        files.flush()?;
        // If the command is not the target, the probes are enabled before it starts.
        if !self.starts_at_exec() || self.attached.starts_by_hand() {
            self.attached.enable().map_err(start_failed)?;
        }
        let started = Instant::now();
        files.note_start();
        if let Some(semaphores) = &self.semaphores {
            semaphores.begin(&verifier.processes());
        }
        let command = held.map(|held| match &self.semaphores {
            None => held.release(),
            Some(semaphores) => {
                let pid = held.pid();
                semaphores.expect_stop(pid);
                held.release_stopped(|| semaphores.raise_stopped(pid))
            }
        });
        let command = command.transpose()?;
        let takers = Takers {
            user_filter,
            stacks,
            makers,
            cgroups: Cgroups::new(id_type),
            verifier,
        };
        Ok(Recording::new(self, files, command, started, takers))
    }
}

fn start_failed(source: io::Error) -> RecordError {
    RecordError::Kernel {
        operation: KernelOperation::Enable,
        source,
    }
}
