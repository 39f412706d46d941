//! Options of `usdtrec doctor` and `usdtrec demo`.

use clap::{Args, ValueEnum};

/// Output format of `doctor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// One line for each thing: ok, limited or no, what was found, and what to do
    #[default]
    Text,
    /// One JSON object per line: check, state, found, advice; without what killed recorders left
    Json,
}

/// Hits of this program's own probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HitKind {
    /// With a number
    Number,
    /// With two strings
    Strings,
    /// With a number, and then switches between two threads
    Switches,
}

/// `usdtrec doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Decrement the semaphores that a killed recorder left incremented, remove its tracefs events, and restore the instructions at its sites; nothing is tried then
    #[arg(long)]
    pub(crate) heal: bool,
    /// Also record this program's own probes with each engine and attach method: which of them work, why others do not, and what a hit costs here, with a
    /// number, with two strings and with its callers, and what `--off-cpu` adds to a switch between threads
    #[arg(long = "try", conflicts_with_all = ["heal", "probe"])]
    pub(crate) r#try: bool,
    /// Say why the probes of a process, of a file, or of a pattern in files that run here would be hit or not: who maps the file, whether it was
    /// deleted, sites, semaphores, what the program needs, symbols
    #[arg(short, long, value_name = "PID|FILE|PATTERN", conflicts_with = "heal")]
    pub(crate) probe: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "heal")]
    pub(crate) format: DoctorFormat,
    /// Pass one of this program's own probes, and print what a hit costs, ns: what doctor records
    #[arg(long, value_enum, hide = true, conflicts_with_all = ["heal", "format", "probe", "try"])]
    pub(crate) hits: Option<HitKind>,
}

/// `usdtrec demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run only the traced workload (started by the demo)
    #[arg(long, hide = true)]
    pub(crate) workload: bool,
}
