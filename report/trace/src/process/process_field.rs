//! Fields about the process of an event, and the build of the program that it runs: strings and numbers.

use usdtrec_format::control_group::{container_id, unit};
use usdtrec_format::trace::TraceInfo;
use usdtrec_format::{HexId, NoContext, NoWaits, RawLayout, ThreadContext, ThreadWaits};

use crate::process::Processes;
use crate::process::cgroups::RecordedFacts;
use crate::process::names::{EscapedName, NameId};

/// What the trace says of a process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessFacts {
    /// What the recorder read of it after its first hit.
    pub recorded: RecordedFacts,
    /// Its real user id at the hit, in the initial user namespace.
    pub uid: Option<u32>,
    /// Index of its event among those of the trace; `None` if it is not known.
    pub event: Option<u32>,
    /// The request that the thread was working on at the hit.
    pub thread_context: Result<ThreadContext, NoContext>,
    /// How long the thread has waited up to the hit.
    pub thread_waits: Result<ThreadWaits, NoWaits>,
}

impl Default for ProcessFacts {
    fn default() -> Self {
        Self {
            recorded: RecordedFacts::default(),
            uid: None,
            event: None,
            thread_context: Err(NoContext::NotRecorded),
            thread_waits: Err(NoWaits::NotRecorded),
        }
    }
}

/// A field about a process.
#[derive(Debug)]
pub struct ProcessField {
    /// Name in `-F`, templates, JSON, CSV, filters and keys.
    pub name: &'static str,
    /// What it is, in help.
    pub help: &'static str,
    /// What it is, in documents.
    pub meaning: &'static str,
    /// When its member in JSON is null.
    pub lacking: &'static str,
    /// Its column in Parquet files, where `trace_id` is the number of the recording.
    pub column: &'static str,
    /// Heading of its column where events are grouped by it.
    pub heading: &'static str,
    /// Whether its values are numbers; else they are strings.
    pub is_number: bool,
    /// Whether the trace may have it of a process.
    pub is_in: fn(&Processes, &TraceInfo) -> bool,
    /// What a trace must have for it, and where that comes from.
    pub needs: &'static str,
    /// The reasons that are groups of their own where events are grouped by the field; of others, events are one group without a value.
    pub reasons: &'static [&'static str],
    /// The value, or what is shown in its place: the trace does not have it, or the process has none.
    pub(crate) get: GetProcessField,
}

/// Gets the value of a field about a process; else what is shown in its place.
type GetProcessField = for<'p> fn(ProcessSource<'p, '_>) -> Result<ProcessValue<'p>, &'static str>;

/// What the fields about a process are got from.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSource<'p, 'f> {
    /// The names of all processes.
    pub(crate) processes: &'p Processes,
    /// What is known of this one.
    pub(crate) facts: &'f ProcessFacts,
    /// Build-id of the file with the probe.
    pub(crate) build_id: Option<&'p str>,
}

/// The value of a field about a process.
#[derive(Clone, Copy, Debug)]
pub enum ProcessValue<'p> {
    /// A string.
    String(EscapedName<'p>),
    /// An id.
    Id(HexId),
    /// A number.
    Number(u64),
}

/// Shown in text where there is no number.
pub const NONE: &str = "-";
/// When fields are null that are looked for.
pub(crate) const NOT_KNOWN: &str = "null if not known";
const CGROUPS: &str = "the control groups of processes, which a recorder reads after their first hits; the trace has none (a process that ended at once has \
                       none either)";

/// Path of the control group.
pub static CGROUP: ProcessField = ProcessField {
    name: "cgroup",
    help: "control group of the process",
    meaning: "path of the control group in which the process was after its first hit",
    lacking: NOT_KNOWN,
    column: "cgroup",
    heading: "Cgroup",
    is_number: false,
    is_in: has_cgroups,
    needs: CGROUPS,
    reasons: &[],
    get: |of| cgroup(of).map(ProcessValue::String),
};

/// Id of the container.
pub static CONTAINER: ProcessField = ProcessField {
    name: "container",
    help: "id of the container that the control group is of",
    meaning: "id of the container (64 digits) in the path of the control group",
    lacking: "null if not known, and in no container",
    column: "container",
    heading: "Container",
    is_number: false,
    is_in: has_cgroups,
    needs: CGROUPS,
    reasons: &[],
    get: |of| {
        let id = cgroup(of)?.part(container_id);
        id.map(ProcessValue::String).ok_or("<no container>")
    },
};

/// Unit of systemd.
pub static UNIT: ProcessField = ProcessField {
    name: "unit",
    help: "unit of systemd that the control group is of",
    meaning: "innermost service or scope of systemd in the path of the control group, with its suffix",
    lacking: "null if not known, and in no unit",
    column: "unit",
    heading: "Unit",
    is_number: false,
    is_in: has_cgroups,
    needs: CGROUPS,
    reasons: &[],
    get: |of| {
        let name = cgroup(of)?.part(unit);
        name.map(ProcessValue::String).ok_or("<no unit>")
    },
};

/// Path of the program.
pub static EXE: ProcessField = ProcessField {
    name: "exe",
    help: "path of the program that the process executes",
    meaning: "path of the program that the process executed at its first hit since it began that, as `/proc/PID/exe` has it: with ` (deleted)` if the \
              file is, and in a container as seen there",
    lacking: NOT_KNOWN,
    column: "exe",
    heading: "Executable",
    is_number: false,
    is_in: |processes, _| processes.has_recorded(|facts| facts.exe().is_some()),
    needs: "the programs of processes, which a recorder reads after their first hits; the trace has none (a process that ended at once has none either)",
    reasons: &[],
    get: |of| of_record(of, of.facts.recorded.exe()).ok_or("<executable not known>"),
};

/// Number of the parent.
pub static PPID: ProcessField = ProcessField {
    name: "ppid",
    help: "process that started the process, or has adopted it since",
    meaning: "number of the process that had started the process at its first hit, or had adopted it since",
    lacking: NOT_KNOWN,
    column: "ppid",
    heading: "Parent Pid",
    is_number: true,
    is_in: has_parents,
    needs: PARENTS,
    reasons: &[],
    get: |of| {
        let parent = of.facts.recorded.parent;
        let number = parent.map(|parent| ProcessValue::Number(parent.into()));
        number.ok_or(NO_PARENT)
    },
};

/// Name of the parent.
pub static PARENT: ProcessField = ProcessField {
    name: "parent",
    help: "name of that process",
    meaning: "name of the process `ppid` at the first hit",
    lacking: NOT_KNOWN,
    column: "parent",
    heading: "Parent",
    is_number: false,
    is_in: has_parents,
    needs: PARENTS,
    reasons: &[],
    get: |of| of_record(of, of.facts.recorded.parent_name()).ok_or(NO_PARENT),
};

/// Name of the service.
pub static SERVICE: ProcessField = ProcessField {
    name: "service",
    help: "what the process calls its service for OpenTelemetry",
    meaning: "name of the service in the environment of the process at its first hit: `OTEL_SERVICE_NAME`, or `service.name` of \
              `OTEL_RESOURCE_ATTRIBUTES`",
    lacking: "null if the environment has none, or was not read",
    column: "service",
    heading: "Service",
    is_number: false,
    is_in: |processes, _| processes.has_recorded(|facts| facts.service().is_some()),
    needs: "OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES in the environment of processes, which a recorder reads after their first hits; the trace has none",
    reasons: &[],
    get: |of| of_record(of, of.facts.recorded.service()).ok_or("<no service>"),
};

const PARENTS: &str =
    "the parents of processes, which a recorder reads after their first hits; the trace has none";
const NO_PARENT: &str = "<parent not known>";

fn has_parents(processes: &Processes, _: &TraceInfo) -> bool {
    processes.has_recorded(|facts| facts.parent.is_some())
}

/// A string that is recorded of a process.
fn of_record<'p>(of: ProcessSource<'p, '_>, name: Option<NameId>) -> Option<ProcessValue<'p>> {
    let name = name.and_then(|name| of.processes.recorded_name(name));
    name.map(ProcessValue::String)
}

/// User at the hit.
pub static UID: ProcessField = ProcessField {
    name: "uid",
    help: "number of the user of the process, with the bpf engine",
    meaning: "real user id of the process at the hit, in the initial user namespace",
    lacking: "null if not recorded: the bpf engine records it",
    column: "uid",
    heading: "User",
    is_number: true,
    is_in: |_, info| {
        let probes = info.definitions.iter().flat_map(|all| &all.probes);
        probes.map(|probe| &probe.plan).any(|plan| plan.user)
    },
    needs: "the users of processes, which the bpf engine records at each hit; the trace has none",
    reasons: &[],
    get: |of| {
        let uid = of.facts.uid.map(|uid| ProcessValue::Number(uid.into()));
        uid.ok_or("<user not recorded: the bpf engine records it>")
    },
};

/// Id of the trace that the hit belongs to.
pub static TRACE_ID: ProcessField = ProcessField {
    name: "trace_id",
    help: "id of the OpenTelemetry trace that the thread was working on, if thread contexts were recorded",
    meaning: "id of the OpenTelemetry trace that the thread was working on at the hit: 32 hexadecimal digits",
    lacking: WITHOUT_CONTEXT,
    column: "otel_trace_id",
    heading: "Trace",
    is_number: false,
    is_in: has_thread_contexts,
    needs: THREAD_CONTEXTS,
    reasons: &NO_CONTEXT,
    get: |of| of_context(of.facts, |context| HexId::new(&context.trace_id)),
};

/// Id of the span that the hit is in.
pub static SPAN_ID: ProcessField = ProcessField {
    name: "span_id",
    help: "id of the OpenTelemetry span that was active, if thread contexts were recorded",
    meaning: "id of the OpenTelemetry span that the thread was working on at the hit: 16 hexadecimal digits",
    lacking: WITHOUT_CONTEXT,
    column: "otel_span_id",
    heading: "Span",
    is_number: false,
    is_in: has_thread_contexts,
    needs: THREAD_CONTEXTS,
    reasons: &NO_CONTEXT,
    get: |of| of_context(of.facts, |context| HexId::new(&context.span_id)),
};

const THREAD_CONTEXTS: &str =
    "thread contexts, which a recorder reads at hits if it is asked to; the trace has none";

const WITHOUT_CONTEXT: &str = "null if not recorded, and where the thread had no valid context";

/// The reasons of [`NoContext`], in its order.
const NO_CONTEXT: [&str; 5] = [
    "<thread context not recorded>",
    "<no thread context: the process exports none, or it was not found yet>",
    "<no request>",
    "<invalid thread context>",
    "<unreadable thread context>",
];

fn has_thread_contexts(_: &Processes, info: &TraceInfo) -> bool {
    has_layout(info, |layout| layout.thread_context.is_some())
}

/// Whether the samples of any probe are laid out so.
fn has_layout(info: &TraceInfo, is_it: impl Fn(&RawLayout) -> bool) -> bool {
    let probes = info.definitions.iter().flat_map(|all| &all.probes);
    let mut layouts = probes.filter_map(|probe| probe.plan.raw.as_ref());
    layouts.any(is_it)
}

/// An id of the request that the thread was working on.
fn of_context<'p>(
    process: &ProcessFacts,
    id: fn(&ThreadContext) -> HexId,
) -> Result<ProcessValue<'p>, &'static str> {
    match &process.thread_context {
        Ok(context) => Ok(ProcessValue::Id(id(context))),
        Err(reason) => Err(NO_CONTEXT[*reason as usize]),
    }
}

/// What a field about the waits of threads, or about the parts of spans, needs.
pub const THREAD_WAITS: &str = "how long threads have waited, which a recorder adds up if it is asked to; the trace does not have it";

const fn of_waits(
    name: &'static str,
    column: &'static str,
    heading: &'static str,
    [help, meaning]: [&'static str; 2],
    get: GetProcessField,
) -> ProcessField {
    ProcessField {
        name,
        help,
        meaning,
        lacking: "null if not recorded, where the recorder had no room for the thread, and from the first switch of it on that the kernel did not report",
        column,
        heading,
        is_number: true,
        is_in: |_, info| has_layout(info, |layout| layout.thread_waits.is_some()),
        needs: THREAD_WAITS,
        reasons: &[],
        get,
    }
}

/// How long the thread waited for a CPU.
pub static RUNNABLE: ProcessField = of_waits(
    ThreadWaits::NAMES[0],
    "thread_runnable_ns",
    "Runnable",
    [
        "ns that the thread has waited for a CPU since its first hit, if waits were recorded",
        "how long the thread has waited for a CPU since its first hit, ns",
    ],
    |of| waited(of.facts, |waits| waits.runnable),
);

/// How long the thread waited for disks.
pub static IOWAIT: ProcessField = of_waits(
    ThreadWaits::NAMES[1],
    "thread_iowait_ns",
    "I/O wait",
    [
        "ns that it has waited for disks since then",
        "how long the thread has waited for disks since its first hit, ns",
    ],
    |of| waited(of.facts, |waits| waits.iowait),
);

/// How long the thread waited for something else.
pub static BLOCKED: ProcessField = of_waits(
    ThreadWaits::NAMES[2],
    "thread_blocked_ns",
    "Blocked",
    [
        "ns that it has waited for something else since then",
        "how long the thread has waited for something else since its first hit, as a lock, a timer or a socket, ns",
    ],
    |of| waited(of.facts, |waits| waits.blocked),
);

/// One of the sums of a thread.
fn waited<'p>(
    process: &ProcessFacts,
    sum: fn(&ThreadWaits) -> u64,
) -> Result<ProcessValue<'p>, &'static str> {
    let waits = process.thread_waits.as_ref().map_err(|_| NONE)?;
    if waits.missed > 0 {
        return Err(NONE);
    }
    Ok(ProcessValue::Number(sum(waits)))
}

/// Build of the file with the probe.
pub static BUILD_ID: ProcessField = ProcessField {
    name: "build_id",
    help: "build-id of the file with the probe",
    meaning: "build-id of the file with the probe, in hexadecimal",
    lacking: "null if the trace has none",
    column: "build_id",
    heading: "Build-ID",
    is_number: false,
    is_in: |_, info| {
        let mut files = info.definitions.iter().flat_map(|all| &all.files);
        files.any(|file| file.build_id.is_some())
    },
    needs: "the build-ids of the files with the probes; the trace has none",
    reasons: &[],
    get: |of| {
        let id = of.build_id.map(EscapedName::plain);
        id.map(ProcessValue::String).ok_or("<no build-id>")
    },
};

impl ProcessValue<'_> {
    /// The string, not escaped; `None` for a number.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(name) => Some(name.unescaped()),
            Self::Id(id) => Some(id.as_str()),
            Self::Number(_) => None,
        }
    }

    /// The same, escaped for a terminal.
    #[must_use]
    pub fn escaped(&self) -> Option<&str> {
        match self {
            Self::String(name) => Some(name.text),
            other => other.text(),
        }
    }

    /// The number; `None` for a string.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::String(_) | Self::Id(_) => None,
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

fn cgroup<'p>(of: ProcessSource<'p, '_>) -> Result<EscapedName<'p>, &'static str> {
    let path = of.facts.recorded.path();
    let path = path.and_then(|path| of.processes.recorded_name(path));
    path.ok_or("<cgroup not known>")
}
