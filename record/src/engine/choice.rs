//! Which engine to capture with.

use super::bpf::AttachMethod;

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
    pub(super) const fn bpf_attach_methods(self) -> &'static [AttachMethod] {
        match self {
            Self::Auto | Self::Bpf => &[AttachMethod::Multi, AttachMethod::Event],
            Self::BpfMulti => &[AttachMethod::Multi],
            Self::BpfPerf => &[AttachMethod::Event],
            Self::Perf | Self::PerfTracefs | Self::PerfPmu => &[],
        }
    }
}
