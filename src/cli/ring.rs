//! Options of `record` about triggers, and of `usdtrec dump`, which is one.

use clap::Args;

/// What has `record` write its last seconds to a file, or end.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RingArgs {
    /// Keep only the last TIME, in at most SIZE of memory, and write it to FILE.DATE-AND-TIME when a trigger fires, at SIGUSR2,
    /// and for usdtrec dump (60s or 60s,100M) [default SIZE: 256M]
    ///
    /// Recording continues meanwhile, and each file is a complete trace, also of processes that have ended. Nothing is written without a trigger.
    /// SIZE is that of the compressed trace.
    #[arg(long, value_name = "TIME[,SIZE]", conflicts_with_all = ["switch_output", "max_size"])]
    pub(crate) ring: Option<String>,
    /// With --ring, write a file when this happens (may be repeated), or with --switch-max-files keep the file of that time and those before and after it: a hit of a recorded probe (PROVIDER:NAME), one for which a filter is true
    /// ('PROVIDER:NAME: FILTER'), or a span that was long ('span:NAME > TIME')
    ///
    /// A filter is that of --filter. A span is named as for report --span, and is found when it ends.
    #[arg(long, value_name = "TRIGGER")]
    pub(crate) trigger: Vec<String>,
    /// End recording when this happens first: as --trigger; with --ring, FILE has the last TIME then
    #[arg(long, value_name = "TRIGGER")]
    pub(crate) until: Vec<String>,
    /// Continue recording for this time before a file is written, or before the end of --until (1s)
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Minimum time between triggers that have a file; SIGUSR2 and usdtrec dump always write one [default: 30s; 0 for none]
    #[arg(long, value_name = "TIME")]
    pub(crate) cooldown: Option<String>,
    /// With --ring, keep only the newest N files of this recording; with --switch-max-files, those of the newest N triggers [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep: Option<u64>,
    /// With --ring, run a program when a file is complete, without a shell ('PROGRAM ARG…'; a word with blanks in quotes)
    ///
    /// Its environment has USDTREC_FILE, USDTREC_KIND (probe, span, signal, request), USDTREC_TRIGGER, USDTREC_TIME_NS (since 1970), USDTREC_EVENT,
    /// USDTREC_SPAN, USDTREC_DURATION_NS, USDTREC_PID and USDTREC_TID. It is killed after 60 seconds.
    #[arg(long, value_name = "COMMAND", requires = "ring", conflicts_with_all = ["switch_output", "max_size"])]
    pub(crate) trigger_cmd: Option<String>,
}

/// `usdtrec dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The recorder with this process id [default: the only one that there is]
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// All recorders of this user
    #[arg(short, long, conflicts_with = "pid")]
    pub(crate) all: bool,
}
