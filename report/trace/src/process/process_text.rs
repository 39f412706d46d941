//! Texts about the process of an event.

use usdtrec_format::control_group::container_id;

use crate::process::Processes;
use crate::process::names::{EscapedName, NameId};

/// What the trace says of a process at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessFacts {
    /// Its control group.
    pub(crate) cgroup: Option<NameId>,
}

/// A text about a process.
#[derive(Debug)]
pub struct ProcessText {
    /// Name in `-F`, templates, JSON, CSV, filters and keys.
    pub name: &'static str,
    /// Heading of its column where events are grouped by it.
    pub heading: &'static str,
    /// Whether the trace may say it of a process.
    pub is_in: fn(&Processes) -> bool,
    /// The text; `None` if the trace does not say it, or the process has none.
    get: for<'p> fn(&'p Processes, ProcessFacts) -> Option<EscapedName<'p>>,
    /// What is shown of a process that has none.
    has_none: &'static str,
}

/// Path of the control group.
pub static CGROUP: ProcessText = ProcessText {
    name: "cgroup",
    heading: "Cgroup",
    is_in: Processes::has_cgroups,
    get: cgroup,
    has_none: "<cgroup not known>",
};

/// Id of the container.
pub static CONTAINER: ProcessText = ProcessText {
    name: "container",
    heading: "Container",
    is_in: Processes::has_cgroups,
    get: container,
    has_none: "<no container>",
};

impl ProcessText {
    /// The text; `None` if the trace does not say it, or the process has none.
    pub fn of<'p>(
        &self,
        processes: &'p Processes,
        process: ProcessFacts,
    ) -> Option<EscapedName<'p>> {
        (self.get)(processes, process)
    }
}

impl ProcessText {
    /// What is shown where there is no text.
    pub const fn missing(&self, process: ProcessFacts) -> &'static str {
        match process.cgroup {
            Some(_) => self.has_none,
            None => CGROUP.has_none,
        }
    }
}

impl PartialEq for ProcessText {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProcessText {}

fn cgroup(processes: &Processes, process: ProcessFacts) -> Option<EscapedName<'_>> {
    processes.cgroup_path(process.cgroup?)
}

fn container(processes: &Processes, process: ProcessFacts) -> Option<EscapedName<'_>> {
    let path = cgroup(processes, process)?;
    container_id(path.unescaped()).map(EscapedName::plain)
}
