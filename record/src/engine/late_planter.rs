//! Attaching further probes while a recording runs: those of files that processes map later.
//!
//! Planning, loading programs and attaching take milliseconds, in which the rings must be drained. So a [`LatePlanter`] is used by another
//! thread. What it has attached, a [`LatePart`], records nothing until the loop of the recording has added it to [`Attached`] and to what else
//! knows the probes, and has enabled it.

use std::ops::Range;

use super::attached::Attached;
use super::dispatch::Engine;
use crate::error::RecordError;
use crate::select::probe::{PlannedProbe, RefusedProbe};

/// Attaches further probes while a recording runs.
#[derive(Debug)]
pub(crate) struct LatePlanter {}

/// Attached probes that are not part of the recording yet. Dropping it detaches them.
#[derive(Debug)]
pub(crate) struct LatePart {}

/// Probes that were added to a recording.
#[expect(dead_code, reason = "the recording's loop will add probes")]
#[derive(Debug)]
pub(crate) struct AddedProbes {
    /// Their indexes in [`Attached::probes`] and [`Attached::attrs`].
    pub(crate) probes: Range<usize>,
    /// The planned probes that the kernel refused.
    pub(crate) refused: Vec<RefusedProbe>,
    /// Whether they are attached to all processes of the file, although only some are recorded.
    pub(crate) is_everywhere: bool,
}

impl LatePlanter {
    /// Attaches probes of files that are not recorded yet, disabled. The part must be added to the recording before its probes are enabled.
    ///
    /// # Errors
    /// Those of opening an engine; [`RecordError::Interrupted`] if the recording ends meanwhile.
    #[expect(dead_code, reason = "the recording's loop will add probes")]
    pub(crate) fn plant(&mut self, probes: Vec<PlannedProbe>) -> Result<LatePart, RecordError> {
        drop(probes);
        Err(RecordError::NotFollowed)
    }
}

impl Attached {
    /// What attaches further probes.
    ///
    /// # Errors
    /// [`RecordError::NotFollowed`] with the perf engine.
    pub(crate) fn late_planter(&self) -> Result<LatePlanter, RecordError> {
        match &self.engine {
            Engine::Bpf(_) | Engine::Perf(_) => Err(RecordError::NotFollowed),
        }
    }

    /// Takes attached probes, which stay disabled until [`Engine::enable`].
    pub(crate) fn add(&mut self, part: LatePart) -> AddedProbes {
        drop(part);
        AddedProbes {
            probes: self.probes.len()..self.probes.len(),
            refused: Vec::new(),
            is_everywhere: false,
        }
    }
}
