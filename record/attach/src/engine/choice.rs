//! The choice of an engine.

use super::bpf::AttachMethod;

/// An engine, and optionally its attach method. If several are allowed, the best ones are tried first, and the first that works is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Programs if the kernel allows them, else perf events.
    #[default]
    Auto,
    /// Programs.
    Bpf,
    /// Programs, attached by uprobe_multi links.
    BpfMulti,
    /// Programs, attached to events of the uprobe PMU.
    BpfPerf,
    /// Perf events.
    Perf,
    /// Perf events on tracefs events.
    PerfTracefs,
    /// Perf events of the uprobe PMU.
    PerfPmu,
}

impl EngineChoice {
    /// The attach methods of programs to try, in order.
    pub(super) const fn bpf_attach_methods(self) -> &'static [AttachMethod] {
        match self {
            Self::Auto | Self::Bpf => &[AttachMethod::Multi, AttachMethod::Event],
            Self::BpfMulti => &[AttachMethod::Multi],
            Self::BpfPerf => &[AttachMethod::Event],
            Self::Perf | Self::PerfTracefs | Self::PerfPmu => &[],
        }
    }
}
