//! Fields about the process of an event, and the build of the program that it runs: texts and numbers.

use usdtrec_format::BuildId;
use usdtrec_format::control_group::container_id;
use usdtrec_format::trace::TraceInfo;

use crate::process::Processes;
use crate::process::hex_id::HexId;
use crate::process::names::{EscapedName, NameId};

/// What the trace says of a process at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessFacts {
    /// Its control group.
    pub cgroup: Option<NameId>,
    /// Its real user id at the hit, in the initial user namespace.
    pub uid: Option<u32>,
    /// The build-id of the file with the probe.
    pub build_id: Option<BuildId>,
}

/// A field about a process.
#[derive(Debug)]
pub struct ProcessField {
    /// Name in `-F`, templates, JSON, CSV, filters and keys.
    pub name: &'static str,
    /// What it is, in help.
    pub help: &'static str,
    /// Heading of its column where events are grouped by it.
    pub heading: &'static str,
    /// Whether its values are numbers; else they are texts.
    pub is_number: bool,
    /// Whether the trace may have it of a process.
    pub is_in: fn(&Processes, &TraceInfo) -> bool,
    /// What a trace must have for it, and where that comes from.
    pub needs: &'static str,
    /// The value, or what is shown in its place: the trace does not have it, or the process has none.
    get: for<'p> fn(&'p Processes, ProcessFacts) -> Result<ProcessValue<'p>, &'static str>,
}

/// The value of a field about a process.
#[derive(Clone, Copy, Debug)]
pub enum ProcessValue<'p> {
    /// A text.
    Text(EscapedName<'p>),
    /// An id.
    Id(HexId),
    /// A number.
    Number(u64),
}

const CGROUPS: &str = "the control groups of processes, which a recorder reads after their first hits; the trace has none (a process that ended at once has \
                       none either)";

/// Path of the control group.
pub static CGROUP: ProcessField = ProcessField {
    name: "cgroup",
    help: "control group of the process",
    heading: "Cgroup",
    is_number: false,
    is_in: has_cgroups,
    needs: CGROUPS,
    get: |processes, process| cgroup(processes, process).map(ProcessValue::Text),
};

/// Id of the container.
pub static CONTAINER: ProcessField = ProcessField {
    name: "container",
    help: "id of the container that the control group is of",
    heading: "Container",
    is_number: false,
    is_in: has_cgroups,
    needs: CGROUPS,
    get: container,
};

/// User at the hit.
pub static UID: ProcessField = ProcessField {
    name: "uid",
    help: "number of the user of the process, with the bpf engine",
    heading: "User",
    is_number: true,
    is_in: |_, info| {
        let probes = info.definitions.iter().flat_map(|all| &all.probes);
        probes.map(|probe| &probe.plan).any(|plan| plan.user)
    },
    needs: "the users of processes, which the bpf engine records at each hit; the trace has none",
    get: |_, process| {
        let uid = process.uid.map(|uid| ProcessValue::Number(uid.into()));
        uid.ok_or("<user not recorded: the bpf engine records it>")
    },
};

/// Build of the file with the probe.
pub static BUILD_ID: ProcessField = ProcessField {
    name: "build_id",
    help: "build-id of the file with the probe",
    heading: "Build-ID",
    is_number: false,
    is_in: |_, info| {
        let mut files = info.definitions.iter().flat_map(|all| &all.files);
        files.any(|file| file.build_id.is_some())
    },
    needs: "the build-ids of the files with the probes; the trace has none",
    get: |_, process| {
        let id = process.build_id.map(|id| HexId::new(id.as_bytes()));
        id.map(ProcessValue::Id).ok_or("<no build-id>")
    },
};

impl ProcessField {
    /// The value; `None` if the trace does not have it, or the process has none.
    pub fn of<'p>(
        &self,
        processes: &'p Processes,
        process: ProcessFacts,
    ) -> Option<ProcessValue<'p>> {
        self.value(processes, process).ok()
    }

    /// The value, or what is shown in its place.
    pub fn value<'p>(
        &self,
        processes: &'p Processes,
        process: ProcessFacts,
    ) -> Result<ProcessValue<'p>, &'static str> {
        (self.get)(processes, process)
    }
}

impl ProcessValue<'_> {
    /// The text, not escaped; `None` for a number.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.unescaped()),
            Self::Id(id) => Some(id.as_str()),
            Self::Number(_) => None,
        }
    }

    /// The same, escaped for a terminal.
    #[must_use]
    pub fn escaped(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.text),
            other => other.text(),
        }
    }

    /// The number; `None` for a text.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Text(_) | Self::Id(_) => None,
            Self::Number(number) => Some(number),
        }
    }
}

impl PartialEq for ProcessField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProcessField {}

fn has_cgroups(processes: &Processes, _: &TraceInfo) -> bool {
    processes.has_cgroups()
}

fn cgroup(processes: &Processes, process: ProcessFacts) -> Result<EscapedName<'_>, &'static str> {
    let path = process.cgroup.and_then(|id| processes.cgroup_path(id));
    path.ok_or("<cgroup not known>")
}

fn container(
    processes: &Processes,
    process: ProcessFacts,
) -> Result<ProcessValue<'_>, &'static str> {
    let path = cgroup(processes, process)?;
    let id = container_id(path.unescaped()).map(EscapedName::plain);
    id.map(ProcessValue::Text).ok_or("<no container>")
}
