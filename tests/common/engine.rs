//! The ways to capture, each of which can be forced.

/// A way to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    BpfMulti,
    BpfPerf,
    PerfTracefs,
    PerfPmu,
}

impl Engine {
    pub(crate) const ALL: [Self; 4] = [
        Self::BpfMulti,
        Self::BpfPerf,
        Self::PerfTracefs,
        Self::PerfPmu,
    ];

    /// The value of `--engine`.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::BpfMulti => "bpf-multi",
            Self::BpfPerf => "bpf-perf",
            Self::PerfTracefs => "perf-tracefs",
            Self::PerfPmu => "perf-pmu",
        }
    }

    /// Whether programs in the kernel read the arguments, wherever they are; otherwise registers and a piece of the stack
    /// are all that there is.
    pub(crate) fn reads_memory(self) -> bool {
        matches!(self, Self::BpfMulti | Self::BpfPerf)
    }

    /// What the recorder's first line says.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::BpfMulti => "engine bpf (uprobe_multi)",
            Self::BpfPerf => "engine bpf (uprobe PMU)",
            Self::PerfTracefs => "engine perf (tracefs)",
            Self::PerfPmu => "engine perf (uprobe PMU)",
        }
    }

    /// Arguments of `usdtrec` that record a command and what it starts, without strings. The events of the uprobe PMU cannot
    /// follow a process: there everybody is recorded.
    pub(crate) fn record<'a>(
        self,
        trace: &'a str,
        event: &'a str,
        command: &[&'a str],
    ) -> Vec<&'a str> {
        let mut arguments = vec!["record", "--strings=off", "--engine", self.option()];
        if self == Self::PerfPmu {
            arguments.push("-a");
        }
        arguments.extend(["-o", trace, "-e", event, "--"]);
        arguments.extend(command);
        arguments
    }
}
