//! Options shared by `record`, `trace`, `top` and `stat`: which probes, which processes, and how to capture.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, ValueEnum};
use usdtrec_format::expr::TimedFilter;

use super::hidden_options::{refused, refused_flag};

/// What captures a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The first engine and attach method that the kernel allows
    #[default]
    Auto,
    /// BPF programs: any operand, strings, half of perf's cost per hit
    Bpf,
    /// BPF programs, attached by one uprobe_multi link per file (Linux 6.6)
    #[value(hide = true)]
    BpfMulti,
    /// BPF programs, attached by one perf event per site (Linux 5.15)
    #[value(hide = true)]
    BpfPerf,
    /// Uprobe perf events that sample user registers and stack
    Perf,
    /// The same, opened on tracefs events
    #[value(hide = true)]
    PerfTracefs,
    /// The same, opened on the uprobe PMU; new threads and children are not recorded
    #[value(hide = true)]
    PerfPmu,
}

impl Engine {
    /// Whether it is one of perf events, whatever the kernel allows.
    pub(crate) const fn is_perf(self) -> bool {
        matches!(self, Self::Perf | Self::PerfTracefs | Self::PerfPmu)
    }
}

/// Strings to read at a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strings {
    /// Strings that a schema declares, and whatever looks like a string where an unsigned argument of pointer size points
    #[default]
    Auto,
    /// Treat every unsigned argument of pointer size as a string, even if empty or unreadable
    All,
    /// Read no strings
    Off,
}

/// Handling of traced memory that is not resident (swapped out, or not yet read from its file).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NonResident {
    /// Fault in anonymous memory and pages of local files where no process can delay that: in processes with one thread, with CAP_SYS_ADMIN,
    /// or of your own user
    #[default]
    Auto,
    /// Do not fault in memory; values in it are missing
    Never,
    /// Fault in any memory. Memory served by a process (userfaultfd, FUSE) or over a network can block the recording and all other tracers
    /// on the machine without limit
    Always,
}

/// Whether threads that map new files must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoGap {
    /// Held in the kernel if it can do that, else not
    Auto,
    /// Held in the kernel; refused if it cannot do that
    Held,
}

/// Options shared by `record`, `trace`, `top` and `stat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH|@build-id:HEX], with globs (comma list, may be repeated)
    ///
    /// PATH is a binary, HEX the first digits of a build-id, at least 8; without a path, the cached binaries are searched, and those of -p, -t and CMD, or with -a those of all processes. Write a comma in PATH as \,. ARGUMENTS is a list of expressions to record
    /// instead of the probe's own arguments: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8), key=str(arg2, len), len=(u8)arg3,
    /// head=bytes(arg2, 16). Lists that compute or read anything need the bpf engine; those that only name, choose and order arguments do not.
    #[arg(short, long, value_name = "EVENT", required = true)]
    pub(crate) event: Vec<String>,
    /// Record only hits of the preceding -e for which this expression is true ('arg2 > 4096 && method == "GET"')
    ///
    /// Compares arguments (arg1, or by name), pid, tid, cpu, uid and comm with constants, combined by && || !. ~ matches a string against a glob (url ~ "/api/*").
    /// Strings and uid need the bpf engine. Several filters of one event must all be true. In record and trace, 'span > 100ms', which && may join with the rest, is about spans: only those of that duration are recorded or printed.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Vec<String>,
    /// The filter of each event, by the event's index
    #[arg(skip)]
    pub(crate) filters: Vec<Option<String>>,
    /// Duration of the shortest spans that filters ask for, ns; 0 if they do not ask for any
    #[arg(skip)]
    pub(crate) span_least: u64,
    /// Time after which the probes are attached
    #[arg(skip)]
    pub(crate) delay: Option<Duration>,
    /// Record all processes [default without -p, -t and CMD]
    #[arg(short, long)]
    pub(crate) all_cpus: bool,
    /// Record these processes, and their threads and children, those that they start later, too (comma list)
    #[arg(
        short,
        long,
        value_name = "PID",
        value_delimiter = ',',
        conflicts_with = "all_cpus"
    )]
    pub(crate) pid: Vec<u32>,
    /// Record only these threads (comma list)
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with_all = ["all_cpus", "pid"])]
    pub(crate) tid: Vec<u32>,
    /// Record only processes in these control groups and those below them: a path (/system.slice/cron.service), an id, or the name of a directory (comma list)
    ///
    /// Processes that come later are recorded, too, also if a group of this name or path is made later, for the first time or again. Several of --cgroup, --container and --unit add up. Needs the bpf engine,
    /// Linux 5.15 and control groups of version 2. In a trace: --filter 'cgroup ~ "*/cron.service"'.
    #[arg(short = 'G', long, value_name = "PATH|ID|NAME", value_delimiter = ',', conflicts_with_all = ["pid", "tid"])]
    pub(crate) cgroup: Vec<String>,
    /// Record only processes in these containers: the first digits of an id (at least 4), or of the uid of a Kubernetes pod (comma list)
    ///
    /// As --cgroup; ids are found in the paths of control groups, as Docker, containerd, CRI-O and Podman make them, and names of those of systemd-nspawn and LXC. One that does not run yet is waited for by at least 12 digits of its id, or the whole uid of its pod. In a trace:
    /// --filter 'container ~ "3f2a*"'.
    #[arg(long, value_name = "ID|NAME", value_delimiter = ',', conflicts_with_all = ["pid", "tid"])]
    pub(crate) container: Vec<String>,
    /// Record only processes of these units of systemd (nginx.service; comma list)
    ///
    /// As --cgroup; a name without a suffix is a service. Units of the system are recorded; that of a user if it is the only one of the name, else by --cgroup PATH. In a trace: --filter 'unit == "nginx.service"'.
    #[arg(long, value_name = "UNIT", value_delimiter = ',', conflicts_with_all = ["pid", "tid"])]
    pub(crate) unit: Vec<String>,
    /// Record only processes that execute this file, under whatever path; with --cgroup, --container or --unit, only those of them (may be repeated)
    ///
    /// PATH is a program, as in -e: links are followed, and a name alone is looked for in $PATH. Processes of a script, or of a program that the loader was told to run (ld.so PROGRAM), execute the interpreter, or the loader.
    /// Those that start later are recorded from their first hit on. A file that replaces it at its path is recorded within a tenth of a second. Needs the bpf engine.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "tid"])]
    pub(crate) exe: Vec<PathBuf>,
    /// With -p or CMD, do not record children
    ///
    /// Probes are then attached to the recorded processes only, so that other processes of the same program have no overhead (bpf engine, Linux 6.11).
    #[arg(short = 'i', long, conflicts_with_all = ["all_cpus", "tid"])]
    pub(crate) no_inherit: bool,
    /// Record only hits on these CPUs (0-3,6)
    #[arg(short = 'C', long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// Ring buffer size per CPU: a number of pages, or bytes with B, K, M or G, up to 2G; rounded up to a power of two
    ///
    /// Default with the bpf engine: 8M, on more than 8 CPUs 64M in all, but at least 1M; with -g up to 64M, 256M or 1/32 of the memory in all; with the perf engine: 4M, less if that exceeds 256M in all. Most with the bpf engine: 1G in all.
    #[arg(short, long, value_name = "PAGES|SIZE")]
    pub(crate) mmap_pages: Option<String>,
    /// End recording after this time (10s, 500ms, 2m); a number without a unit is seconds
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// What captures hits
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// Strings to read at a hit (bpf engine)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) strings: Strings,
    /// Handling of memory that is swapped out or not yet read from its file (bpf engine)
    ///
    /// Applies to strings that a schema or an argument list declares, operands in memory, and filters. Memory that only might hold a string is never faulted in.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) nonresident: NonResident,
    /// Maximum number of bytes to record of a string, 1 to 4096
    #[arg(long, value_name = "BYTES", default_value = CaptureArgs::STRLEN)]
    pub(crate) strlen: String,
    /// With -p or CMD, miss no hit in files that are loaded or executed while recording (bpf engine) [without a value: auto]
    ///
    /// A thread that maps a file with code for the first time is held in the kernel until its probes are attached, for two seconds at most (Linux 6.18). No other process notices.
    /// Without this, and on older kernels, hits in the first 15 to 40 ms are not recorded, and the gap is reported.
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", conflicts_with = "no_follow")]
    pub(crate) no_gap: Option<NoGap>,
    /// Record the ids of the request that each hit belongs to: OpenTelemetry's thread context (bpf engine, 64-bit programs)
    ///
    /// Programs with an SDK that shares it export the variable otel_thread_ctx_v1. Events then have the fields trace_id and span_id, or the reason why there are none. It takes 28 bytes of each event. --filter compares them, too (trace_id == "…"), in the recorder.
    #[arg(long)]
    pub(crate) thread_context: bool,
    /// Record with each hit how long its thread has waited until then: for a CPU, for I/O, and for anything else (bpf engine)
    ///
    /// Events then have the fields runnable, iowait and blocked, ns since the first hit of the thread. What lies between two hits of a thread is the difference; for the rest of the time it was on a CPU. It takes 24 bytes of each event, 3 when compressed. Programs at sched_switch and sched_waking
    /// add up the waits: each switch of a thread with hits takes 0.15 µs more, each of other threads less than 0.1 µs. Needs a kernel with BTF. record and trace also record waits one by one (--off-cpu-thresh);
    /// stat and top add up what the time of spans was spent on, with --span.
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// With --off-cpu, record each wait of at least this time, too (500us, 10ms); a number without a unit is milliseconds [default: 100us]
    ///
    /// Each is an event offcpu:offcpu-time, at the time at which the thread is back on a CPU. Its fields are ns, how long the thread was off the CPU; runnable, how long of that it could have run; state (blocked, iowait or runnable); syscall, the system call that it is in (Linux 5.15);
    /// and wait, the latter or runnable. Threads without a hit have none. ns is also the event's period, by which perf report weighs. 0 records all waits.
    #[arg(long, value_name = "TIME", requires = "off_cpu")]
    pub(crate) off_cpu_thresh: Option<String>,
    /// Take the names and types of arguments from this file (.toml, .d) first; may be repeated, the last file wins
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Fail if a pattern selects no probe now, or a control group, container or unit is not there, instead of waiting for it
    ///
    /// Files that processes begin to map while recording are recorded, too. A pattern with a path never waits. The perf engines do not follow files, and so do not wait.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Ignore files that processes map later, and drop all capabilities when the probes are attached and verified (with -p or CMD: only with -i)
    ///
    /// For recorders that run as a service. Each thread gives up its effective, permitted, inheritable and ambient capabilities, and, if it has CAP_SETPCAP, the bounding set; no_new_privs is set. Without them rings are drained, files
    /// are written and probes are removed, but processes of others cannot be read: later ones are not verified, files that they map are counted as not read, and at the end none is looked at. Root stays root: choose an output folder that root owns. Programs of
    /// --trigger-cmd have no capabilities. Children of -p and CMD get probes of their own while recording, which needs capabilities: leave them out with -i, or record all processes with -a.
    #[arg(long)]
    pub(crate) no_follow: bool,
    /// Attach even if a check of the file fails, or its pages cannot be kept in the page cache
    ///
    /// When the kernel attaches, it reads the pages of the sites while it holds a lock that each fork of the host needs. If the file system answers late or never (FUSE with direct I/O, a server that hangs), all processes that fork wait as long.
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Print only errors and losses
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print each site with its address and what is captured there, and why better engines or attach methods are not used
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Command to run and record; put -- before it if it has options of its own
    #[arg(value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What is otherwise where hits are counted: arguments are read only if other options need them, and no events are shown. The group `arguments` has
/// those options.
pub(super) fn counted(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "strings" => option.requires_if("all", "arguments"),
        "strlen" | "nonresident" | "schema" => option.requires("arguments"),
        "thread_context" => {
            refused_flag(option, "counts do not show which requests hits belong to")
        }
        "off_cpu" => option.requires("span"),
        "off_cpu_thresh" => refused(option, "counts have all waits"),
        _ => option,
    }
}

impl CaptureArgs {
    /// Default of `--strlen`.
    pub(crate) const STRLEN: &str = "256";

    /// Assigns each `--filter` to the `-e` before it.
    ///
    /// # Errors
    /// The message of a usage error, if a `--filter` comes before the first `-e`, or compares the duration of spans in another way than by a minimum.
    pub(super) fn pair_filters(&mut self, matches: &clap::ArgMatches) -> Result<(), String> {
        self.filters = vec![None; self.event.len()];
        let events = events_before(matches, "filter");
        for (filter, event) in self.filter.iter().zip(events) {
            let Some(slot) = event.and_then(|event| self.filters.get_mut(event)) else {
                return Err("--filter applies to the -e before it: give -e first".to_owned());
            };
            let TimedFilter { least, parts, rest } = TimedFilter::parse(filter)
                .map_err(|error| format!("--filter {filter:?}: {error}"))?;
            if let Some(part) = parts.first() {
                let name = part.spec().name;
                return Err(format!(
                    "--filter {filter:?}: span.{name} is known when a span has ended: filter what was recorded, with report, script or export"
                ));
            }
            self.span_least = self.span_least.max(least);
            let Some(filter) = rest else { continue };
            // Several filters of one event must all be true.
            *slot = Some(match slot.take() {
                Some(first) => format!("({first}) && ({filter})"),
                None => filter,
            });
        }
        Ok(())
    }
}

/// For each occurrence of an option, the index of the `-e` before it.
fn events_before(matches: &clap::ArgMatches, option: &str) -> Vec<Option<usize>> {
    let indices = |id: &str| matches.indices_of(id).into_iter().flatten();
    let before = |index| indices("event").take_while(|event| *event < index).count();
    indices(option)
        .map(|index| before(index).checked_sub(1))
        .collect()
}

/// When probes are attached.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DelayArgs {
    /// Attach the probes this many milliseconds after CMD has started, or without CMD from now: until then programs have no breakpoints
    ///
    /// For programs that copy their code when they start, to huge pages for instance: with breakpoints in the copy they end by SIGTRAP. Hits in a copy are not recorded. --duration counts from when the probes are attached.
    #[arg(short = 'D', long, value_name = "MSECS", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,
}

impl DelayArgs {
    /// The delay.
    ///
    /// # Errors
    /// The message of a usage error.
    pub(super) fn parsed(&self) -> Result<Option<Duration>, String> {
        const MAX_MSECS: u64 = 86_400_000;
        let Some(text) = self.delay.as_deref() else {
            return Ok(None);
        };
        match text.parse() {
            Ok(msecs @ 1..=MAX_MSECS) => Ok(Some(Duration::from_millis(msecs))),
            _ if text == "-1" => Err(
                "--delay -1, to begin without events, is perf's: nothing could enable them here; give milliseconds, as 500"
                    .to_owned(),
            ),
            _ => Err(format!(
                "--delay: expected milliseconds from 1 to {MAX_MSECS} (a day), found {text:?}"
            )),
        }
    }
}
