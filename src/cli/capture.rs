//! Options of the verbs that capture: what, whose, and how.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueEnum};

use super::Cli;

/// How to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The first of these that the kernel allows
    #[default]
    Auto,
    /// Generated BPF programs: any operand, strings, half of perf's cost
    Bpf,
    /// BPF programs, attached to all sites at once (Linux 6.6)
    BpfMulti,
    /// BPF programs, attached site by site (Linux 5.15)
    BpfPerf,
    /// uprobe perf events, with user registers and stack
    Perf,
    /// perf events on tracefs events
    PerfTracefs,
    /// perf events of the uprobe PMU; they cannot follow threads and children
    PerfPmu,
}

/// Which text to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strings {
    /// What unsigned arguments of a pointer's size point to, where it looks like text
    #[default]
    Auto,
    /// The same, taking each of them for a text: an empty one and one that cannot be read show, too
    All,
    /// None
    Off,
}

/// What to do about memory of the traced program that is not resident (swapped out, or not yet read from its file).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NonResident {
    /// Bring in anonymous memory and pages of local files, where nobody can make that wait: of processes with one thread, of those with
    /// CAP_SYS_ADMIN and of your own
    #[default]
    Auto,
    /// Leave it: what it holds is missing
    Never,
    /// Bring in any, and wait: memory served by a process (userfaultfd, FUSE) or a network can hold up the recording and every other
    /// tracer of the machine, for as long as it likes
    Always,
}

/// What to capture, whose, and how.
#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs; comma list (a comma in PATH is \,), may be repeated. ARGUMENTS are recorded
    /// instead of the note's: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8), key=str(arg2, len), len=(u8)arg3, head=bytes(arg2, 16)
    /// (bpf engines; perf-tracefs without bytes and lengths in arguments)
    #[arg(short, long, value_name = "EVENT", required = true)]
    pub(crate) event: Vec<String>,
    /// Record only those hits of the event before it for which this is true: comparisons of arguments (arg1, or their
    /// names), pid, tid, cpu, comm with constants, && || !; text == "GET", text ~ "GET*" (texts need the bpf engines)
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Vec<String>,
    /// The filter of each event
    #[arg(skip)]
    pub(crate) filters: Vec<Option<String>>,
    /// Record in all processes; so it is without this option, too, unless there is -p, -t or CMD
    #[arg(short, long)]
    pub(crate) all_cpus: bool,
    /// Record in these processes, with their later threads and children
    #[arg(
        short,
        long,
        value_name = "PID",
        value_delimiter = ',',
        conflicts_with = "all_cpus"
    )]
    pub(crate) pid: Vec<u32>,
    /// Record in these threads only
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with_all = ["all_cpus", "pid"])]
    pub(crate) tid: Vec<u32>,
    /// Record the processes of -p, or the command, without the children that they start; other processes of the same program then
    /// cost nothing (bpf engine, Linux 6.11)
    #[arg(short = 'i', long, conflicts_with_all = ["all_cpus", "tid"])]
    pub(crate) no_inherit: bool,
    /// Record hits on these CPUs only (0-3,6)
    #[arg(short = 'C', long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// Size of each CPU's ring: pages, or bytes with B, K, M or G
    #[arg(short, long, value_name = "PAGES|SIZE")]
    pub(crate) mmap_pages: Option<String>,
    /// End after this time (10, 10s, 500ms, 2m)
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// How to capture
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// Text to read at a hit (bpf engines)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) strings: Strings,
    /// Memory that is not resident, in known texts, operands and filters (bpf engines; what only may be a text is never brought in)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) nonresident: NonResident,
    /// Most bytes to keep of a text, up to 4096
    #[arg(long, value_name = "BYTES", default_value = "256")]
    pub(crate) strlen: String,
    /// Lose nothing: while the ring is half full, stop the processes that hit (SIGSTOP, which their parents see), and let
    /// them go on when it is drained (bpf engines)
    #[arg(long)]
    pub(crate) lossless: bool,
    /// Most bytes of user stack to copy at a hit for operands whose depth cannot be told beforehand
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    pub(crate) stack_size: String,
    /// Take names and types of arguments from these files (.toml, .d, .stp) first
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Plant probes although the checks of the file refuse; record lists that read memory with perf-tracefs, although traced programs
    /// could make the kernel warn
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say what is planted and how
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// The command to run and record; with -- in front where it has options of its own
    #[arg(value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

impl CaptureArgs {
    /// Gives each event the filters that follow it. Ends the process if one stands before all events.
    pub(super) fn pair_filters(&mut self, matches: &clap::ArgMatches) {
        let places = |id: &str| {
            matches
                .indices_of(id)
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        };
        let events = places("event");
        self.filters = vec![None; self.event.len()];
        for (filter, place) in self.filter.iter().zip(places("filter")) {
            let before = events.iter().take_while(|event| **event < place).count();
            let Some(slot) = before
                .checked_sub(1)
                .and_then(|at| self.filters.get_mut(at))
            else {
                let message = "--filter belongs to the event before it: give -e first";
                Cli::command()
                    .error(clap::error::ErrorKind::ArgumentConflict, message)
                    .exit();
            };
            // Several filters of one event must all be true.
            *slot = Some(match slot.take() {
                Some(first) => format!("({first}) && ({filter})"),
                None => filter.clone(),
            });
        }
    }
}
