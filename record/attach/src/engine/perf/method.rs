//! The attach method of perf events.

use super::super::choice::EngineChoice;
use super::super::options::AttachRequest;
use super::super::perf_target::PerfTarget;
use super::tracefs_group::Group;
use crate::error::RecordError;
use crate::usage_error::UsageError;

/// The attach method of perf events.
#[derive(Debug)]
pub enum PerfMethod {
    /// The uprobe PMU: nothing outlives the descriptors, and nothing can be inherited.
    Pmu,
    /// tracefs events.
    Tracefs(Group),
}

impl PerfMethod {
    /// The first method that works: events of the uprobe PMU count wrong on several CPUs, so they are the last resort.
    pub fn choose(request: &AttachRequest<'_>) -> Result<Self, RecordError> {
        request.pmu.number()?;
        let (choice, inherit) = (request.options.choice, request.perf_target.inherit);
        if choice == EngineChoice::PerfPmu {
            return match inherit {
                true => Err(UsageError::PmuInherit.into()),
                false => Ok(Self::Pmu),
            };
        }
        match Group::new() {
            Ok(group) => Ok(Self::Tracefs(group)),
            Err(error) if inherit || choice == EngineChoice::PerfTracefs => Err(error),
            Err(_) => Ok(Self::Pmu),
        }
    }

    /// Number of perf events whose removal takes long: of a tracefs event, only the last perf event that is opened on it.
    pub(super) fn removals(&self, sites: usize, perf_target: &PerfTarget) -> usize {
        match self {
            Self::Tracefs(_) => sites,
            Self::Pmu => sites * perf_target.cpus.len() * perf_target.tids.len(),
        }
    }
}
