//! Which engine to capture with.

use super::bpf::Rung;

/// How to capture. The best are tried first, and the first that works is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// With programs where the kernel allows it, else with perf events.
    #[default]
    Auto,
    /// With programs.
    Bpf,
    /// With programs, attached by uprobe_multi links.
    BpfMulti,
    /// With programs, attached to events of the uprobe PMU.
    BpfPerf,
    /// With perf events.
    Perf,
    /// With perf events on tracefs events.
    PerfTracefs,
    /// With perf events of the uprobe PMU.
    PerfPmu,
}

impl Engine {
    /// The ways to plant with programs that may be tried.
    pub(super) const fn bpf_rungs(self) -> &'static [Rung] {
        match self {
            Self::Auto | Self::Bpf => &[Rung::Multi, Rung::Event],
            Self::BpfMulti => &[Rung::Multi],
            Self::BpfPerf => &[Rung::Event],
            Self::Perf | Self::PerfTracefs | Self::PerfPmu => &[],
        }
    }
}
