//! Adding probes to a recording that runs: those of files that processes map later.
//!
//! Planning, loading programs and attaching take milliseconds, in which the rings must be drained. So a [`PartPlanter`] is used by another
//! thread. What it has attached, a [`LatePart`], records nothing until the loop of the recording has added it to [`Attached`] and to what else
//! knows the probes, and has enabled it.

use std::ops::Range;

use usdtrec_kernel::KernelError;

use super::attached::Attached;
use super::bpf::{LatePart, LateSettings, PartPlanter};
use super::dispatch::Engine;
use super::opened::Opened;
use crate::error::RecordError;
use crate::select::probe::RefusedProbe;

/// Probes that were added to a recording.
#[derive(Debug)]
pub struct AddedProbes {
    /// Their indexes in [`Attached::probes`] and [`Attached::attrs`].
    pub probes: Range<usize>,
    /// The planned probes that the kernel refused.
    pub refused: Vec<RefusedProbe>,
    /// Whether they are attached to all processes of their files, although only some are recorded.
    pub is_everywhere: bool,
}

impl Attached {
    /// What attaches further probes; there must be one only, because it numbers them.
    ///
    /// # Errors
    /// [`RecordError::NotFollowed`] with the perf engine; [`KernelError::Host`].
    pub fn late_planter(&self, settings: LateSettings) -> Result<PartPlanter, RecordError> {
        let Engine::Bpf(bpf) = &self.engine else {
            return Err(RecordError::NotFollowed);
        };
        let planter = bpf.late_planter(settings, &self.processes.attr.attr);
        Ok(planter.map_err(KernelError::host("descriptors of maps"))?)
    }

    /// Removes what was added since there were so many probes, before it was enabled.
    pub fn take_back(&mut self, before: usize) {
        if let Engine::Bpf(bpf) = &mut self.engine {
            bpf.take_back(before);
        }
        self.probes.truncate(before);
        self.attrs.truncate(before);
    }

    /// Takes attached probes, which stay disabled until [`Engine::enable`].
    pub fn add(&mut self, part: LatePart) -> AddedProbes {
        let LatePart {
            opened,
            is_everywhere,
        } = part;
        let Opened {
            engine: part,
            probes,
            attrs,
            refused,
        } = opened;
        let before = self.probes.len();
        match &mut self.engine {
            Engine::Bpf(bpf) => bpf.add(part, before),
            // It has no planter.
            Engine::Perf(_) => drop(part),
        }
        self.probes.extend(probes);
        self.attrs.extend(attrs);
        AddedProbes {
            probes: before..self.probes.len(),
            refused,
            is_everywhere,
        }
    }
}
